"""What has happened, and how much there is, as far as the rows tell: rows in, nouns out."""

from datetime import datetime

from kept.model.job import JobSummary
from kept.store.database import Connection, Row
from kept.store.jobs import read_summary


async def list_live_or_recent(db: Connection, *, since: datetime) -> list[JobSummary]:
    """Jobs that are live or ended since then, the oldest first."""
    return [read_summary(row) for row in await db.all("live_or_recent_jobs", since=since)]


async def entries_since(db: Connection, job: str, *, batch: int, entry: int, limit: int) -> list[Row]:
    """What the batches of a job brought, from behind an entry of one of them on."""
    return await db.all("entries_since", job=job, batch=batch, entry=entry, limit=limit)


async def jobs_by_status(db: Connection) -> dict[str, int]:
    return {row["status"]: row["jobs"] for row in await db.all("jobs_by_status")}


async def count_totals(db: Connection) -> dict[str, int]:
    row = await db.one("count_totals")
    assert row is not None, "a count is always there"
    return {name: int(count) for name, count in row.items()}


async def source_generations(db: Connection) -> list[Row]:
    """Which generation each source shows."""
    return await db.all("source_generations")
