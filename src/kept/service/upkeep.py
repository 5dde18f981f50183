"""Keeping house: what is not needed goes, what is stored is looked at."""

import asyncio
from pathlib import Path

from kept.store import backup
from kept.store.database import Database
from kept.upkeep import check as soundness
from kept.upkeep import gc
from kept.upkeep.check import HashOf, Problem
from kept.upkeep.check import unsound as unsound
from kept.upkeep.gc import Collected, Garbage, Retention


async def collect(db: Database, retention: Retention, *, cache: Path) -> Collected:
    """Takes away what no generation that is kept needs any more."""
    return await gc.collect(db, retention, cache=cache)


async def look(db: Database, retention: Retention, *, cache: Path) -> list[Garbage]:
    """What collect() would take away, and why."""
    return await gc.look(db, retention, cache=cache)


async def check(db: Database, hash_of: HashOf) -> list[Problem]:
    """What is wrong with the database; nothing: all is well."""
    return await soundness.check(db, hash_of)


async def back_up(url: str, file: str) -> int:
    """Copies the database behind a URL into a file, while it is used. The size of it."""
    return await asyncio.to_thread(backup.back_up, url, Path(file).absolute())


async def restore(url: str, file: str) -> Path | None:
    """Puts such a copy back. Where what was there is now."""
    return await asyncio.to_thread(backup.restore, url, Path(file).absolute())
