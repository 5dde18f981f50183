"""Freeze a worker past its heartbeat, replace it by one of the same name, and wake it: it must not write any more.

python -m tests.crash.frozen_workers --store postgres --rounds 100
"""

import argparse
import random
import signal
import tempfile
import time
from pathlib import Path
from typing import Any

from tests.crash.state import reading
from tests.crash.workers import Workers, freeze, until
from tests.postgres import PostgresServer
from tests.sites.slow import SlowSite

WRITTEN = {
    "frontier": "SELECT url, outcome, batch, visited_at FROM frontier ORDER BY url",
    "job": "SELECT status, batch, attempt, n_new, last_heartbeat FROM crawl_jobs",
    "shown": "SELECT url, content_id FROM documents_active ORDER BY url",
}


def run_round(site: SlowSite, url: str, folder: Path, *, after: float, silent: float = 3.0) -> None:
    """Freeze a worker ``after`` seconds. Raises AssertionError if it is not replaced, or writes later."""
    with Workers(url, folder, enough=10_000, silent=silent) as workers:
        workers.kept("add", site.root, "--name", "slow", "--no-wait")
        frozen = workers.start("--name", "one")
        until(lambda: _rows(url, "SELECT count(*) FROM frontier WHERE worker_id IS NOT NULL")[0][0])
        lease = _rows(url, "SELECT CAST(id AS TEXT) FROM job_workers")[0][0]
        time.sleep(after)  # wherever it is then
        freeze(frozen)
        workers.start("--name", "one")  # the same name, another process
        until(lambda: _rows(url, "SELECT status FROM crawl_jobs")[0][0] == "completed", 60)
        before = {what: _rows(url, sql) for what, sql in WRITTEN.items()}
        frozen.send_signal(signal.SIGCONT)
        frozen.send_signal(signal.SIGTERM)
        assert frozen.wait(15) == 0, workers.logs()
        assert {what: _rows(url, sql) for what, sql in WRITTEN.items()} == before
        assert not _rows(url, f"SELECT 1 FROM job_workers WHERE CAST(id AS TEXT) = '{lease}'")
        attempt, retries, new = _rows(url, "SELECT attempt, retry_count, n_new FROM crawl_jobs")[0]
        assert (attempt >= 2, retries) == (True, 0), "it was taken over, and what made progress is not given up"
        assert (new, len(before["shown"])) == (len(site.pages), len(site.pages))


def _rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with reading(url) as db:
        return db.rows(sql)


def main() -> None:
    parser = argparse.ArgumentParser("tests.crash.frozen_workers", description=__doc__)
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--rounds", type=int, default=100)
    arguments = parser.parse_args()
    server = PostgresServer() if arguments.store == "postgres" else None
    try:
        if server:
            server.start()
        for number in range(arguments.rounds):
            with tempfile.TemporaryDirectory() as folder, SlowSite(pages=100, seconds=0.1) as site:
                url = server.create_database() if server else f"sqlite:///{folder}/kept.db"
                run_round(site, url, Path(folder), after=random.uniform(0.0, 0.8))
            print(f"round {number + 1}: replaced, and wrote nothing when it woke", flush=True)
    finally:
        if server:
            server.close()


if __name__ == "__main__":
    main()
