"""Workers that are frozen, killed, interrupted, paused; alone and many at one job."""

import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.crash import files, frozen_workers, reapers
from tests.crash.state import reading
from tests.crash.workers import Workers, freeze, until
from tests.postgres import PostgresServer
from tests.sites.slow import SlowSite

LIVE = ("pending", "processing", "paused")


def rows(url: str, sql: str) -> list[tuple[Any, ...]]:
    with reading(url) as db:
        return db.rows(sql)


def status(url: str) -> str:
    return str(rows(url, "SELECT status FROM crawl_jobs ORDER BY created_at")[-1][0])


def ended(url: str) -> bool:
    return status(url) not in LIVE


@pytest.fixture
def postgres(postgres_server: PostgresServer) -> Iterator[str]:
    url = postgres_server.create_database()
    yield url
    postgres_server.drop_database(url)


# Many at one job -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("number", [3])
def test_many_workers_crawl_one_job_without_visiting_a_page_twice_or_exceeding_the_host_budget(
    postgres: str, tmp_path: Path, number: int
) -> None:
    with (
        SlowSite(pages=160, seconds=0.1) as site,
        Workers(postgres, tmp_path, enough=10, heartbeat=10, silent=120) as workers,
    ):
        workers.kept("add", site.root, "--name", "slow", "--concurrency", "4", "--no-wait")
        for _ in range(number):
            workers.start()
        most = 0
        while not ended(postgres):
            most = max(most, rows(postgres, "SELECT count(*) FROM job_workers")[0][0])
            time.sleep(0.05)
        assert most == number, workers.logs()
        assert status(postgres) == "completed"
        assert set(site.pages.values()) == {1}
        assert len(site.pages) == 161
        assert site.most_at_once <= 4
        assert rows(postgres, "SELECT count(*) FROM documents_active") == [(161,)]
        assert rows(postgres, "SELECT count(*) FROM generations WHERE state = 'active'") == [(1,)]
        batches = rows(postgres, "SELECT DISTINCT batch FROM frontier ORDER BY batch")
        assert batches[-1][0] <= rows(postgres, "SELECT batch FROM crawl_jobs")[0][0]


def test_killing_one_of_several_workers_changes_nothing_in_the_end(postgres: str, tmp_path: Path) -> None:
    patient = Workers(postgres, tmp_path, enough=10, heartbeat=5, silent=60)
    with SlowSite(pages=200, seconds=0.1) as site, patient as workers:
        workers.kept("add", site.root, "--name", "slow", "--concurrency", "4", "--no-wait")
        first = workers.start()
        until(lambda: rows(postgres, "SELECT count(*) FROM job_workers")[0][0] == 1)
        lease = rows(postgres, "SELECT CAST(id AS TEXT) FROM job_workers")[0][0]
        workers.start()
        until(lambda: rows(postgres, "SELECT count(*) FROM job_workers")[0][0] == 2)
        freeze(first)
        leased = rows(postgres, f"SELECT count(*) FROM frontier WHERE worker_id = '{lease}'")[0][0]
        first.kill()
        until(lambda: ended(postgres), 60)
        assert status(postgres) == "completed"
        assert rows(postgres, "SELECT count(*) FROM documents_active") == [(201,)]
        assert sum(site.pages.values()) <= 201 + leased, "what was under way is visited again, and nothing else"


def test_a_limit_holds_for_any_number_of_workers(postgres: str, tmp_path: Path) -> None:
    with SlowSite(pages=200, seconds=0.05) as site, Workers(postgres, tmp_path, enough=10, silent=60) as workers:
        workers.kept("add", site.root, "--name", "slow", "--max-pages", "90", "--no-wait")
        for _ in range(3):
            workers.start()
        until(lambda: ended(postgres), 60)
        assert rows(postgres, "SELECT count(*) FROM documents_active") == [(90,)]
        assert rows(postgres, "SELECT partial FROM generations") == [("limit",)]


# Frozen, killed, restarted -------------------------------------------------------------------------------------


def test_a_worker_frozen_past_its_heartbeat_writes_nothing_when_it_wakes(database_url: str, tmp_path: Path) -> None:
    with SlowSite(pages=60, seconds=0.05) as site:
        frozen_workers.run_round(site, database_url, tmp_path, after=0.0)


def test_reapers_that_are_killed_and_two_at_once_leave_no_job_stuck_and_count_each_failure_once(postgres: str) -> None:
    reapers.run_round(postgres, jobs=60)


def test_a_worker_that_is_interrupted_releases_its_job_and_the_next_one_continues_it(
    database_url: str, tmp_path: Path
) -> None:
    patient = Workers(
        database_url, tmp_path, heartbeat=5, silent=60
    )  # so that a busy machine does not make it stop earlier
    with SlowSite(pages=60, seconds=0.1) as site, patient as workers:
        workers.kept("add", site.root, "--name", "slow", "--concurrency", "4", "--no-wait")
        first = workers.start()
        until(lambda: len(site.pages) > 30)
        site.open.clear()  # now nothing is answered any more
        began = time.monotonic()
        first.send_signal(signal.SIGTERM)
        assert first.wait(15) == 0, workers.logs()
        assert time.monotonic() - began < 10
        assert rows(database_url, "SELECT status, retry_count FROM crawl_jobs") == [("pending", 0)]
        assert rows(database_url, "SELECT count(*) FROM job_workers") == [(0,)]
        site.open.set()
        workers.start()
        until(lambda: ended(database_url), 60)
        assert status(database_url) == "completed"
        assert rows(database_url, "SELECT count(*) FROM documents_active") == [(61,)]
        assert sum(site.pages.values()) <= 61 + 16, f"only what was under way is visited again\n{workers.logs()}"


def test_a_worker_that_is_interrupted_twice_stops_at_once(database_url: str, tmp_path: Path) -> None:
    with SlowSite(pages=10, seconds=0.05) as site, Workers(database_url, tmp_path) as workers:
        site.open.clear()
        workers.kept("add", site.root, "--name", "slow", "--no-wait")
        worker = workers.start()
        until(lambda: site.visits)
        worker.send_signal(signal.SIGINT)
        worker.send_signal(signal.SIGINT)
        assert worker.wait(5) in (0, 130)


# Pause and cancel ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("silent_from", ["/robots.txt", "/page/"])
@pytest.mark.parametrize("command", ["pause", "cancel"])
def test_pausing_and_cancelling_take_effect_within_two_seconds_while_a_server_is_slow(
    tmp_path: Path, command: str, silent_from: str
) -> None:
    url = f"sqlite:///{tmp_path}/kept.db"
    with SlowSite(pages=40, seconds=0.05) as site, Workers(url, tmp_path, silent=60) as workers:
        if silent_from == "/robots.txt":
            site.open.clear()
        job = workers.kept("add", site.root, "--name", "slow", "--concurrency", "2", "--no-wait")["job"]
        workers.start()
        until(lambda: any(path.startswith(silent_from) for path in list(site.visits)))
        site.open.clear()
        shown = workers.kept(command, job[:13])
        assert (shown["id"], shown["status"]) == (job, {"pause": "paused", "cancel": "cancelled"}[command])
        began = time.monotonic()
        until(lambda: rows(url, "SELECT count(*) FROM job_workers") == [(0,)], 5)
        assert time.monotonic() - began < 2
        site.open.set()
        if command == "cancel":
            assert workers.kept("list")["sources"][0]["state"] == "empty"
            return
        workers.kept("refresh", "slow", code=4)
        workers.kept("resume", job)
        until(lambda: ended(url))
        assert workers.kept("job", job)["progress"]["new"] == 41


def test_a_pause_takes_two_seconds_at_most_and_after_a_restart_of_everything_no_finished_page_is_visited(
    database_url: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    with SlowSite(pages=40, seconds=0.1) as site, Workers(database_url, tmp_path, silent=60) as workers:
        job = workers.kept("add", site.root, "--name", "slow", "--concurrency", "4", "--no-wait")["job"]
        first = workers.start()
        until(lambda: rows(database_url, "SELECT count(*) FROM frontier WHERE outcome IS NOT NULL")[0][0])
        site.open.clear()  # whatever is under way now takes for ever
        workers.kept("pause", job)
        began = time.monotonic()
        until(lambda: rows(database_url, "SELECT count(*) FROM job_workers") == [(0,)], 5)
        assert time.monotonic() - began < 2
        visits = sum(site.pages.values())
        site.open.set()
        first.kill()
        first.wait()
        if not database_url.startswith("sqlite"):
            request.getfixturevalue("postgres_server").restart("fast")
        assert rows(database_url, "SELECT status FROM crawl_jobs") == [("paused",)]
        finished = {url for (url,) in rows(database_url, "SELECT url FROM frontier WHERE outcome IS NOT NULL")}
        workers.start()
        assert sum(site.pages.values()) == visits, "no request is sent while it is paused"
        site.visits.clear()
        workers.kept("resume", job)
        until(lambda: ended(database_url), 60)
        assert status(database_url) == "completed"
        assert not finished & {site.root + path.removeprefix("/") for path in site.pages}
        assert rows(database_url, "SELECT count(*) FROM documents_active") == [(41,)]


def test_a_cancelled_refresh_leaves_what_was_live(tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path}/kept.db", tmp_path / "docs"
    files.plant(folder, 20)
    with Workers(url, tmp_path) as workers:
        workers.kept("add", str(folder), "--name", "docs")
        before = rows(url, "SELECT url FROM documents_active ORDER BY url")
        job = workers.kept("refresh", "docs", "--no-wait")["job"]
        workers.kept("cancel", job)
        assert rows(url, "SELECT url FROM documents_active ORDER BY url") == before
        assert workers.kept("jobs", "--status", "cancelled")["jobs"][0]["id"] == job


# Clocks --------------------------------------------------------------------------------------------------------

FAKETIME = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"), None)


@pytest.mark.skipif(FAKETIME is None, reason="libfaketime is not installed")
@pytest.mark.parametrize(("database_url", "days"), [("sqlite", 1), ("postgres", -1)], indirect=["database_url"])
def test_a_clock_that_steps_by_a_day_gets_no_worker_reaped(database_url: str, tmp_path: Path, days: int) -> None:
    clock = tmp_path / "clock"
    clock.write_text("+0d")
    faked = {
        "LD_PRELOAD": str(FAKETIME),
        "FAKETIME_TIMESTAMP_FILE": str(clock),
        "FAKETIME_NO_CACHE": "1",
        "FAKETIME_DONT_FAKE_MONOTONIC": "1",
    }
    patient = Workers(database_url, tmp_path, enough=10_000, heartbeat=2.0, silent=10)
    with SlowSite(pages=60, seconds=0.1) as site, patient as workers:
        workers.kept("add", site.root, "--name", "slow", "--concurrency", "2", "--no-wait")
        workers.start(environment=faked)
        until(lambda: len(site.pages) > 5)
        workers.start()  # its reaper has another clock
        clock.write_text(f"{days:+}d")
        until(lambda: ended(database_url), 60)
        assert rows(database_url, "SELECT status, attempt, retry_count FROM crawl_jobs") == [("completed", 1, 0)]
        assert "worker reaped" not in workers.logs()
        assert set(site.pages.values()) == {1}


# The database goes and comes back ------------------------------------------------------------------------------


def test_a_worker_waits_for_a_database_that_is_unreachable(tmp_path: Path) -> None:
    server = PostgresServer()
    try:
        server.start()
        url = server.create_database()
        files.plant(tmp_path / "docs", 5)
        with Workers(url, tmp_path) as workers:
            worker = workers.start()
            until(lambda: "worker started" in workers.logs())
            server.stop("immediate")
            until(lambda: "database away" in workers.logs(), 30)
            server.start()
            workers.kept("add", str(tmp_path / "docs"), "--name", "docs", "--no-wait")
            until(lambda: ended(url), 60)
            assert worker.poll() is None
            assert status(url) == "completed"
    finally:
        server.close()
