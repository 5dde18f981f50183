"""Run a server for a long time: the rows of every table, its memory, files and threads level off.

    python -m tests.crash.soak --minutes 30 [--store sqlite|postgres]

In each round files of some folders are edited, added, renamed and deleted; all sources are refreshed by the API,
searched, listed and read; event streams are opened and left; and garbage is collected with the default retention. Then
the database becomes two days older, so that a month of history passes in fifteen rounds. The last quarter of all rounds
is compared with the quarter before it: nothing may have grown by more than a tenth.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import apsw
import psycopg

from kept.maintenance.gc import Retention, collect
from kept.store.migrations import fresh_schema
from tests.crash.crawler import ENVIRONMENT
from tests.crash.state import reading
from tests.factories import database_at
from tests.postgres import PostgresServer

DAYS_A_ROUND = 2
MIN_ROUNDS = 250  # the default retention keeps a hundred jobs of a source
AGES = {  # what retention and grace periods look at
    "generations": ("created_at", "activated_at"),
    "documents": ("since",),
    "crawl_jobs": ("created_at", "started_at", "completed_at"),
    "idempotency_keys": ("created_at",),
}
WARMTH = 0.5  # part of the rounds after which nothing should grow
TOLERANCE = 1.1
PROCESS_SLACK = {"memory": 16 << 20, "files": 6, "threads": 4}  # what comes and goes
ROW_SLACK = 8


@dataclass
class Soak:
    """The samples of each round, in order."""

    rows: dict[str, list[int]] = field(default_factory=dict)
    process: dict[str, list[int]] = field(default_factory=dict)
    refreshes: int = 0

    def grown(self) -> list[str]:
        """Return what has not levelled off."""
        slack = dict.fromkeys(self.rows, ROW_SLACK) | PROCESS_SLACK
        found = []
        for name, samples in (self.rows | self.process).items():
            warm = samples[int(len(samples) * WARMTH) :]
            before, after = max(warm[: len(warm) // 2]), max(warm[len(warm) // 2 :])
            if after > before * TOLERANCE + slack[name]:
                found.append(f"{name}: {before} -> {after}")
        return found

    def report(self) -> str:
        lines = [f"{'':20} {'first':>12} {'middle':>12} {'last':>12} {'most':>12}"]
        for name, samples in (self.rows | self.process).items():
            shown = (samples[0], samples[len(samples) // 2], samples[-1], max(samples))
            lines.append(f"{name:20} " + " ".join(f"{one:12,}" for one in shown))
        return "\n".join(lines)


def soak(
    url: str,
    folder: Path,
    *,
    seconds: float = 0.0,
    rounds: int = 0,
    sources: int = 4,
    pages: int = 20,
    retention: Retention | None = None,
) -> Soak:
    """Run rounds until so many seconds have passed, and at least ``rounds``."""
    retention = retention or Retention()
    found, until, number = Soak(), time.monotonic() + seconds, 0
    names = [f"s{one}" for one in range(sources)]
    for name in names:
        for page in range(pages):
            _write(folder / name / f"page{page}.md", f"{name} page {page}")
        _kept(url, folder, "add", str(folder / name), "--name", name)
    with _serving(url, folder) as server:
        while number < rounds or time.monotonic() < until:
            number += 1
            for name in names:
                _edit(folder / name, name, number, pages)
            jobs = [server.post(f"/api/v1/sources/{name}/crawls", f"{name}-{number}")["job"] for name in names]
            server.use(names, number)
            for job in jobs:
                server.wait(job)
            found.refreshes += len(jobs)
            asyncio.run(_collect(url, retention))
            _make_older(url)
            _sample(found, url, server.pid)
    return found


# What happens in a round --------------------------------------------------------------------------------------------


def _edit(folder: Path, name: str, number: int, pages: int) -> None:
    """Edit a file, add one, delete one and rename one."""
    _write(folder / f"page{number % pages}.md", f"{name} page {number % pages}, edited in round {number}")
    _write(folder / f"new{number}.md", f"{name}, new in round {number}")
    (folder / f"new{number - 3}.md").unlink(missing_ok=True)
    if (folder / f"new{number - 1}.md").exists():
        (folder / f"new{number - 1}.md").rename(folder / f"new{number - 1}-renamed.md")
        (folder / f"new{number - 3}-renamed.md").unlink(missing_ok=True)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"# {text}\n\nThis is {text}. It has some more words, so that nobody takes it for a tiny page.\n")


def _make_older(url: str) -> None:
    """Let two days pass."""
    if not url.startswith("sqlite"):
        with psycopg.connect(url) as session:
            for table, columns in AGES.items():
                changes = ", ".join(f"{column} = {column} - interval '{DAYS_A_ROUND} days'" for column in columns)
                session.execute(f"UPDATE {table} SET {changes}".encode())
        return
    connection = apsw.Connection(url.removeprefix("sqlite:///"))
    try:
        connection.set_busy_timeout(60_000)
        connection.create_scalar_function("older", _older, 1)
        with connection:
            for table, columns in AGES.items():
                connection.execute(
                    f"UPDATE {table} SET {', '.join(f'{column} = older({column})' for column in columns)}"
                )
    finally:
        connection.close()


def _older(*moments: Any) -> str | None:
    (moment,) = moments
    if moment is None:
        return None
    return (datetime.fromisoformat(moment) - timedelta(days=DAYS_A_ROUND)).isoformat(timespec="microseconds")


async def _collect(url: str, retention: Retention) -> None:
    async with database_at(url) as db:
        await collect(db, retention)


def _sample(found: Soak, url: str, pid: int) -> None:
    tables = re.findall(r"^CREATE TABLE (\w+)", "\n".join(fresh_schema("sqlite").statements), re.MULTILINE)
    with reading(url) as db:
        for table in tables:
            found.rows.setdefault(table, []).append(db.rows(f"SELECT count(*) FROM {table}")[0][0])
    processes = list(_family(pid))
    sizes = {
        "memory": sum(_status(one, "VmRSS") * 1024 for one in processes),
        "files": sum(len(os.listdir(f"/proc/{one}/fd")) for one in processes),
        "threads": sum(_status(one, "Threads") for one in processes),
    }
    for name, size in sizes.items():
        found.process.setdefault(name, []).append(size)


def _family(pid: int) -> Iterator[int]:
    yield pid
    for task in Path(f"/proc/{pid}/task").iterdir():
        for child in (task / "children").read_text().split():
            yield from _family(int(child))


def _status(pid: int, name: str) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    return int(next(line.split()[1] for line in status.splitlines() if line.startswith(f"{name}:")))


# The server ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Server:
    url: str
    pid: int

    def get(self, path: str) -> Any:
        with urlopen(self.url + path, timeout=60) as answer:
            return json.load(answer)

    def post(self, path: str, key: str) -> Any:
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        with urlopen(Request(self.url + path, b"{}", headers), timeout=60) as answer:
            return json.load(answer)

    def use(self, names: list[str], number: int) -> None:
        """Do what people and programs do; some of them leave in the middle of it."""
        with urlopen(f"{self.url}/api/v1/events", timeout=60):
            for query in ("page", f"round {number}", "some words", "nowhere"):
                self.get(f"/api/v1/search?q={query.replace(' ', '+')}")
            for name in names:
                listed = self.get(f"/api/v1/sources/{name}/documents")["documents"]
                self.get(f"/api/v1/documents/{listed[number % len(listed)]['document']}/history")
                for page in (f"/sources/{name}", "/jobs", f"/?q={name}"):
                    with urlopen(self.url + page, timeout=60) as answer:
                        answer.read()
        try:
            self.get("/api/v1/sources/unknown")
        except HTTPError as error:
            error.close()

    def wait(self, job: str) -> None:
        while (found := self.get(f"/api/v1/jobs/{job}"))["completed_at"] is None:
            time.sleep(0.02)
        assert found["status"] == "completed", found


def _kept(url: str, folder: Path, *arguments: str) -> None:
    command = [sys.executable, "-m", "kept", "--database", url, *arguments]
    subprocess.run(command, check=True, capture_output=True, env=ENVIRONMENT | {"HOME": str(folder)})


@contextmanager
def _serving(url: str, folder: Path) -> Iterator[_Server]:
    log = folder / "server.log"
    command = [sys.executable, "-m", "kept", "--database", url, "serve", "--port", "0"]
    settings = {"HOME": str(folder), "KEPT_SERVE__REQUESTS_PER_MINUTE": "0"}
    with log.open("wb") as stderr, subprocess.Popen(command, stderr=stderr, env=ENVIRONMENT | settings) as server:
        try:
            while not (found := re.search(r"serves at (http://\S+?)/ ", log.read_text())):
                assert server.poll() is None, log.read_text()
                time.sleep(0.05)
            yield _Server(found[1], server.pid)
            assert server.poll() is None, log.read_text()[-2000:]
            assert "Traceback" not in log.read_text(), log.read_text()[-2000:]
        finally:
            server.terminate()


def main() -> None:
    parser = argparse.ArgumentParser("tests.crash.soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="sqlite")
    arguments = parser.parse_args()
    server = PostgresServer() if arguments.store == "postgres" else None
    try:
        with tempfile.TemporaryDirectory() as folder:
            if server:
                server.start()
            url = server.create_database() if server else f"sqlite:///{folder}/kept.db"
            found = soak(url, Path(folder), seconds=60 * arguments.minutes, rounds=MIN_ROUNDS)
    finally:
        if server:
            server.close()
    print(f"{len(found.process['memory'])} rounds, {found.refreshes} refreshes\n{found.report()}")
    if grown := found.grown():
        sys.exit(f"not level: {'; '.join(grown)}")


if __name__ == "__main__":
    main()
