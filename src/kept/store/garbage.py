"""What nobody needs any more, counted."""

import json
from collections.abc import Mapping

from kept.store.database import Connection, Row


async def old_generations(db: Connection, source: str, *, oldest: int) -> int:
    return _rows(await db.one("count_old_generations", source=source, oldest=oldest))


async def dead_versions(db: Connection, source: str, *, oldest: int) -> int:
    return _rows(await db.one("count_dead_versions", source=source, oldest=oldest))


async def forgotten_documents(db: Connection, source: str, *, oldest: int) -> int:
    return _rows(await db.one("count_forgotten_documents", source=source, oldest=oldest))


async def versions_of_source(db: Connection, source: str) -> int:
    return _rows(await db.one("count_versions_of_source", source=source))


async def versions_of_generation(db: Connection, source: str, generation: int) -> int:
    return _rows(await db.one("count_versions_of_generation", source=source, generation=generation))


async def entries(db: Connection, job: str) -> int:
    return _rows(await db.one("count_entries", job=job))


async def unneeded_contents(db: Connection, oldest: Mapping[str, int]) -> int:
    """How many contents no version would have if of each source only those from a generation on stayed."""
    return _rows(await db.one("count_unneeded_contents", oldest=json.dumps(dict(oldest))))


async def frontiers_of_source(db: Connection, source: str) -> list[str]:
    """The jobs of a source that have a frontier."""
    return [row["job_id"] for row in await db.all("entries_of_source", source=source)]


def _rows(row: Row | None) -> int:
    return int(row["rows"]) if row else 0
