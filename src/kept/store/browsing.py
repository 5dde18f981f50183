"""What people look through: rows in, nouns out."""

from collections.abc import Sequence

from kept.store.database import Connection, Row

URLS_PER_QUERY = 1000


async def changes_by_generation(db: Connection, source: str, *, since: int) -> dict[int, Row]:
    """What each generation after ``since`` added, changed, moved and lost; none where it did nothing."""
    rows = await db.all("changes_by_generation", source=source, since=since)
    return {row["number"]: row for row in rows}


async def document_ids_by_url(db: Connection, source: str, generation: int, urls: Sequence[str]) -> dict[str, str]:
    """The ids of the documents that a generation shows at these URLs; none for what it does not show."""
    found: dict[str, str] = {}
    for start in range(0, len(urls), URLS_PER_QUERY):
        asked = list(urls[start : start + URLS_PER_QUERY])
        rows = await db.all("document_ids_by_url", source=source, generation=generation, urls=asked)
        found |= {row["url"]: str(row["document_id"]) for row in rows}
    return found


async def list_entries(db: Connection, job: str, *, outcome: str | None, after: str, limit: int) -> list[Row]:
    """A page of a job's frontier, by URL; only of one outcome, or what is ``open``, if that is named."""
    return await db.all("entries_of_job", job=job, outcome=outcome, after=after, limit=limit)


async def list_batches(db: Connection, job: str) -> list[Row]:
    return await db.all("batches_of_job", job=job)
