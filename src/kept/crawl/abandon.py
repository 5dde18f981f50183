"""Abandoned generations: given up in one transaction, deleted in small ones.

No other generation of the source is activated before the rows of an abandoned one are gone: they would be visible in
it. The same rows are deleted after a crash, because the generation stays marked until the last of them is gone.
"""

from kept.model.generation import GenerationState
from kept.model.source import Source
from kept.store import documents, generations, sources
from kept.store.database import Connection, Database

CLEAR_BATCH_SIZE = 1000


async def abandon_generation(tx: Connection, source: Source, reason: str, *, job_id: str | None = None) -> None:
    """Mark the generation that is being built or held as abandoned; with ``job_id``, only if that job built it.

    Its rows are deleted later, by ``clear_abandoned``.
    """
    upcoming = await generations.upcoming(tx, source.id)
    if upcoming and (job_id is None or upcoming.job_id == job_id):
        await generations.transition(tx, upcoming, GenerationState.ABANDONED, reason)


async def clear_abandoned(db: Database, source_id: str) -> None:
    """Delete the rows of a source's abandoned generations, in small transactions."""
    async with db.snapshot() as snapshot:
        numbers = await generations.list_uncleared(snapshot, source_id)
    for number in numbers:
        deleted = True
        while deleted:
            async with db.transaction() as tx:
                # Under the source's lock: rows that another worker is deleting would look as if they were gone already.
                if await sources.lock(tx, source_id) is None:
                    return  # the source was removed; garbage collection deletes all of it
                deleted = await documents.delete_by_generation(tx, source_id, number, limit=CLEAR_BATCH_SIZE) > 0
                if not deleted:
                    await generations.mark_cleared(tx, source_id, number)
