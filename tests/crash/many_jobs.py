"""Run many small jobs with many workers: each job is run once, by priority.

python -m tests.crash.many_jobs --store postgres --jobs 10000 --workers 32
python -m tests.crash.many_jobs --store sqlite --jobs 1000 --workers 8
"""

import argparse
import asyncio
import random
import tempfile
import time
from pathlib import Path
from typing import Any

from kept.jobs import queue
from kept.model.source import SourceKind
from kept.model.url import file_url
from tests.crash.state import reading
from tests.crash.workers import Workers, until
from tests.factories import database_at, make_source
from tests.postgres import PostgresServer

PRIORITIES = 5
AT_ONCE = 0.5  # seconds: claims that are closer than this are made at the same time


async def enqueue_jobs(url: str, folder: Path, jobs: int, chance: random.Random) -> None:
    """Enqueue a number of sources of one file each, before any worker starts."""
    async with database_at(url) as db:
        for number in range(jobs):
            file = folder / f"{number % 100}" / f"{number}.md"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"# Number {number}\n\nThis is the only page of source {number}.\n")
            source = await make_source(db, f"s{number}", root=file_url(str(file)), kind=SourceKind.FOLDER)
            await queue.enqueue(db, source.id, priority=chance.randrange(PRIORITIES))


def run(url: str, folder: Path, *, jobs: int, workers: int, chance: random.Random, seconds: float = 120.0) -> float:
    """Return the seconds of the workers. Raises AssertionError if a job ran not once, or in a wrong order."""
    (folder / "docs").mkdir()
    asyncio.run(enqueue_jobs(url, folder / "docs", jobs, chance))
    began = time.monotonic()
    with Workers(url, folder, heartbeat=10, silent=120) as crew:
        for _ in range(workers):
            crew.start("--concurrency", "1")
        until(lambda: _live(url) == 0, seconds)
        took = time.monotonic() - began
        until(lambda: _rows(url, "SELECT count(*) FROM job_workers") == [(0,)])  # each leaves when its job has ended
        logs = crew.logs()
    assert not {"deadlock", "reaped"} & set(logs.split()), _odd(logs)
    with reading(url) as db:
        ended = db.rows("SELECT status, attempt, n_new, count(*) FROM crawl_jobs GROUP BY status, attempt, n_new")
        assert ended == [("completed", 1, 1, jobs)], f"{ended}\n{_odd(logs)}"
        assert db.rows("SELECT state, count(*) FROM generations GROUP BY state") == [("active", jobs)]
        assert db.rows("SELECT count(*) FROM documents_active") == [(jobs,)]
        rows = db.rows("SELECT priority, started_at FROM crawl_jobs")
    _check_order([(priority, _seconds(started)) for priority, started in rows])
    return took


def _odd(logs: str) -> str:
    """Return the unexpected lines of the workers' logs."""
    return "\n".join(line for line in logs.splitlines() if "crawl started" not in line and "crawl ended" not in line)


def _live(url: str) -> int:
    return int(_rows(url, "SELECT count(*) FROM crawl_jobs WHERE status IN ('pending', 'processing')")[0][0])


def _rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with reading(url) as db:
        return db.rows(sql)


def _check_order(started: list[tuple[int, float]]) -> None:
    """Check that no job started while one of higher priority had been waiting for longer than a claim takes."""
    for priority in range(PRIORITIES):
        higher = [at for other, at in started if other > priority]
        mine = [at for other, at in started if other == priority]
        if higher and mine:
            assert min(mine) >= max(higher) - AT_ONCE, f"priority {priority} was not waiting for its turn"


def _seconds(moment: object) -> float:
    from kept.store.database import parse_time

    return parse_time(moment).timestamp()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m tests.crash.many_jobs")
    parser.add_argument("--store", choices=["sqlite", "postgres"], default="postgres")
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--workers", type=int, default=32)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        server = PostgresServer() if arguments.store == "postgres" else None
        try:
            if server:
                server.start()
            url = server.create_database() if server else f"sqlite:///{folder}/kept.db"
            took = run(
                url,
                Path(folder),
                jobs=arguments.jobs,
                workers=arguments.workers,
                chance=random.Random(),
                seconds=3600,
            )
        finally:
            if server:
                server.close()
    print(f"{arguments.jobs} jobs by {arguments.workers} workers in {took:.0f} s: each once, in the order of priority")
