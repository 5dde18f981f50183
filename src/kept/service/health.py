"""Health: whether the database can be used, and how much is in it."""

from kept.store import jobs, sources
from kept.store.database import Database, DatabaseDescription, ReadableDatabase, describe_database


async def check_health(db: Database) -> DatabaseDescription:
    """Read from the database, and begin a write transaction. Raises StoreError where one of them fails."""
    async with db.snapshot() as snapshot:
        description = await describe_database(snapshot)
    async with db.transaction():
        pass
    return description


async def count_jobs_and_documents(db: ReadableDatabase) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of jobs by status, and the numbers of sources, documents and sections that are kept."""
    async with db.snapshot() as snapshot:
        return await jobs.count_by_status(snapshot), await sources.count_totals(snapshot)
