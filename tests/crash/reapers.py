"""Kill reapers in the middle of a pass, then run two at once: no job is stuck, and each failure counts once.

python -m tests.crash.reapers --rounds 20 --jobs 500
"""

import argparse
import asyncio
import random
import subprocess
import sys
from datetime import timedelta

from kept.jobs import queue
from kept.maintenance.reaper import Reaper
from tests.contract.databases import run_sql
from tests.crash.crawler import ENVIRONMENT
from tests.crash.state import reading
from tests.crash.workers import until
from tests.factories import ROOT, database_at, make_lease, make_source
from tests.postgres import PostgresServer


def run_round(url: str, *, jobs: int) -> int:
    """Return how many jobs the killed reaper had requeued. Raises AssertionError if one is stuck, or counted twice."""
    asyncio.run(make_stalled_jobs(url, jobs))
    enough = random.randrange(1, jobs // 2)
    with start(url) as first:
        until(lambda: jobs - left(url) >= enough)
        first.kill()
    reaped = jobs - left(url)
    with start(url) as second, start(url) as third:
        assert (second.wait(60), third.wait(60)) == (0, 0)
    with reading(url) as db:
        found = db.rows("SELECT status, retry_count, count(*) FROM crawl_jobs GROUP BY status, retry_count")
        assert found == [("pending", 1, jobs)], found
        assert db.rows("SELECT count(*) FROM job_workers") == [(0,)]
    return reaped


async def make_stalled_jobs(url: str, jobs: int) -> None:
    """Insert jobs whose workers, on other machines, have been silent for three minutes."""
    async with database_at(url) as db:
        for number in range(jobs):
            await queue.enqueue(db, (await make_source(db, f"s{number}", root=f"{ROOT}{number}/")).id)
            await make_lease(db)
        async with db.transaction() as tx:
            await run_sql(tx, "UPDATE job_workers SET last_heartbeat = ago(180)")


async def reap(url: str) -> None:
    async with database_at(url) as db:
        await Reaper(timedelta(minutes=2)).reap(db)


def start(url: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-m", "tests.crash.reapers", "--reap", url], env=ENVIRONMENT)


def left(url: str) -> int:
    with reading(url) as db:
        return int(db.rows("SELECT count(*) FROM job_workers")[0][0])


def main() -> None:
    parser = argparse.ArgumentParser("tests.crash.reapers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=20)
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--reap", metavar="URL", help="only run one pass")
    arguments = parser.parse_args()
    if arguments.reap:
        asyncio.run(reap(arguments.reap))
        return
    server = PostgresServer()
    try:
        server.start()
        for number in range(arguments.rounds):
            reaped = run_round(server.create_database(), jobs=arguments.jobs)
            print(
                f"round {number + 1}: killed after {reaped} of {arguments.jobs}; two went on; each counted once",
                flush=True,
            )
    finally:
        server.close()


if __name__ == "__main__":
    main()
