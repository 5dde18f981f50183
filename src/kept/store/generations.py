"""Generations, and what each of them changed."""

import json
from dataclasses import fields
from datetime import datetime, timedelta

from kept.model.generation import (
    GENERATION_TRANSITIONS,
    ChangeCounts,
    ChangedGeneration,
    DocumentChange,
    Generation,
    GenerationChangeCounts,
    GenerationState,
    Tally,
)
from kept.model.source import SourceSettings
from kept.store.database import Connection, Row, parse_optional_time, parse_time

FIRST_ID = "00000000-0000-0000-0000-000000000000"
LARGEST_NUMBER = 2**63 - 1  # that a column can hold; what people type may be larger


async def insert(
    db: Connection, source: str, number: int, *, job: str | None, mode: str | None = None, reason: str | None = None
) -> None:
    """Insert a generation that is being built on the active one."""
    await db.run("insert_generation", source=source, number=number, job=job, mode=mode, reason=reason)


async def inherit_settings(db: Connection, source: str, number: int, *, inherit_from: int) -> None:
    """Copy the settings of another generation: most documents were not visited under the current ones of the source."""
    await db.run("inherit_settings", source=source, number=number, heir_of=inherit_from)


async def get(db: Connection, source: str, number: int) -> Generation | None:
    if number > LARGEST_NUMBER:
        return None
    row = await db.one("generation", source=source, number=number)
    return None if row is None else _read(row)


async def all(db: Connection, source: str) -> list[Generation]:
    return [_read(row) for row in await db.all("generations", source=source)]


async def upcoming(db: Connection, source: str) -> Generation | None:
    """Return the generation that is being built or held."""
    row = await db.one("upcoming_generation", source=source)
    return None if row is None else _read(row)


async def transition(db: Connection, generation: Generation, to: GenerationState, reason: str | None = None) -> bool:
    """Change its state. Returns False if that is no legal transition, or another process changed it first."""
    if to not in GENERATION_TRANSITIONS[generation.state]:
        return False
    values = {"source": generation.source_id, "number": generation.number, "from": generation.state, "to": to}
    return await db.run("transition_generation", **values, reason=reason) > 0


async def activate_generation(
    db: Connection,
    generation: Generation,
    *,
    documents: int,
    tally: Tally,
    changed: bool,
    whole: bool,
    partial: str | None,
) -> bool:
    """Activate it. Returns False if it is no longer being built or held."""
    return (
        await db.run(
            "activate_generation",
            source=generation.source_id,
            number=generation.number,
            documents=documents,
            tally=json.dumps(tally.as_json()),
            changed=changed,
            whole=whole,
            partial=partial,
        )
        > 0
    )


async def set_held_counts(
    db: Connection, generation: Generation, *, documents: int, tally: Tally, partial: str | None
) -> None:
    await db.run(
        "set_held_counts",
        source=generation.source_id,
        number=generation.number,
        documents=documents,
        tally=json.dumps(tally.as_json()),
        partial=partial,
    )


async def count_changes(db: Connection, source: str, number: int) -> GenerationChangeCounts:
    row = await db.one("count_changes", source=source, number=number)
    assert row is not None, "a count is always there"
    return GenerationChangeCounts(**{one.name: row[one.name] for one in fields(GenerationChangeCounts)})


async def last_verified(db: Connection, source: str) -> datetime | None:
    """Return when a crawl last visited every known document."""
    row = await db.one("last_verified", source=source)
    return parse_optional_time(row["verified_at"]) if row else None


async def list_uncleared(db: Connection, source: str) -> list[int]:
    """Return abandoned generations whose rows are not all deleted yet."""
    return [row["number"] for row in await db.all("uncleared_generations", source=source)]


async def list_sources_with_uncleared(db: Connection) -> list[str]:
    return [row["source_id"] for row in await db.all("sources_with_uncleared_generations")]


async def mark_cleared(db: Connection, source: str, number: int) -> None:
    await db.run("mark_cleared", source=source, number=number)


async def oldest_retained(db: Connection, source: str, *, keep: int, younger_than: timedelta) -> int | None:
    """Return the number of the oldest generation to keep; None for a source that has none."""
    row = await db.one("oldest_retained", source=source, keep=keep, seconds=younger_than.total_seconds())
    return row["number"] if row else None


async def cleanup_old_generations(db: Connection, source: str, *, oldest: int) -> int:
    """Delete generations before ``oldest``, after their versions. Returns how many."""
    return await db.run("delete_old_generations", source=source, oldest=oldest)


# Changes -------------------------------------------------------------------------------------------------------


async def changes_by_generation(db: Connection, source: str, *, since: int) -> dict[int, ChangeCounts]:
    """Return how many documents each generation after ``since`` added, changed, moved and lost, by its number."""
    return {
        row["number"]: ChangeCounts(
            added=int(row["added"]), changed=int(row["changed"]), moved=int(row["moved"]), lost=int(row["lost"])
        )
        for row in await db.all("changes_by_generation", source=source, since=since)
    }


async def changed_generations(
    db: Connection, *, since: datetime, at: datetime, source: str, number: int, limit: int
) -> list[ChangedGeneration]:
    """Return the generations of all sources that changed something, the latest first, from one of them on."""
    rows = await db.all("changed_generations", since=since, at=at, source=source, number=number, limit=limit)
    return [_read_changed(row) for row in rows]


async def changed_generations_of_source(
    db: Connection, source: str, *, since: datetime, number: int, limit: int
) -> list[ChangedGeneration]:
    """Return the generations of a source that changed something, the latest first, from a number on."""
    rows = await db.all("changed_generations_of_source", since=since, source=source, number=number, limit=limit)
    return [_read_changed(row) for row in rows]


async def changes_in_generation(
    db: Connection, source: str, generation: int, *, url: str = "", document: str = FIRST_ID, limit: int
) -> list[DocumentChange]:
    """Return the change of each document in a generation, by URL, after this URL and document."""
    rows = await db.all(
        "changes_in_generation", source=source, generation=generation, url=url, document=document, limit=limit
    )
    return [
        DocumentChange(
            document_id=str(row["document_id"]),
            url=row["url"],
            title=row["title"],
            content_hash=row["content_hash"],
            read_again=bool(row["read_again"]),
            removed=bool(row["removed"]),
            before_url=row["before_url"],
            before_died=row["before_died"],
            before_hash=row["before_hash"],
        )
        for row in rows
    ]


def _read_changed(row: Row) -> ChangedGeneration:
    return ChangedGeneration(
        source_id=str(row["source_id"]),
        source_name=row["source_name"],
        source_version=row["source_version"],
        number=row["number"],
        activated_at=parse_time(row["activated_at"]),
        rolled_back=row["rolled_back"],
    )


def _read(row: Row) -> Generation:
    return Generation(
        source_id=row["source_id"],
        number=row["number"],
        base=row["base"],
        state=GenerationState(row["state"]),
        job_id=row["job_id"],
        settings=SourceSettings.from_json(json.loads(row["settings"])),
        mode=row["mode"],
        created_at=parse_time(row["created_at"]),
        activated_at=parse_optional_time(row["activated_at"]),
        documents=row["documents"],
        tally=Tally(**json.loads(row["tally"])),
        partial=row["partial"],
        reason=row["reason"],
    )
