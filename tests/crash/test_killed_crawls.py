"""Killed at every step, resumed, same end. `python -m tests.crash.killed_crawls` runs longer.

The occurrence of a statement, and the side of it, are chosen at random.
"""

import asyncio
import json
import os
import random
import subprocess
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from kept.jobs.worker import process_start_time
from kept.service import jobs
from tests.crash import files
from tests.crash.crawler import Crawlers, Order, Point, kept
from tests.crash.docs import Folder, ScenarioName
from tests.crash.killed_crawls import Counts, Scenario, Store, disturb, prepare, random_moments
from tests.crash.state import everything
from tests.factories import database_at
from tests.postgres import PostgresServer

MakeScenario = Callable[..., Scenario]


@pytest.fixture(scope="module")
def make_scenario(
    crawlers: Crawlers, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> MakeScenario:
    """Return a scenario, prepared once for all tests of this process."""
    scenarios: dict[tuple[str, str], Scenario] = {}

    def prepared(name: ScenarioName, store: str, size: int) -> Scenario:
        if (name, store) not in scenarios:
            folder = tmp_path_factory.mktemp("crashes")
            server: PostgresServer | None = request.getfixturevalue("postgres_server") if store == "postgres" else None
            scenarios[name, store] = prepare(name, Store(folder, server), crawlers, Folder(folder / "docs", size))
        return scenarios[name, store]

    return prepared


@pytest.mark.parametrize("name", ["a first crawl", "a refresh"])
def test_a_crawl_killed_at_any_statement_ends_like_one_that_was_not(
    make_scenario: MakeScenario, chance: random.Random, name: ScenarioName
) -> None:
    scenario = make_scenario(name, "sqlite", 300)
    kill_at_each(scenario, chance.sample(one_of_each_statement(scenario, chance), 20))


def test_a_crawl_killed_while_it_is_held_ends_like_one_that_was_not(
    make_scenario: MakeScenario, chance: random.Random
) -> None:
    scenario = make_scenario("a refresh that is held", "sqlite", 60)
    deciding = ("transition_generation", "set_held_counts", "complete_job", "commit", "release_lease")
    kill_at_each(scenario, [point for point in one_of_each_statement(scenario, chance) if point.name in deciding])


@pytest.mark.parametrize("name", ["a first crawl", "a refresh"])
def test_a_crawl_on_postgresql_killed_at_some_statements_ends_like_one_that_was_not(
    make_scenario: MakeScenario, chance: random.Random, name: ScenarioName
) -> None:
    scenario = make_scenario(name, "postgres", 100)
    kill_at_each(scenario, chance.sample(one_of_each_statement(scenario, chance), 8))


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", ["a first crawl", "a refresh"])
def test_a_crawl_killed_at_random_moments_ends_like_one_that_was_not(
    make_scenario: MakeScenario, chance: random.Random, name: ScenarioName, store: str
) -> None:
    scenario = make_scenario(name, store, 300 if store == "sqlite" else 100)
    moments = random_moments(chance, scenario.undisturbed.seconds)
    counts = Counts()
    while counts.kills < 5:
        disturb(scenario, islice(moments, 5 - counts.kills), counts, watched=True)


def test_a_refresh_after_a_killed_crawl_continues_it(crawlers: Crawlers, tmp_path: Path) -> None:
    url, folder = f"sqlite:///{tmp_path}/kept.db", tmp_path / "docs"
    files.plant(folder, 20)
    killed = crawlers.crawl(Order(url=url, root=str(folder), crash=Point("complete_job", "before", 1)))
    assert killed.killed
    refreshed = kept(url, "refresh", "docs", "--json")
    assert refreshed.returncode == 0, refreshed.stderr
    answer = json.loads(refreshed.stdout)
    assert (answer["generation"], answer["counts"]["new"]) == (1, 20)
    assert len(json.loads(kept(url, "generations", "docs", "--json").stdout)["generations"]) == 1


def test_a_job_whose_workers_all_die_fails_and_the_crawl_requested_meanwhile_follows(
    crawlers: Crawlers, database_url: str, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    files.plant(folder, 20)
    poisoned = Order(url=database_url, root=str(folder), crash=Point("frontier_urls", "before", 1))
    for _ in range(4):
        assert crawlers.crawl(poisoned).killed
    asyncio.run(ask_again(database_url))
    given_up = crawlers.crawl(poisoned)
    assert given_up.error
    assert "the job is failed: worker timed out" in given_up.error
    assert crawlers.crawl(Order(url=database_url, root=str(folder))).error is None
    state = everything(database_url)
    assert [(row[0], row[2], row[6]) for row in state["generations"]] == [(1, "abandoned", 0), (2, "active", 20)]
    assert [row[:2] for row in state["jobs"]] == [("refresh", "completed"), ("refresh", "failed")]


async def ask_again(url: str) -> None:
    async with database_at(url) as db:
        job = await jobs.request_crawl(db, "docs")
        assert job.again, "it is not known yet that its worker is dead"


def test_a_worker_that_was_killed_is_dead_even_while_it_is_a_zombie() -> None:
    killed = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert process_start_time(killed.pid)
    killed.kill()
    os.waitid(os.P_PID, killed.pid, os.WEXITED | os.WNOWAIT)  # it is a zombie now
    assert process_start_time(killed.pid) is None
    killed.wait()


def one_of_each_statement(scenario: Scenario, chance: random.Random) -> list[Point]:
    """Return one crash point for every statement that this crawl executes."""
    points = scenario.points()
    names = dict.fromkeys(point.name for point in points)
    return [chance.choice([point for point in points if point.name == name]) for name in names]


def kill_at_each(scenario: Scenario, points: list[Point]) -> None:
    """Kill one crawl several times; a point that it does not reach any more has a crawl of its own."""
    counts = Counts()
    for row in scenario.in_a_row(points, 4):
        killed = disturb(scenario, [point for _, point in row], counts)
        for point, _ in row[killed:]:
            again = (point, Point(point.name, point.side, 1))  # the number of heartbeats is chance
            assert any(disturb(scenario, [one], counts) for one in again), f"{scenario} never came {point}"
    assert counts.kills == len(points)
