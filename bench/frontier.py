"""Measure leasing, settling and resuming with frontiers of different sizes.

    python -m bench.frontier [--waiting 10000 1000000] [--rounds 40]

A job has this number of waiting URLs, on SQLite and on PostgreSQL. Batches of 200 are leased, and settled with 400
links each, half of them new. Then the worker is killed and another one resumes: it reaps, claims, begins and leases.
Prints medians in milliseconds, and their ratio to the shortest frontier. Target: 1.5 ×.
"""

import argparse
import asyncio
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from kept.crawl.decide import NotKept, VisitResult
from kept.crawl.settle import commit_batch
from kept.crawl.start import start_generation
from kept.jobs import queue
from kept.jobs.worker import this_host
from kept.maintenance.reaper import Reaper
from kept.model.frontier import DiscoveredUrl, FrontierEntry, Outcome
from kept.model.ids import new_id
from kept.model.job import CrawlJob, Lease
from kept.store import frontier, jobs
from kept.store.database import Database
from tests.factories import ROOT, database_at, make_source
from tests.postgres import PostgresServer

BATCH = 200
LINKS = 400
RESUMED = 5

T = TypeVar("T")


class Costs:
    """The duration of each step, in milliseconds."""

    def __init__(self) -> None:
        self._took: dict[str, list[float]] = defaultdict(list)

    async def of(self, step: str, doing: Awaitable[T]) -> T:
        began = time.perf_counter()
        result = await doing
        self._took[step].append(1000 * (time.perf_counter() - began))
        return result

    def median(self, step: str) -> float:
        return statistics.median(self._took[step])


def main() -> None:
    parser = argparse.ArgumentParser("bench.frontier", description=__doc__)
    parser.add_argument("--waiting", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--rounds", type=int, default=40)
    arguments = parser.parse_args()
    print("| database | waiting | lease 200 | settle 200 | resume after a kill |\n| --- | ---: | ---: | ---: | ---: |")
    with tempfile.TemporaryDirectory(prefix="bench") as folder:
        _row("SQLite", lambda size: f"sqlite:///{folder}/{size}.db", arguments.waiting, arguments.rounds)
    server = PostgresServer()
    server.start()
    try:
        _row("PostgreSQL", lambda size: server.create_database(), arguments.waiting, arguments.rounds)
    finally:
        server.close()


def _row(name: str, database: Callable[[int], str], sizes: list[int], rounds: int) -> None:
    first: Costs | None = None
    for size in sizes:
        costs = asyncio.run(_measured(database(size), size, rounds))
        first = first or costs
        cells = [
            f"{costs.median(step):.1f} ms ({costs.median(step) / first.median(step):.2f} ×)"
            for step in ("lease", "settle", "resume")
        ]
        print(f"| {name} | {size:,} | {' | '.join(cells)} |", flush=True)


async def _measured(url: str, waiting: int, rounds: int) -> Costs:
    costs = Costs()
    async with database_at(url) as db:
        source = await make_source(db)
        queued = await queue.enqueue(db, source.id)
        lease, job, _ = await _resume(db, queued.id)
        await _fill(db, job, waiting)
        for number in range(rounds):
            entries = await costs.of("lease", _lease(db, lease))
            job = await costs.of("settle", _settle(db, lease, job, entries, number))
        for number in range(rounds, rounds + RESUMED):  # with a batch between: a job without progress is given up
            lease, job, entries = await costs.of("resume", _resume(db, job.id))
            job = await _settle(db, lease, job, entries, number)
    return costs


async def _fill(db: Database, job: CrawlJob, waiting: int) -> None:
    for start in range(0, waiting, 20_000):
        size = min(20_000, waiting - start)
        async with db.transaction() as tx:
            await frontier.insert(tx, job.id, [_found(start + number) for number in range(size)])


def _found(number: int) -> DiscoveredUrl:
    return DiscoveredUrl(url=f"{ROOT}{number % 97}/page-{number}.html", depth=1, parent=ROOT)


async def _lease(db: Database, lease: Lease) -> list[FrontierEntry]:
    async with db.transaction() as tx:
        await jobs.lock_lease(tx, lease)
        return await frontier.lease(tx, lease.job_id, lease_id=lease.id, limit=BATCH)


async def _settle(db: Database, lease: Lease, job: CrawlJob, entries: list[FrontierEntry], number: int) -> CrawlJob:
    visited = [
        VisitResult(entry=entry, decision=NotKept(outcome=Outcome.SKIPPED, reason="a bench")) for entry in entries
    ]
    known = [_found(number * LINKS + one) for one in range(LINKS // 2)]
    new = [_found(10_000_000 + number * LINKS + one) for one in range(LINKS // 2)]
    return await commit_batch(db, lease, job, visited, [*known, *new], signature="")


async def _resume(db: Database, job_id: str) -> tuple[Lease, CrawlJob, list[FrontierEntry]]:
    """Take over a job whose worker died, up to the first leased entries."""
    await Reaper(timedelta(minutes=2)).reap(db)
    async with db.transaction(durable=True) as tx:
        claimed = await jobs.claim(tx, worker=new_id(), job=job_id)
        assert claimed is not None, "it waits for a worker"
        lease = Lease(
            id=new_id(),
            job_id=job_id,
            worker_name="bench",
            host=this_host(),
            pid=0,  # no process has this id, so the worker counts as dead
            process_started="",
            attempt=claimed.attempt,
        )
        await jobs.acquire_lease(tx, lease)
    job = await start_generation(db, lease, lists_everything=False)
    return lease, job, await _lease(db, lease)


if __name__ == "__main__":
    main()
