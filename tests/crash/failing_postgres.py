"""Check that crawls with a failing PostgreSQL end like undisturbed ones.

    python -m tests.crash.failing_postgres                        all three failures, long
    python -m tests.crash.failing_postgres --restarts 50 --frozen 60

Two workers crawl a slow site. Meanwhile every session of the server is ended, five times a second; or the server is
restarted, without warning, again and again; or it is frozen. The final state of the database is compared with an
undisturbed crawl of the same site.
"""

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import psycopg

from tests.crash.state import State, difference, everything, reading
from tests.crash.workers import Workers, until
from tests.postgres import PostgresServer
from tests.sites.slow import SlowSite

EVERY = 0.2  # seconds, between two rounds in which all sessions are ended
PATIENCE = 180.0  # seconds, for one crawl
ENOUGH = 10  # open entries: then another worker joins
LIVE = ("pending", "processing", "paused")

Disturb = Callable[[PostgresServer, str, Callable[[], bool]], int]
"""Disturbs a server with a database, as long as a crawl has not ended; how often it did."""


def end_sessions(server: PostgresServer, url: str, ended: Callable[[], bool]) -> int:
    """End all sessions every 200 ms."""
    rounds, until = 0, time.monotonic() + PATIENCE
    while not ended():
        assert time.monotonic() < until, "the crawl makes no progress"
        with psycopg.connect(url, autocommit=True) as session:
            session.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        rounds += 1
        time.sleep(EVERY)
    return rounds


def restart(times: int) -> Disturb:
    """Kill and restart the server a number of times, or until the crawl ends."""

    def disturb(server: PostgresServer, url: str, ended: Callable[[], bool]) -> int:
        for number in range(times):
            if ended():
                return number
            server.restart("immediate")
            time.sleep(0.2)  # long enough for a batch, now and then
        return times

    return disturb


def freeze(seconds: float) -> Disturb:
    """Freeze the server and all its sessions."""

    def disturb(server: PostgresServer, url: str, ended: Callable[[], bool]) -> int:
        with server.frozen():
            time.sleep(seconds)
        return 1

    return disturb


def crawled(site: SlowSite, server: PostgresServer, folder: Path, disturb: Disturb | None = None) -> tuple[State, int]:
    """Crawl with two workers. Returns the final state and the number of disturbances."""
    url = server.create_database()
    with Workers(url, folder, enough=ENOUGH, heartbeat=0.2, silent=120.0) as workers:
        workers.kept("add", site.root, "--name", "slow", "--no-wait")
        workers.start()
        workers.start()
        until(lambda: len(site.pages) > 3, 60)
        rounds = disturb(server, url, lambda: _has_ended(url)) if disturb else 0
        until(lambda: _has_ended(url), PATIENCE)
        until(lambda: not _rows(url, "SELECT 1 FROM job_workers"), 60)
        assert all(worker.poll() is None for worker in workers.running), workers.logs()
        assert "worker reaped" not in workers.logs(), "a database that fails costs no retries"
        assert "crawl failed" not in workers.logs()
    return everything(url), rounds


def compare(site: SlowSite, server: PostgresServer, folder: Path, peace: State, disturb: Disturb) -> str:
    """Return a summary. Raises AssertionError if the final state differs from the undisturbed one."""
    site.visits.clear()
    state, rounds = crawled(site, server, folder, disturb)
    assert not (found := difference(state, peace)), found
    assert rounds, "nothing disturbed it"
    again = sum(site.pages.values()) - len(site.pages)
    return f"{rounds} times; equal; {again} of {len(site.pages)} pages asked for again"


def _has_ended(url: str) -> bool:
    try:
        return _rows(url, "SELECT status FROM crawl_jobs")[-1][0] not in LIVE
    except psycopg.OperationalError:
        return False


def _rows(url: str, sql: str) -> list[tuple[object, ...]]:
    with reading(url) as db:
        return db.rows(sql)


def main() -> None:
    parser = argparse.ArgumentParser("tests.crash.failing_postgres", description=__doc__)
    parser.add_argument("--pages", type=int, default=400)
    parser.add_argument("--restarts", type=int, default=50)
    parser.add_argument("--frozen", type=float, default=60.0)
    arguments = parser.parse_args()
    ways = {
        "sessions ended": end_sessions,
        "restarts": restart(arguments.restarts),
        f"frozen for {arguments.frozen:.0f} s": freeze(arguments.frozen),
    }
    server = PostgresServer()
    server.start()
    try:
        with tempfile.TemporaryDirectory() as folder, SlowSite(pages=arguments.pages, seconds=0.5) as site:
            peace, _ = crawled(site, server, Path(folder))
            for name, disturb in ways.items():
                print(f"{name}: {compare(site, server, Path(folder), peace, disturb)}", flush=True)
    finally:
        server.close()


if __name__ == "__main__":
    main()
