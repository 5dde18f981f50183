"""Crawls of a site, killed and resumed: the same end, and no committed page is requested again.

`python -m tests.crash.killed_crawls --origin web` runs longer. The counts are shown at the end.
"""

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import islice

import pytest

from tests.crash.crawler import Call, Crawlers
from tests.crash.docs import ScenarioName, Web
from tests.crash.killed_crawls import (
    FEW_PAGES,
    Counts,
    Scenario,
    Store,
    calls_of,
    count_calls,
    disturb,
    give_up,
    many_moments,
    prepare,
)
from tests.crash.test_full_disk import need_strace
from tests.postgres import PostgresServer
from tests.sites.manual import served

MakeScenario = Callable[[ScenarioName, str, int], Scenario]
Count = Callable[[str, object], None]

KILLS = 10  # of each kind of crawl on each store: a tenth of the long form's


@pytest.fixture
def make_scenario(
    crawlers: Crawlers, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> Iterator[MakeScenario]:
    with ExitStack() as stack:

        def prepared(name: ScenarioName, store: str, pages: int) -> Scenario:
            server: PostgresServer | None = request.getfixturevalue("postgres_server") if store == "postgres" else None
            folder = tmp_path_factory.mktemp("crashes")
            return prepare(name, Store(folder, server), crawlers, Web(stack.enter_context(served(pages))))

        yield prepared


@pytest.mark.parametrize(("name", "store"), [("a first crawl", "sqlite"), ("a refresh", "postgres")])
def test_a_crawl_of_a_site_killed_at_random_moments_ends_like_one_that_was_not(
    make_scenario: MakeScenario, chance: random.Random, record_property: Count, name: ScenarioName, store: str
) -> None:
    scenario, counts = make_scenario(name, store, 300), Counts()
    moments = many_moments(chance, scenario.undisturbed, KILLS // 2)
    while counts.kills < KILLS:
        disturb(scenario, islice(moments, KILLS - counts.kills), counts, watched=True)
    record_property("counted", f"{scenario}, killed at random moments: {counts}")


@pytest.mark.parametrize(("name", "store"), [("a first crawl", "postgres"), ("a refresh", "sqlite")])
def test_a_crawl_of_a_site_killed_at_any_write_or_send_ends_like_one_that_was_not(
    make_scenario: MakeScenario, chance: random.Random, record_property: Count, name: ScenarioName, store: str
) -> None:
    """Kill at a tenth of the calls of both kinds of crawl; every other time again soon after it resumes."""
    need_strace()
    scenario, counts = make_scenario(name, store, FEW_PAGES), Counts()
    calls = calls_of(scenario)
    all_calls = count_calls(scenario, calls)
    rounds = max(KILLS, all_calls // 20) // 2
    step = all_calls // rounds
    for number in range(rounds):
        first = Call(calls, chance.randint(number * step + 1, number * step + step))
        disturb(scenario, [first, Call(calls, chance.randint(1, 40))], counts)
    assert counts.kills >= rounds  # near the end chance decides whether there is another call
    record_property("counted", f"{scenario}, killed at some of {all_calls} calls: {counts}")


@pytest.mark.parametrize(("store", "rounds"), [("sqlite", 4), ("postgres", 2)])
def test_a_refresh_that_is_killed_and_given_up_leaves_nothing_behind_that_hides_a_change(
    make_scenario: MakeScenario, chance: random.Random, record_property: Count, store: str, rounds: int
) -> None:
    scenario, counts = make_scenario("a refresh", store, 120), Counts()
    for _ in range(rounds):
        give_up(scenario, chance.uniform(0, scenario.undisturbed.seconds), counts)
    record_property("counted", f"{scenario}, killed at a random moment and given up: {counts}")
