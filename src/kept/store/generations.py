"""Generations, and what each of them changed."""

import json
from datetime import datetime, timedelta

from kept.model.generation import (
    GENERATION_TRANSITIONS,
    Generation,
    GenerationState,
    Tally,
)
from kept.model.source import SourceSettings
from kept.store.database import Connection, Row, parse_optional_time, parse_time

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
    reason: str | None = None,
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
            reason=reason,
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
