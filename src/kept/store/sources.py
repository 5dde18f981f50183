"""Sources: rows in, nouns out."""

import json
from datetime import datetime

from kept.model.source import Source, SourceKind, SourceSettings
from kept.store.database import Connection, Row, parse_optional_time, parse_time


async def insert(
    db: Connection, *, id: str, name: str, version: str, kind: SourceKind, root: str, settings: SourceSettings
) -> bool:
    """True if it is in; False if the name or the root is taken."""
    row = await db.one(
        "insert_source",
        id=id,
        name=name,
        version=version,
        kind=kind,
        root=root,
        settings=json.dumps(settings.as_json()),
    )
    return row is not None


async def get(db: Connection, id: str) -> Source | None:
    return _source(await db.one("source", id=id))


async def by_label(db: Connection, name: str, version: str) -> Source | None:
    return _source(await db.one("source_by_label", name=name, version=version))


async def by_root(db: Connection, root: str, version: str) -> Source | None:
    return _source(await db.one("source_by_root", root=root, version=version))


async def all(db: Connection) -> list[Source]:
    return [_read(row) for row in await db.all("sources")]


async def active_generations(db: Connection) -> list[tuple[str, int]]:
    """What every search sees: each source that has something to show, and the number of its generation."""
    return [(row["id"], row["active_generation"]) for row in await db.all("active_generations")]


async def lock(db: Connection, id: str) -> Source | None:
    """The source, and nobody else changes its generations until this transaction ends."""
    return _source(await db.one("lock_source", id=id))


async def allocate_generation_number(db: Connection, id: str) -> int:
    """A number that no generation of this source has had."""
    row = await db.one("allocate_generation_number", id=id)
    assert row is not None, "the source is locked, so it is there"
    return int(row["number"])


async def set_active_generation(db: Connection, id: str, generation: int) -> None:
    await db.run("set_active_generation", id=id, generation=generation)


async def set_settings(db: Connection, id: str, settings: SourceSettings) -> None:
    await db.run("set_source_settings", id=id, settings=json.dumps(settings.as_json()))


async def pause_schedule(db: Connection, id: str) -> None:
    await db.run("pause_schedule", id=id)


async def resume_schedule(db: Connection, id: str) -> None:
    await db.run("resume_schedule", id=id)


async def set_next_run(db: Connection, id: str, at: datetime | None) -> None:
    """When its schedule asks for the next crawl; None: never."""
    await db.run("set_next_run", id=id, at=at)


async def list_due(db: Connection, now: datetime, *, limit: int) -> list[Source]:
    """The sources whose schedules ask for a crawl, the longest overdue first."""
    return [_read(row) for row in await db.all("due_sources", now=now, limit=limit)]


async def claim_run(db: Connection, source: Source, next_run_at: datetime | None) -> bool:
    """True if the run that was due is this caller's; False if somebody took it, or it is not due any more."""
    return await db.run("claim_run", id=source.id, seen=source.next_run_at, next=next_run_at) > 0


async def set_validators_wrong(db: Connection, id: str, *, wrong: bool) -> None:
    """Notes that they outlived a change, or, when a change came with others, that they did not."""
    await db.run("set_validators_wrong", id=id, wrong=wrong)


async def set_sitemap_wrong(db: Connection, id: str, *, wrong: bool) -> None:
    """Notes whether what its sitemap says of modifications can be believed."""
    await db.run("set_sitemap_wrong", id=id, wrong=wrong)


async def set_root_identity(db: Connection, id: str, identity: str) -> None:
    """What tells its root from another in its place."""
    await db.run("set_root_identity", id=id, identity=identity)


async def mark_removed(db: Connection, id: str) -> bool:
    """True if it was there to be hidden."""
    return await db.run("mark_source_removed", id=id) > 0


async def list_removed(db: Connection, limit: int) -> list[str]:
    return [row["id"] for row in await db.all("removed_sources", limit=limit)]


async def lock_removed(db: Connection, id: str) -> bool:
    """True if its rows are this caller's to delete until the transaction ends; False: it is gone."""
    return await db.one("lock_removed_source", id=id) is not None


async def delete(db: Connection, id: str) -> None:
    """The last rows of a source whose documents and versions are gone already."""
    await db.run("delete_jobs_of_source", source=id)
    await db.run("delete_generations_of_source", source=id)
    await db.run("delete_source", id=id)


def _source(row: Row | None) -> Source | None:
    return None if row is None else _read(row)


def _read(row: Row) -> Source:
    return Source(
        id=row["id"],
        name=row["name"],
        version=row["version"],
        kind=SourceKind(row["kind"]),
        root=row["root"],
        settings=SourceSettings.from_json(json.loads(row["settings"])),
        active_generation=row["active_generation"],
        created_at=parse_time(row["created_at"]),
        next_run_at=parse_optional_time(row["next_run_at"]),
        schedule_paused_at=parse_optional_time(row["schedule_paused_at"]),
        runs=row["runs"],
        validators_wrong_at=parse_optional_time(row["validators_wrong_at"]),
        sitemap_wrong_at=parse_optional_time(row["sitemap_wrong_at"]),
        root_identity=row["root_identity"],
    )
