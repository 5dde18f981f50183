"""PostgreSQL fails under a crawl. The long form: ``python -m tests.crash.failing_postgres``."""

from pathlib import Path

from tests.crash.failing_postgres import compare, crawled, end_sessions, freeze, restart
from tests.postgres import PostgresServer
from tests.sites.slow import SlowSite


def test_a_crawl_whose_database_fails_under_it_ends_like_one_in_peace(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        with SlowSite(pages=60, seconds=0.2) as site:
            peace, _ = crawled(site, server, tmp_path)
            print("sessions ended:", compare(site, server, tmp_path, peace, end_sessions))
            print("restarted:", compare(site, server, tmp_path, peace, restart(20)))
            # Twice as long as a worker tries to say that it is alive.
            print("frozen:", compare(site, server, tmp_path, peace, freeze(2.5)))
    finally:
        server.close()
