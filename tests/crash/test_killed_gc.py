"""Garbage collection that is killed. `python -m tests.crash.killed_gc` runs longer."""

import asyncio
import random

from tests.crash.killed_gc import race


def test_what_is_kept_stays_as_it_is_and_all_else_goes_however_often_the_collector_is_killed(
    database_url: str, chance: random.Random
) -> None:
    happened = asyncio.run(race(database_url, 2.0, chance, readers=4))
    assert happened.kills >= 2
    assert happened.reads >= 20
