"""Worker processes to be killed, frozen and woken.

    with Workers(url, enough=20, heartbeat=0.2, silent=1.0) as workers:
        worker = workers.start()

`python -m tests.crash.workers ENOUGH …` is `kept …`, but for how much has to be open for another worker to join a job.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Self

from tests.crash.crawler import ENVIRONMENT

BACKOFF_VARIABLE = "TEST_BACKOFF_FACTOR"


class Workers:
    """`kept worker` processes on one database; none of them outlives the block."""

    def __init__(
        self,
        url: str,
        folder: Path,
        *,
        enough: int = 400,
        heartbeat: float = 0.2,
        silent: float = 1.0,
        backoff: float = 1.0,
        module: str = "tests.crash.workers",
    ) -> None:
        """``backoff`` multiplies the delays of a crawl whose database is in trouble."""
        self._command = [sys.executable, "-m", module, str(enough)]
        self._environment = ENVIRONMENT | {
            "KEPT_DATABASE": url,
            "KEPT_WORK__HEARTBEAT_SECONDS": str(heartbeat),
            "KEPT_WORK__SILENT_SECONDS": str(silent),
            "HOME": str(folder),
            BACKOFF_VARIABLE: str(backoff),
        }
        self._folder = folder
        self.running: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self.running:
            if process.poll() is None:
                process.kill()
            process.wait()

    def start(self, *arguments: str, environment: Mapping[str, str] | None = None) -> subprocess.Popen[bytes]:
        log = (self._folder / f"worker {len(self.running)}.log").open("wb")
        process = subprocess.Popen(
            [*self._command, "worker", *arguments],
            env=self._environment | (environment or {}),
            stdout=log,
            stderr=log,
            stdin=subprocess.DEVNULL,
        )
        log.close()
        self.running.append(process)
        return process

    def kept(self, *arguments: str, code: int = 0) -> Any:
        """Run a command and return its JSON."""
        run = subprocess.run(
            [*self._command, *arguments, "--json"], env=self._environment, capture_output=True, text=True, timeout=60
        )
        assert run.returncode == code, run.stderr
        return json.loads(run.stdout) if run.stdout else None

    def logs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self._folder.glob("worker *.log")))


def until(happened: Callable[[], Any], seconds: float = 30.0) -> Any:
    """Poll until ``happened`` returns something true, and return that."""
    ends = time.monotonic() + seconds
    while not (found := happened()):
        assert time.monotonic() < ends, "it never happened"
        time.sleep(0.02)
    return found


def freeze(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, process.pid, os.WSTOPPED | os.WNOWAIT)


if __name__ == "__main__":
    from kept.cli.main import main
    from kept.crawl import store_retry
    from kept.jobs import queue, worker

    worker.MIN_ENTRIES_TO_JOIN = int(sys.argv.pop(1))
    factor = float(os.environ[BACKOFF_VARIABLE])
    store_retry.FIRST_DELAY_SECONDS *= factor
    store_retry.MAX_DELAY_SECONDS *= factor
    queue.FIRST_DELAY_SECONDS *= factor
    worker.JOIN_COOLDOWN_SECONDS *= factor
    main()
