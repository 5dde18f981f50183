"""How the database is: what it is, and whether it can be used."""

from dataclasses import dataclass

from kept.store import jobs, sources
from kept.store.database import Database, ReadableDatabase, describe_database


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    program: str
    schema: int
    writable: bool
    vectors: str | None  # the version of the extension that searches them


async def check_health(db: Database) -> Health:
    """Reads it, and takes and gives back the right to write."""
    async with db.snapshot() as snapshot:
        row = await describe_database(snapshot)
    async with db.transaction():
        pass
    return Health(
        program=row["program"], schema=row["schema_number"], writable=bool(row["writable"]), vectors=row["vectors"]
    )


async def count_jobs_and_documents(db: ReadableDatabase) -> tuple[dict[str, int], dict[str, int]]:
    """Return the number of jobs by status, and the numbers of sources, documents and sections that are kept."""
    async with db.snapshot() as snapshot:
        return await jobs.count_by_status(snapshot), await sources.count_totals(snapshot)
