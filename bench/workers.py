"""Measure how a crawl of one source scales with the number of workers, and the latency of a new job.

    python -m bench.workers [--pages 1200] [--seconds 0.05] [--only-latency]

A site whose responses take 50 ms is crawled by 1, 2 and 4 workers on PostgreSQL. Each worker has at most four
concurrent requests; the budget of the host is 32 concurrent requests, then 4. Seconds count from the first request to
the end of the job. Targets: 1.8 × with two workers, 3 × with four; with a budget of 4 the server never sees more than
4 at once, and no page is visited twice. Latency is from the commit of a job to the first request, with an idle worker.
Target: 100 ms.
"""

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from pathlib import Path

from kept.service import jobs
from tests.crash.state import reading
from tests.crash.workers import Workers, until
from tests.factories import database_at
from tests.postgres import PostgresServer
from tests.sites.slow import SlowSite

AT_ONCE = 4  # concurrent requests per worker
JOBS = 10


def main() -> None:
    parser = argparse.ArgumentParser("bench.workers", description=__doc__)
    parser.add_argument("--pages", type=int, default=1200)
    parser.add_argument("--seconds", type=float, default=0.05)
    parser.add_argument("--only-latency", action="store_true")
    arguments = parser.parse_args()
    server = PostgresServer()
    server.start()
    try:
        if not arguments.only_latency:
            _compare(server, arguments.pages, arguments.seconds)
        _print_latency(server)
    finally:
        server.close()


def _compare(server: PostgresServer, pages: int, seconds: float) -> None:
    print("| host budget | workers | seconds | pages/s | speed-up | most at once | visited twice |")
    print("| ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for budget in (32, 4):
        alone = 0.0
        for number in (1, 2, 4):
            with SlowSite(pages=pages, seconds=seconds) as site:
                took = _measure_crawl(server.create_database(), site, number, budget, enough=min(400, pages // 30))
                alone = alone or took
                twice = sum(times > 1 for times in site.pages.values())
                print(
                    f"| {budget} | {number} | {took:.1f} | {pages / took:.0f} | {alone / took:.2f} × |"
                    f" {site.most_at_once} | {twice} |",
                    flush=True,
                )


def _measure_crawl(url: str, site: SlowSite, number: int, budget: int, *, enough: int) -> float:
    """Return the seconds from the first request to the end of the job."""
    with tempfile.TemporaryDirectory(prefix="bench") as folder, _workers(url, Path(folder), enough) as workers:
        for _ in range(number):
            workers.start()
        until(lambda: workers.logs().count("worker started") == number, 60)
        site.requested.clear()
        added = workers.kept("add", site.root, "--name", "slow", "--concurrency", str(budget), "--no-wait")
        until(lambda: _has_ended(url), 3600)
        took = time.monotonic() - site.first_request_at
        assert workers.kept("job", added["job"])["status"] == "completed", workers.logs()
        return took


def _has_ended(url: str) -> bool:
    with reading(url) as db:
        return not db.rows("SELECT 1 FROM crawl_jobs WHERE status IN ('pending', 'processing')")


def _print_latency(server: PostgresServer) -> None:
    url = server.create_database()
    with (
        SlowSite(pages=1, seconds=0.0) as site,
        tempfile.TemporaryDirectory(prefix="bench") as folder,
        _workers(url, Path(folder), 400) as workers,
    ):
        workers.start()
        workers.kept("add", site.root, "--name", "slow")
        took = sorted(asyncio.run(_latencies(url, site)))
    print(
        f"\nFrom the commit of a job to the first request, {len(took)} jobs: median {statistics.median(took):.0f} ms,"
        f" slowest {took[-1]:.0f} ms."
    )


async def _latencies(url: str, site: SlowSite) -> list[float]:
    took = []
    async with database_at(url) as db:
        for _ in range(JOBS):
            await asyncio.sleep(1.0)  # until the worker is idle again
            site.requested.clear()
            await jobs.request_crawl(db, "slow")
            committed = time.monotonic()
            assert await asyncio.to_thread(site.requested.wait, 30), "no request arrived"
            took.append(1000 * (site.first_request_at - committed))
            await asyncio.to_thread(until, lambda: _has_ended(url))
    return took


def _workers(url: str, folder: Path, enough: int) -> Workers:
    return Workers(url, folder, enough=enough, heartbeat=10, silent=120, module="bench.workers")


def work() -> None:
    """Run `kept …` with a limit on the concurrent requests of a crawl, whatever its share of the host's budget."""
    from kept.cli.main import main as kept
    from kept.jobs import worker
    from kept.origins.web.rate_limiter import CrawlSlots

    allot = CrawlSlots.allot

    def allot_at_most(self: CrawlSlots, slots: int, *, crawlers: int = 1, valid_seconds: float) -> None:
        allot(self, min(AT_ONCE, slots), crawlers=crawlers, valid_seconds=valid_seconds)

    CrawlSlots.allot = allot_at_most  # type: ignore[method-assign]
    worker.MIN_ENTRIES_TO_JOIN = int(sys.argv.pop(1))
    kept()


if __name__ == "__main__":
    work() if len(sys.argv) > 1 and sys.argv[1].isdigit() else main()
