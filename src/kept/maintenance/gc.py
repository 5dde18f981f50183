"""Garbage collection: deletes what no retained generation needs. One pass, in small transactions.

Safe to run beside readers, crawls and activations, and safe to kill: each transaction leaves the store consistent, and
the next pass continues.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from kept.crawl import abandon
from kept.maintenance import local_cleanup
from kept.maintenance.embedding_backlog import delete_unused_vectors
from kept.model.source import Source
from kept.store import contents, documents, frontier, gc, generations, jobs, sources
from kept.store.database import Connection, Database

BATCH_SIZE = 500
MAX_COUNTED_JOBS = 1_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """How much history of a source is retained: of generations, whichever of the two keeps more."""

    generations: int = 10  # with changes
    younger_than: timedelta = timedelta(days=30)
    jobs: int = 100  # ended ones


@dataclass(frozen=True, slots=True, kw_only=True)
class GcReport:
    sources: int = 0
    generations: int = 0
    versions: int = 0
    documents: int = 0
    contents: int = 0
    vectors: int = 0
    entries: int = 0  # of frontiers
    jobs: int = 0
    folders: int = 0  # on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class GarbageItem:
    """Something that a pass would delete, and why."""

    where: str
    what: str
    count: int
    why: str


async def collect(db: Database, retention: Retention, *, cache: Path | None = None) -> GcReport:
    """Run one pass. Returns what was deleted. ``cache``: the folder with this machine's clones and export notes."""
    async with db.snapshot() as snapshot:
        uncleared = await generations.list_sources_with_uncleared(snapshot)
        all_sources = await sources.all(snapshot)
        removed = await sources.list_removed(snapshot, limit=BATCH_SIZE)
    total: Counter[str] = Counter()
    for source_id in uncleared:
        await abandon.clear_abandoned(db, source_id)
    for source_id in removed:
        total["sources"] += await _delete_source(db, source_id)
    for source in all_sources:
        total += await _collect_history(db, source.id, retention)
        async with db.snapshot() as snapshot:
            superseded = await frontier.list_superseded(snapshot, source.id)
        for job in superseded:
            total["entries"] += await _delete_frontier(db, job)
        total["jobs"] += await _delete_jobs(db, source.id, retention.jobs)
    total["contents"] = await _collect_contents(db)
    total["vectors"] = await delete_unused_vectors(db)
    total["folders"] = local_cleanup.remove(local_cleanup.find(cache)) if cache else 0
    return GcReport(**total)


async def collect_if_due(db: Database, retention: Retention, *, every: float, cache: Path | None = None) -> GcReport:
    """Run ``collect`` unless another process on this database did so recently; local folders are always cleaned."""
    async with db.transaction() as tx:
        is_due = await gc.try_start_pass(tx, "garbage", min_interval=every)
    if is_due:
        return await collect(db, retention, cache=cache)
    return GcReport(folders=local_cleanup.remove(local_cleanup.find(cache)) if cache else 0)


async def find_garbage(db: Database, retention: Retention, *, cache: Path | None = None) -> list[GarbageItem]:
    """Return what a pass would delete now, and why, without deleting it."""
    found: list[GarbageItem] = []
    oldest: dict[str, int] = {}
    async with db.snapshot() as snapshot:
        for source in await sources.all(snapshot):
            since = await _oldest_retained(snapshot, source.id, retention)
            if since is not None:
                oldest[source.id] = since
                found += await _find_in_history(snapshot, source, since, retention)
            found += await _find_in_crawls(snapshot, source, retention)
        for source_id in await sources.list_removed(snapshot, limit=BATCH_SIZE):
            count = await gc.count_versions_of_source(snapshot, source_id)
            found.append(
                GarbageItem(where="a removed source", what="versions", count=count, why="the source was removed")
            )
        count = await gc.count_unreferenced_contents(snapshot, oldest)
        found.append(
            GarbageItem(where="all sources", what="contents", count=count, why="no version that stays has them")
        )
    if cache:
        found += [
            GarbageItem(where=str(one.path), what="folders", count=1, why=one.why) for one in local_cleanup.find(cache)
        ]
    return [one for one in found if one.count or one.where == "a removed source"]


async def _find_in_history(db: Connection, source: Source, oldest: int, retention: Retention) -> list[GarbageItem]:
    days = f"{retention.younger_than.total_seconds() / 86400:g} days"
    beyond = f"older than the last {retention.generations} that changed something, and than {days}"
    counts: Sequence[tuple[str, int, str]] = (
        ("generations", await gc.count_old_generations(db, source.id, oldest=oldest), beyond),
        ("versions", await gc.count_dead_versions(db, source.id, oldest=oldest), "only such generations show them"),
        (
            "documents",
            await gc.count_orphaned_documents(db, source.id, oldest=oldest),
            "deleted, and no generation that stays shows them",
        ),
    )
    return [GarbageItem(where=source.label, what=what, count=count, why=why) for what, count, why in counts]


async def _find_in_crawls(db: Connection, source: Source, retention: Retention) -> list[GarbageItem]:
    found = []
    for number in await generations.list_uncleared(db, source.id):
        count = await gc.count_versions_of_generation(db, source.id, number)
        found.append(
            GarbageItem(where=source.label, what="versions", count=count, why=f"generation {number} was abandoned")
        )
    superseded = await frontier.list_superseded(db, source.id)
    entries = [await gc.count_entries(db, job) for job in superseded]
    old_jobs = await jobs.list_collectable(
        db, source.id, keep=max(1, retention.jobs), limit=MAX_COUNTED_JOBS, superseded=superseded
    )
    return [
        *found,
        GarbageItem(where=source.label, what="entries", count=sum(entries), why="a later crawl is the ledger now"),
        GarbageItem(
            where=source.label, what="jobs", count=len(old_jobs), why=f"ended before the last {retention.jobs}"
        ),
    ]


async def _oldest_retained(db: Connection, source_id: str, retention: Retention) -> int | None:
    return await generations.oldest_retained(
        db, source_id, keep=retention.generations, younger_than=retention.younger_than
    )


async def _delete_source(db: Database, source_id: str) -> int:
    async with db.snapshot() as snapshot:
        frontiers = await gc.jobs_with_frontier(snapshot, source_id)
    for job in frontiers:
        await _delete_frontier(db, job)
    has_more = True
    while has_more:
        async with db.transaction() as tx:
            if not await sources.lock_removed(tx, source_id):
                return 0  # another process deleted the last of it
            has_more = await documents.delete_by_source(tx, source_id, limit=BATCH_SIZE) > 0
            if not has_more:
                await sources.delete(tx, source_id)
    return 1


async def _collect_history(db: Database, source_id: str, retention: Retention) -> Counter[str]:
    total: Counter[str] = Counter()
    while True:
        async with db.transaction() as tx:
            # The lock prevents a rollback to a generation that is about to be deleted.
            if await sources.lock(tx, source_id) is None:
                return total
            oldest = await _oldest_retained(tx, source_id, retention)
            if oldest is None:
                return total
            # The generation goes first, so that none can be read that is only partly there.
            total["generations"] += await generations.cleanup_old_generations(tx, source_id, oldest=oldest)
            versions = await documents.delete_dead_versions(tx, source_id, oldest=oldest, limit=BATCH_SIZE)
            orphans = 0 if versions else await documents.delete_orphaned(tx, source_id, limit=BATCH_SIZE)
            total["versions"] += versions
            total["documents"] += orphans
            if not versions and not orphans:
                return total


async def _delete_frontier(db: Database, job: str) -> int:
    total = 0
    while True:
        async with db.transaction() as tx:
            deleted = await frontier.delete(tx, job, limit=BATCH_SIZE * 10)
        if not deleted:
            return total
        total += deleted


async def _delete_jobs(db: Database, source_id: str, keep: int) -> int:
    total = 0
    while True:
        async with db.transaction() as tx:
            deleted = await jobs.delete(
                tx, await jobs.list_collectable(tx, source_id, keep=max(1, keep), limit=BATCH_SIZE)
            )
        total += deleted
        if deleted < BATCH_SIZE:
            return total


async def _collect_contents(db: Database) -> int:
    """Delete unreferenced contents. Everything derived from them is deleted in contents.delete."""
    after, total = 0, 0
    while True:
        async with db.snapshot() as snapshot:
            unreferenced = await contents.list_unreferenced(snapshot, after=after, limit=BATCH_SIZE)
        if not unreferenced:
            return total
        async with db.transaction() as tx:
            total += await contents.delete(tx, await contents.lock(tx, unreferenced))
        after = unreferenced[-1]
