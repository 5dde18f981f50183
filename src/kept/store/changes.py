"""Changes: count and list what generations changed."""

from dataclasses import fields
from datetime import datetime

from kept.model.changes import (
    ChangeCounts,
    ChangedGeneration,
    DocumentChange,
    GenerationChangeCounts,
    RemovalReason,
)
from kept.store.database import Connection, Row, parse_time

FIRST_ID = "00000000-0000-0000-0000-000000000000"


async def count_changes(db: Connection, source: str, number: int) -> GenerationChangeCounts:
    row = await db.one("count_changes", source=source, number=number)
    assert row is not None, "a count is always there"
    return GenerationChangeCounts(**{one.name: row[one.name] for one in fields(GenerationChangeCounts)})


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
            end_reason=row["end_reason"],
            before_url=row["before_url"],
            before_died=row["before_died"],
            before_hash=row["before_hash"],
        )
        for row in rows
    ]


async def removal_reasons(db: Connection, source: str, generation: int, *, limit: int) -> list[RemovalReason]:
    """Return why a generation removed documents, the commonest reasons first."""
    rows = await db.all("removal_reasons", source=source, generation=generation, limit=limit)
    return [RemovalReason(reason=row["reason"], count=row["documents"]) for row in rows]


def _read_changed(row: Row) -> ChangedGeneration:
    return ChangedGeneration(
        source_id=str(row["source_id"]),
        source_name=row["source_name"],
        source_version=row["source_version"],
        number=row["number"],
        activated_at=parse_time(row["activated_at"]),
        rolled_back=row["rolled_back"],
    )
