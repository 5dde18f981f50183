"""Garbage collection: takes away what no retained generation needs. One pass, in small transactions.

Safe at any time, beside readers, crawls and activations, and safe to be killed: each transaction leaves the
store sound, and the next pass goes on.
"""

from dataclasses import dataclass
from datetime import timedelta

from kept.crawl import activate
from kept.store import contents, documents, frontier, generations, sources
from kept.store.database import Database

AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept of a source's history: whichever of the two keeps more."""

    generations: int = 10  # that changed something
    younger_than: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    versions: int = 0
    documents: int = 0
    generations: int = 0
    contents: int = 0
    entries: int = 0


async def collect(db: Database, retention: Retention) -> Collected:
    """What was taken away."""
    async with db.snapshot() as snapshot:
        uncleared = await generations.sources_with_uncleared(snapshot)
        kept = await sources.all(snapshot)
        hidden = await sources.hidden(snapshot, limit=AT_ONCE)
    for source_id in uncleared:
        await activate.clear_abandoned(db, source_id)
    for source_id in hidden:
        await _delete_source(db, source_id)
    collected = Collected()
    for source in kept:
        versions, forgotten, dropped = await _collect_history(db, source.id, retention)
        collected = Collected(
            versions=collected.versions + versions,
            documents=collected.documents + forgotten,
            generations=collected.generations + dropped,
            entries=collected.entries + await _collect_frontiers(db, source.id),
        )
    return Collected(
        versions=collected.versions,
        documents=collected.documents,
        generations=collected.generations,
        entries=collected.entries,
        contents=await _collect_contents(db),
    )


async def _delete_source(db: Database, source_id: str) -> None:
    left = True
    while left:
        async with db.transaction() as tx:
            left = await documents.delete_of_source(tx, source_id, limit=AT_ONCE) > 0
            if not left:
                await sources.delete(tx, source_id)


async def _collect_history(db: Database, source_id: str, retention: Retention) -> tuple[int, int, int]:
    versions = forgotten = dropped = 0
    while True:
        async with db.transaction() as tx:
            # Under the lock nobody rolls back to what is about to go.
            if await sources.lock(tx, source_id) is None:
                break
            oldest = await generations.oldest_retained(
                tx, source_id, keep=retention.generations, younger_than=retention.younger_than
            )
            if oldest is None:
                break
            # First the generation, so that nobody can ask for one of which a part is gone.
            dropped += await generations.cleanup_old_generations(tx, source_id, oldest=oldest)
            gone = await documents.delete_dead(tx, source_id, oldest=oldest, limit=AT_ONCE)
            lost = 0 if gone else await documents.delete_forgotten(tx, source_id, limit=AT_ONCE)
            versions, forgotten = versions + gone, forgotten + lost
            if not gone and not lost:
                break
    return versions, forgotten, dropped


async def _collect_frontiers(db: Database, source_id: str) -> int:
    async with db.snapshot() as snapshot:
        finished = await frontier.finished(snapshot, source_id)
    total = 0
    for job in finished:
        deleted = True
        while deleted:
            async with db.transaction() as tx:
                deleted = await frontier.delete(tx, job, limit=AT_ONCE * 10) > 0
                total += deleted
    return total


async def _collect_contents(db: Database) -> int:
    after, total = 0, 0
    while True:
        async with db.transaction() as tx:
            unneeded = await contents.unneeded(tx, after=after, limit=AT_ONCE)
            for id in unneeded:
                await contents.delete(tx, id)
        if not unneeded:
            return total
        after, total = unneeded[-1], total + len(unneeded)
