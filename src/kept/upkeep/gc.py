"""Garbage collection: takes away what no retained generation needs. One pass, in small transactions.

Safe at any time, beside readers, crawls and activations, and safe to be killed: each transaction leaves the
store sound, and the next pass goes on.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path

from kept.crawl import activate
from kept.model.nouns import dataclass
from kept.model.source import Source
from kept.store import contents, documents, frontier, garbage, generations, passes, sources
from kept.store.database import Connection, Database
from kept.upkeep import leftovers
from kept.upkeep.embedding import collect_vectors

AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Retention:
    """What is kept of a source's history: whichever of the two keeps more."""

    generations: int = 10  # that changed something
    younger_than: timedelta = timedelta(days=30)


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    sources: int = 0
    generations: int = 0
    versions: int = 0
    documents: int = 0
    contents: int = 0
    vectors: int = 0
    entries: int = 0  # of frontiers
    folders: int = 0  # on this machine


@dataclass(frozen=True, slots=True, kw_only=True)
class Garbage:
    """What a pass would take away, and why."""

    where: str
    what: str
    count: int
    why: str


async def collect(db: Database, retention: Retention, *, cache: Path | None = None) -> Collected:
    """What was taken away. ``cache``: where this machine remembers its exports and clones."""
    async with db.snapshot() as snapshot:
        uncleared = await generations.sources_with_uncleared(snapshot)
        kept = await sources.all(snapshot)
        hidden = await sources.hidden(snapshot, limit=AT_ONCE)
    total: Counter[str] = Counter()
    for source_id in uncleared:
        await activate.clear_abandoned(db, source_id)
    for source_id in hidden:
        total["sources"] += await _delete_source(db, source_id)
    for source in kept:
        total += await _collect_history(db, source.id, retention)
        async with db.snapshot() as snapshot:
            finished = await frontier.finished(snapshot, source.id)
        for job in finished:
            total["entries"] += await _delete_frontier(db, job)
    total["contents"] = await _collect_contents(db)
    total["vectors"] = await collect_vectors(db)
    total["folders"] = leftovers.remove(leftovers.find(cache)) if cache else 0
    return Collected(**total)


async def collect_in_turn(db: Database, retention: Retention, *, every: float, cache: Path | None = None) -> Collected:
    """``collect`` for clocks: of all processes on a database one makes the pass; each tidies its own machine."""
    async with db.transaction() as tx:
        is_mine = await passes.begin(tx, "garbage", every=every)
    if is_mine:
        return await collect(db, retention, cache=cache)
    return Collected(folders=leftovers.remove(leftovers.find(cache)) if cache else 0)


async def look(db: Database, retention: Retention, *, cache: Path | None = None) -> list[Garbage]:
    """What a pass would take away now, and why. Nothing is changed."""
    found: list[Garbage] = []
    oldest: dict[str, int] = {}
    async with db.snapshot() as snapshot:
        for source in await sources.all(snapshot):
            since = await _oldest(snapshot, source.id, retention)
            if since is not None:
                oldest[source.id] = since
                found += await _look_at_history(snapshot, source, since, retention)
            found += await _look_at_rest(snapshot, source)
        for source_id in await sources.hidden(snapshot, limit=AT_ONCE):
            count = await garbage.versions_of_source(snapshot, source_id)
            found.append(Garbage(where="a removed source", what="versions", count=count, why="the source was removed"))
        count = await garbage.unneeded_contents(snapshot, oldest)
        found.append(Garbage(where="all sources", what="contents", count=count, why="no version that stays has them"))
    if cache:
        found += [Garbage(where=str(one.path), what="folders", count=1, why=one.why) for one in leftovers.find(cache)]
    return [one for one in found if one.count or one.where == "a removed source"]


async def _look_at_history(db: Connection, source: Source, oldest: int, retention: Retention) -> list[Garbage]:
    days = f"{retention.younger_than.total_seconds() / 86400:g} days"
    beyond = f"older than the last {retention.generations} that changed something, and than {days}"
    counts: Sequence[tuple[str, int, str]] = (
        ("generations", await garbage.old_generations(db, source.id, oldest=oldest), beyond),
        ("versions", await garbage.dead_versions(db, source.id, oldest=oldest), "only such generations show them"),
        (
            "documents",
            await garbage.forgotten_documents(db, source.id, oldest=oldest),
            "deleted, and no generation that stays shows them",
        ),
    )
    return [Garbage(where=source.label, what=what, count=count, why=why) for what, count, why in counts]


async def _look_at_rest(db: Connection, source: Source) -> list[Garbage]:
    found = []
    for number in await generations.uncleared(db, source.id):
        count = await garbage.versions_of_generation(db, source.id, number)
        found.append(
            Garbage(where=source.label, what="versions", count=count, why=f"generation {number} was abandoned")
        )
    entries = [await garbage.entries(db, job) for job in await frontier.finished(db, source.id)]
    why = "a later crawl is the ledger now"
    return [*found, Garbage(where=source.label, what="entries", count=sum(entries), why=why)]


async def _oldest(db: Connection, source_id: str, retention: Retention) -> int | None:
    return await generations.oldest_retained(
        db, source_id, keep=retention.generations, younger_than=retention.younger_than
    )


async def _delete_source(db: Database, source_id: str) -> int:
    async with db.snapshot() as snapshot:
        frontiers = await garbage.frontiers_of_source(snapshot, source_id)
    for job in frontiers:
        await _delete_frontier(db, job)
    left = True
    while left:
        async with db.transaction() as tx:
            if not await sources.lock_hidden(tx, source_id):
                return 0  # somebody else took away the last of it
            left = await documents.delete_of_source(tx, source_id, limit=AT_ONCE) > 0
            if not left:
                await sources.delete(tx, source_id)
    return 1


async def _collect_history(db: Database, source_id: str, retention: Retention) -> Counter[str]:
    total: Counter[str] = Counter()
    while True:
        async with db.transaction() as tx:
            # Under the lock nobody rolls back to what is about to go.
            if await sources.lock(tx, source_id) is None:
                return total
            oldest = await _oldest(tx, source_id, retention)
            if oldest is None:
                return total
            # First the generation, so that nobody can ask for one of which a part is gone.
            total["generations"] += await generations.cleanup_old_generations(tx, source_id, oldest=oldest)
            gone = await documents.delete_dead(tx, source_id, oldest=oldest, limit=AT_ONCE)
            lost = 0 if gone else await documents.delete_forgotten(tx, source_id, limit=AT_ONCE)
            total["versions"] += gone
            total["documents"] += lost
            if not gone and not lost:
                return total


async def _delete_frontier(db: Database, job: str) -> int:
    total = 0
    while True:
        async with db.transaction() as tx:
            deleted = await frontier.delete(tx, job, limit=AT_ONCE * 10)
        if not deleted:
            return total
        total += deleted


async def _collect_contents(db: Database) -> int:
    """With their sections and full text. Whatever else is made of a content goes in contents.delete."""
    after, total = 0, 0
    while True:
        async with db.snapshot() as snapshot:
            unneeded = await contents.unneeded(snapshot, after=after, limit=AT_ONCE)
        if not unneeded:
            return total
        async with db.transaction() as tx:
            total += sum([await contents.delete(tx, id) for id in await contents.lock(tx, unneeded)])
        after = unneeded[-1]
