"""Periodic tasks: a failed pass is retried in the next one; leftovers are removed once."""

import asyncio
import os
from dataclasses import dataclass
from pathlib import Path

import pytest

from kept.maintenance import local_cleanup, periodic
from kept.maintenance.periodic import PeriodicTask


@dataclass(frozen=True)
class Report:
    done: int = 1


@pytest.mark.parametrize("error", [OSError("the cache folder is not there"), ValueError("a mistake of our own")])
def test_a_clock_goes_on_ticking_whatever_went_wrong(error: Exception) -> None:
    async def scenario() -> int:
        stop, ticks = asyncio.Event(), 0

        async def tick() -> Report:
            nonlocal ticks
            ticks += 1
            if ticks == 1:
                raise error
            stop.set()
            return Report()

        await asyncio.wait_for(periodic.run_tasks([PeriodicTask("tested", 0.001, tick)], stop), 10)
        return ticks

    assert asyncio.run(scenario()) == 2


def test_a_clone_that_nobody_uses_is_taken_away_once(tmp_path: Path) -> None:
    clones = tmp_path / local_cleanup.CLONES_FOLDER
    for name, age in (("old", 31 * 86400), ("young", 0)):
        (clones / name).mkdir(parents=True)
        lock = clones / f"{name}.lock"
        lock.touch()
        os.utime(lock, (lock.stat().st_atime - age, lock.stat().st_mtime - age))
    assert [one.path.name for one in local_cleanup.find(tmp_path)] == ["old"]
    assert local_cleanup.remove(local_cleanup.find(tmp_path)) == 1
    assert local_cleanup.find(tmp_path) == []
    assert (clones / "young").is_dir()
