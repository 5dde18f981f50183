"""Killed at a write of SQLite to its disk, or half-way through it, and killed again at one of the first writes after."""

import os
import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.crash.crawler import Crawlers, Write
from tests.crash.killed_crawls import Counts, ScenarioName, Store, disturb, prepare


@pytest.fixture(scope="module")
def crawlers() -> Iterator[Crawlers]:
    with Crawlers() as forking:
        yield forking


@pytest.mark.parametrize(("name", "files"), [("a first crawl", 20), ("a refresh", 60)])
def test_a_crawl_killed_at_any_write_ends_like_one_that_was_not(
    crawlers: Crawlers, tmp_path: Path, name: ScenarioName, files: int
) -> None:
    scenario = prepare(name, Store(tmp_path), crawlers, tmp_path / "docs", files)
    chance, counts = random.Random(os.environ["KEPT_TEST_SEED"]), Counts()
    step = scenario.undisturbed.writes // 10
    for first in range(1, scenario.undisturbed.writes, step):
        write = Write(chance.randrange(first, first + step), torn=chance.random() < 0.5)
        disturb(scenario, [write, Write(chance.randint(1, 20), torn=chance.random() < 0.5)], counts)
    assert counts.kills >= 15  # of the last ones some may come after the end
