"""Sources, their schedules, and counts of what is kept."""

import json
from collections.abc import Sequence
from datetime import datetime

from kept.model.source import Authority, Source, SourceKind, SourceSettings, format_label
from kept.store.database import Connection, Row, parse_optional_time, parse_time


async def insert(
    db: Connection,
    *,
    id: str,
    name: str,
    version: str,
    kind: SourceKind,
    root: str,
    settings: SourceSettings,
    authority: Authority = Authority.OWNER,
) -> bool:
    """Insert a source. Returns False if its name or its root is taken."""
    row = await db.one(
        "insert_source",
        id=id,
        name=name,
        version=version,
        kind=kind,
        root=root,
        settings=json.dumps(settings.as_json()),
        authority=authority,
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


async def named_by_words(db: Connection, words: Sequence[str]) -> list[tuple[str, int, str, str]]:
    """Return the sources that a query's words stand for: id, active generation, name, and word (postgres)."""
    rows = await db.all("sources_named", words=list(words))
    return [(row["id"], row["active_generation"], row["name"], row["word"]) for row in rows]


async def list_unpinned(db: Connection) -> list[Source]:
    """Return the sources that allow a host whose class of address is not recorded."""
    return [source for source in await all(db) if source.settings.access.has_unpinned_hosts]


async def active_generations(db: Connection) -> list[tuple[str, int]]:
    """Return each source that has an active generation, and its number: what a search sees."""
    return [(row["id"], row["active_generation"]) for row in await db.all("active_generations")]


async def lock(db: Connection, id: str) -> Source | None:
    """Lock a source: no other transaction changes its generations until this one ends."""
    return _source(await db.one("lock_source", id=id))


async def allocate_generation_number(db: Connection, id: str) -> int:
    """Return a number that no generation of this source has had. The source must be locked."""
    row = await db.one("allocate_generation_number", id=id)
    assert row is not None, "the source is locked, so it is there"
    return int(row["number"])


async def set_active_generation(db: Connection, id: str, generation: int) -> None:
    await db.run("set_active_generation", id=id, generation=generation)


async def set_settings(db: Connection, id: str, settings: SourceSettings) -> None:
    await db.run("set_source_settings", id=id, settings=json.dumps(settings.as_json()))


async def rename(db: Connection, id: str, *, name: str, version: str) -> bool:
    """Give a locked source another name and version label. Returns False if they are taken."""
    return await db.run("rename_source", id=id, name=name, version=version) > 0


async def set_authority(db: Connection, id: str, authority: Authority) -> None:
    await db.run("set_source_authority", id=id, authority=authority)


async def pause_schedule(db: Connection, id: str) -> None:
    await db.run("pause_schedule", id=id)


async def resume_schedule(db: Connection, id: str) -> None:
    await db.run("resume_schedule", id=id)


async def set_next_run(db: Connection, id: str, at: datetime | None) -> None:
    """Set the time of the next scheduled crawl; None: never."""
    await db.run("set_next_run", id=id, at=at)


async def list_due(db: Connection, now: datetime, *, limit: int) -> list[Source]:
    """Return the sources whose scheduled crawl is due, the longest overdue first."""
    return [_read(row) for row in await db.all("due_sources", now=now, limit=limit)]


async def claim_run(db: Connection, source: Source, next_run_at: datetime | None) -> bool:
    """Claim a due run. Returns False if another process has claimed it, or it is no longer due."""
    return await db.run("claim_run", id=source.id, seen=source.next_run_at, next=next_run_at) > 0


async def set_validators_wrong(db: Connection, id: str, *, wrong: bool) -> None:
    """Record whether its validators stayed the same while a page changed."""
    await db.run("set_validators_wrong", id=id, wrong=wrong)


async def set_sitemap_wrong(db: Connection, id: str, *, wrong: bool) -> None:
    """Record whether the modification times of its sitemap are wrong."""
    await db.run("set_sitemap_wrong", id=id, wrong=wrong)


async def set_root_identity(db: Connection, id: str, identity: str) -> None:
    """Record what distinguishes its root folder from another one in the same place."""
    await db.run("set_root_identity", id=id, identity=identity)


async def mark_removed(db: Connection, id: str) -> bool:
    """Hide a source. Returns False if there is none."""
    return await db.run("mark_source_removed", id=id) > 0


async def list_removed(db: Connection, limit: int) -> list[str]:
    return [row["id"] for row in await db.all("removed_sources", limit=limit)]


async def lock_removed(db: Connection, id: str) -> bool:
    """Lock a removed source for deletion. Returns False if it is gone."""
    return await db.one("lock_removed_source", id=id) is not None


async def delete(db: Connection, id: str) -> None:
    """Delete the last rows of a source, after its documents and versions."""
    await db.run("delete_jobs_of_source", source=id)
    await db.run("delete_generations_of_source", source=id)
    await db.run("delete_source", id=id)


async def count_totals(db: Connection) -> dict[str, int]:
    """Return how many sources, visible documents and sections there are."""
    row = await db.one("count_totals")
    assert row is not None, "always one row"
    return {name: int(count) for name, count in row.items()}


async def list_active_numbers(db: Connection) -> dict[str, tuple[str, int | None]]:
    """Return the label of every source, and the number of its active generation: None if it has none."""
    return {
        row["id"]: (format_label(row["name"], row["version"]), row["active_generation"])
        for row in await db.all("active_numbers")
    }


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
        authority=Authority(row["authority"]),
        next_run_at=parse_optional_time(row["next_run_at"]),
        schedule_paused_at=parse_optional_time(row["schedule_paused_at"]),
        runs=row["runs"],
        validators_wrong_at=parse_optional_time(row["validators_wrong_at"]),
        sitemap_wrong_at=parse_optional_time(row["sitemap_wrong_at"]),
        root_identity=row["root_identity"],
    )
