"""Killed at every step, resumed, same end. `python -m tests.crash.killed_crawls` does the same at length.

The seed in the header of the run decides which occurrence of a statement, and which side of it, is tried.
"""

import os
import random
from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pytest

from tests.crash.crawler import Crawlers, Point
from tests.crash.killed_crawls import Counts, Scenario, ScenarioName, Store, disturb, prepare, random_moments
from tests.postgres import PostgresServer

Given = Callable[..., Scenario]


@pytest.fixture(scope="module")
def crawlers() -> Iterator[Crawlers]:
    with Crawlers() as forking:
        yield forking


@pytest.fixture(scope="module")
def given(crawlers: Crawlers, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Given:
    """A scenario, prepared once for all tests of this process."""
    made: dict[tuple[str, str], Scenario] = {}

    def prepared(name: ScenarioName, store: str, size: int) -> Scenario:
        if (name, store) not in made:
            folder = tmp_path_factory.mktemp("crashes")
            server: PostgresServer | None = request.getfixturevalue("postgres_server") if store == "postgres" else None
            made[name, store] = prepare(name, Store(folder, server), crawlers, folder / "docs", size)
        return made[name, store]

    return prepared


@pytest.fixture
def chance() -> random.Random:
    return random.Random(os.environ["KEPT_TEST_SEED"])


@pytest.mark.parametrize("part", [0, 1])
@pytest.mark.parametrize("name", ["a first crawl", "a refresh"])
def test_a_crawl_killed_at_any_statement_ends_like_one_that_was_not(
    given: Given, chance: random.Random, name: ScenarioName, part: int
) -> None:
    scenario = given(name, "sqlite", 300)
    kill_at_each(scenario, one_of_each_statement(scenario, chance)[part::2])


def test_a_crawl_killed_while_it_is_held_ends_like_one_that_was_not(given: Given, chance: random.Random) -> None:
    scenario = given("a refresh that is held", "sqlite", 60)
    deciding = ("move_generation", "describe_held_generation", "complete_job", "commit", "leave_job")
    kill_at_each(scenario, [point for point in one_of_each_statement(scenario, chance) if point.name in deciding])


@pytest.mark.parametrize("name", ["a first crawl", "a refresh"])
def test_a_crawl_on_postgresql_killed_at_some_statements_ends_like_one_that_was_not(
    given: Given, chance: random.Random, name: ScenarioName
) -> None:
    scenario = given(name, "postgres", 100)
    kill_at_each(scenario, chance.sample(one_of_each_statement(scenario, chance), 9))


@pytest.mark.parametrize("store", ["sqlite", "postgres"])
@pytest.mark.parametrize("name", ["a first crawl", "a refresh"])
def test_a_crawl_killed_at_random_moments_ends_like_one_that_was_not(
    given: Given, chance: random.Random, name: ScenarioName, store: str
) -> None:
    scenario = given(name, store, 300 if store == "sqlite" else 100)
    moments = random_moments(chance, scenario.undisturbed.seconds)
    counts = Counts()
    while counts.kills < 5:
        disturb(scenario, islice(moments, 5 - counts.kills), counts, watched=True)


def one_of_each_statement(scenario: Scenario, chance: random.Random) -> list[Point]:
    """For every statement that this crawl executes, one of the moments at which it can be cut off."""
    points = scenario.points()
    names = dict.fromkeys(point.name for point in points)
    return [chance.choice([point for point in points if point.name == name]) for name in names]


def kill_at_each(scenario: Scenario, points: list[Point]) -> None:
    """Several kills in one crawl; a point that it does not come to any more has a crawl of its own."""
    counts = Counts()
    for row in scenario.in_a_row(points, 4):
        killed = disturb(scenario, [point for _, point in row], counts)
        for point, _ in row[killed:]:
            again = (point, Point(point.name, point.side, 1))  # how often a heart beats is chance
            assert any(disturb(scenario, [one], counts) for one in again), f"{scenario} never came {point}"
    assert counts.kills == len(points)
