"""Killed at a write of SQLite to its disk, or half-way through it; and killed again soon after."""

import random
from pathlib import Path

import pytest

from tests.crash.crawler import Crawlers, Write
from tests.crash.docs import Folder, ScenarioName
from tests.crash.killed_crawls import Counts, Store, disturb, prepare


@pytest.mark.parametrize(("name", "files", "rounds"), [("a first crawl", 20, 10), ("a refresh", 40, 5)])
def test_a_crawl_killed_at_any_write_ends_like_one_that_was_not(
    crawlers: Crawlers, chance: random.Random, tmp_path: Path, name: ScenarioName, files: int, rounds: int
) -> None:
    scenario = prepare(name, Store(tmp_path), crawlers, Folder(tmp_path / "docs", files))
    counts, step = Counts(), scenario.undisturbed.writes // rounds
    for number in range(rounds):
        write = Write(chance.randint(number * step + 1, number * step + step), torn=chance.random() < 0.5)
        disturb(scenario, [write, Write(chance.randint(1, 20), torn=chance.random() < 0.5)], counts)
    assert counts.kills >= rounds  # where the first is one of the last writes, the second may come after the end
