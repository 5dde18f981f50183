"""Keeping house: what is not needed goes, what is stored is looked at."""

import asyncio
from pathlib import Path

from kept.maintenance import check as soundness
from kept.maintenance import gc
from kept.maintenance.check import ContentHasher, IntegrityProblem
from kept.maintenance.check import damaged_store_problem as damaged_store_problem
from kept.maintenance.gc import GarbageItem, GcReport, Retention
from kept.store import backup
from kept.store.database import Database


async def collect(db: Database, retention: Retention, *, cache: Path) -> GcReport:
    """Takes away what no generation that is kept needs any more."""
    return await gc.collect(db, retention, cache=cache)


async def list_garbage(db: Database, retention: Retention, *, cache: Path) -> list[GarbageItem]:
    """What collect() would take away, and why."""
    return await gc.find_garbage(db, retention, cache=cache)


async def check(db: Database, hash_of: ContentHasher) -> list[IntegrityProblem]:
    """What is wrong with the database; nothing: all is well."""
    return await soundness.check_integrity(db, hash_of)


async def back_up(url: str, file: str) -> int:
    """Copies the database behind a URL into a file, while it is used. The size of it."""
    return await asyncio.to_thread(backup.back_up, url, Path(file).absolute())


async def restore(url: str, file: str) -> Path | None:
    """Puts such a copy back. Where what was there is now."""
    return await asyncio.to_thread(backup.restore, url, Path(file).absolute())
