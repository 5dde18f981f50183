"""What generations changed, the latest first."""

from datetime import datetime

from kept.store.database import Connection, Row

FIRST_ID = "00000000-0000-0000-0000-000000000000"


async def changed_generations(
    db: Connection, *, since: datetime, at: datetime, source: str, number: int, limit: int
) -> list[Row]:
    """Those of all sources, from this one on: the one that became active at this moment."""
    return await db.all("changed_generations", since=since, at=at, source=source, number=number, limit=limit)


async def changed_generations_of_source(
    db: Connection, source: str, *, since: datetime, number: int, limit: int
) -> list[Row]:
    """Those of one source, from this number on."""
    return await db.all("changed_generations_of_source", since=since, source=source, number=number, limit=limit)


async def changes_in_generation(
    db: Connection, source: str, generation: int, *, url: str = "", document: str = FIRST_ID, limit: int
) -> list[Row]:
    """What became of each document, by URL, after this URL and document."""
    return await db.all(
        "changes_in_generation", source=source, generation=generation, url=url, document=document, limit=limit
    )
