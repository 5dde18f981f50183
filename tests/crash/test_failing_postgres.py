"""PostgreSQL fails under a crawl. The long form: ``python -m tests.crash.failing_postgres``."""

from pathlib import Path

from tests.crash.failing_postgres import compare, crawled, end_sessions, freeze, restart
from tests.crash.troubled_postgres import crawl_in_trouble, ended_sessions, refused_commits
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


def test_a_database_that_refuses_every_batch_does_not_hammer_the_site(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    crawl = crawl_in_trouble(postgres_server, tmp_path, refused_commits, pages=300, workers=2, backoff=0.05)
    assert crawl.status == "failed"
    assert "statement timeout" in str(crawl.error), "the error names the cause"
    assert 100 <= crawl.settled < 300, "what was committed before is not lost"
    assert crawl.refetched <= 2 * 300
    assert crawl.logs.count("database in trouble") > crawl.logs.count("crawl interrupted") >= 4, (
        "a batch is tried again"
    )


def test_a_crawl_whose_sessions_are_ended_again_and_again_fetches_each_page_about_once(
    tmp_path: Path, postgres_server: PostgresServer
) -> None:
    crawl = crawl_in_trouble(postgres_server, tmp_path, ended_sessions, pages=300, workers=2)
    assert (crawl.status, crawl.error, crawl.settled) == ("completed", None, 301)
    assert crawl.refetched <= 300
