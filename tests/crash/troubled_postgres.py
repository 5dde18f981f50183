"""Check that a PostgreSQL in trouble costs the crawled site little, and that a crawl which cannot go on says why.

    python -m tests.crash.troubled_postgres                       all troubles, 2,000 pages, 2 and 8 workers

Workers crawl a quick site. Meanwhile the server cancels statements after 50 ms, or allows too few connections, or ends
all sessions again and again, or refuses every commit of a batch. Each crawl completes or fails with an error that
names the cause; the pages that were requested again are counted.
"""

import argparse
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import psycopg

from tests.crash.state import reading
from tests.crash.workers import Workers, until
from tests.postgres import PostgresServer
from tests.sites.slow import SlowSite

LIVE = ("pending", "processing", "paused")
PATIENCE = 300.0  # seconds, for one crawl

Trouble = Callable[[PostgresServer, str], AbstractContextManager[None]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TroubledCrawl:
    """How a crawl ended, and what it cost the site."""

    status: str
    error: str | None
    settled: int  # pages
    refetched: int  # pages
    logs: str
    seconds: float


@contextmanager
def refused_commits(server: PostgresServer, url: str) -> Iterator[None]:
    """Let the settling of an entry take longer than the server allows a statement to take."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(
            "CREATE FUNCTION slow_settle() RETURNS trigger LANGUAGE plpgsql AS"
            " $$ BEGIN PERFORM pg_sleep(60); RETURN new; END $$"
        )
        session.execute(
            "CREATE TRIGGER slow_settle BEFORE UPDATE ON frontier FOR EACH ROW"
            " WHEN (new.outcome IS NOT NULL) EXECUTE FUNCTION slow_settle()"
        )
    with slow_statements(server, url, limit="200ms"):
        yield


@contextmanager
def slow_statements(server: PostgresServer, url: str, *, limit: str = "50ms") -> Iterator[None]:
    """Let the server cancel every statement that takes longer than this."""
    with psycopg.connect(url, autocommit=True) as session:
        session.execute(f"ALTER DATABASE {_database(url)} SET statement_timeout = '{limit}'")
        _end_sessions(session)  # the setting is for new ones
    yield


@contextmanager
def few_connections(server: PostgresServer, url: str) -> Iterator[None]:
    """Allow three connections to the database, of which each worker wants several."""
    with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
        admin.execute(f"ALTER DATABASE {_database(url)} CONNECTION LIMIT 3")
        admin.execute(f"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = '{_database(url)}'")
    yield


@contextmanager
def ended_sessions(server: PostgresServer, url: str) -> Iterator[None]:
    """End all sessions five times a second."""
    done = threading.Event()

    def end_until_done() -> None:
        while not done.wait(0.2):
            with suppress(psycopg.OperationalError), psycopg.connect(url, autocommit=True) as session:
                _end_sessions(session)

    thread = threading.Thread(target=end_until_done)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def crawl_in_trouble(
    server: PostgresServer,
    folder: Path,
    trouble: Trouble,
    *,
    pages: int,
    workers: int,
    backoff: float = 1.0,
    begin_after: int = 100,
) -> TroubledCrawl:
    """Crawl a site, with trouble from the moment on at which some pages are settled, until the job has ended."""
    url = server.create_database()
    with (
        SlowSite(pages=pages, seconds=0.005) as site,
        Workers(url, folder, enough=20, heartbeat=5.0, silent=60.0, backoff=backoff) as crew,
    ):
        crew.kept("add", site.root, "--name", "quick", "--no-wait")
        for _ in range(workers):
            crew.start()
        until(lambda: _settled(url) >= begin_after, 60)
        started = time.monotonic()
        with trouble(server, url):
            until(lambda: _ended(server, url), PATIENCE)
        seconds = time.monotonic() - started
        with psycopg.connect(server.url("postgres"), autocommit=True) as admin:
            admin.execute(f"ALTER DATABASE {_database(url)} RESET ALL")
            admin.execute(f"ALTER DATABASE {_database(url)} CONNECTION LIMIT -1")
        (status, error), *_ = _rows(url, "SELECT status, error_message FROM crawl_jobs")
        return TroubledCrawl(
            status=str(status),
            error=str(error) if error else None,
            settled=_settled(url),
            refetched=sum(site.pages.values()) - len(site.pages),
            logs=crew.logs(),
            seconds=seconds,
        )


def _end_sessions(session: "psycopg.Connection[tuple[object, ...]]") -> None:
    session.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    )


def _settled(url: str) -> int:
    return int(str(_rows(url, "SELECT count(*) FROM frontier WHERE outcome IS NOT NULL")[0][0]))


def _ended(server: PostgresServer, url: str) -> bool:
    with suppress(psycopg.OperationalError):  # it is in trouble for us too
        return _rows(url, "SELECT status FROM crawl_jobs")[0][0] not in LIVE
    return False


def _rows(url: str, sql: str) -> list[tuple[object, ...]]:
    with reading(url) as db:
        return db.rows(sql)


def _database(url: str) -> str:
    return urlsplit(url).path.removeprefix("/")


def main() -> None:
    parser = argparse.ArgumentParser("tests.crash.troubled_postgres", description=__doc__)
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--workers", type=int, nargs="+", default=[2, 8])
    parser.add_argument("--trouble", nargs="+")
    arguments = parser.parse_args()
    troubles = {
        "refused commits": refused_commits,
        "slow statements": slow_statements,
        "few connections": few_connections,
        "ended sessions": ended_sessions,
    }
    server = PostgresServer()
    server.start()
    try:
        for workers in arguments.workers:
            for name in arguments.trouble or troubles:
                with tempfile.TemporaryDirectory() as folder:
                    crawl = crawl_in_trouble(
                        server, Path(folder), troubles[name], pages=arguments.pages, workers=workers
                    )
                print(
                    f"{name}, {workers} workers: {crawl.status} after {crawl.seconds:.0f} s, {crawl.settled} settled,"
                    f" {crawl.refetched} of {arguments.pages} pages requested again; {crawl.error}",
                    flush=True,
                )
                assert crawl.refetched <= 2 * arguments.pages
    finally:
        server.close()


if __name__ == "__main__":
    main()
