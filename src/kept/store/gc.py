"""Garbage collection: counts for its report, and which process makes the pass. Deleting is done by table."""

import json
from collections.abc import Mapping

from kept.store.database import Connection, Row


async def count_old_generations(db: Connection, source: str, *, oldest: int) -> int:
    return _count(await db.one("count_old_generations", source=source, oldest=oldest))


async def count_dead_versions(db: Connection, source: str, *, oldest: int) -> int:
    return _count(await db.one("count_dead_versions", source=source, oldest=oldest))


async def count_orphaned_documents(db: Connection, source: str, *, oldest: int) -> int:
    return _count(await db.one("count_orphaned_documents", source=source, oldest=oldest))


async def count_versions_of_source(db: Connection, source: str) -> int:
    return _count(await db.one("count_versions_of_source", source=source))


async def count_versions_of_generation(db: Connection, source: str, generation: int) -> int:
    return _count(await db.one("count_versions_of_generation", source=source, generation=generation))


async def count_entries(db: Connection, job: str) -> int:
    return _count(await db.one("count_entries", job=job))


async def count_unreferenced_contents(db: Connection, oldest: Mapping[str, int]) -> int:
    """Count the contents that no version would have if each source kept only its versions from a generation on."""
    return _count(await db.one("count_unreferenced_contents", oldest=json.dumps(dict(oldest))))


async def jobs_with_frontier(db: Connection, source: str) -> list[str]:
    """Return the jobs of a source that have a frontier."""
    return [row["job_id"] for row in await db.all("jobs_with_frontier", source=source)]


async def try_start_pass(db: Connection, name: str, *, min_interval: float) -> bool:
    """Start a maintenance pass for all processes. Returns False if one was started within so many seconds."""
    return await db.run("start_maintenance_pass", name=name, seconds=min_interval) > 0


async def was_pass_started(db: Connection, name: str, *, seconds: float) -> bool:
    """Return whether any process started a maintenance pass within so many seconds."""
    return await db.one("recent_maintenance_pass", name=name, seconds=seconds) is not None


def _count(row: Row | None) -> int:
    return int(row["rows"]) if row else 0
