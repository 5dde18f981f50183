"""Makes a batch true, in one fenced transaction.

Outcomes, contents, sections, full text, versions and the URLs discovered commit together. That commit is the
checkpoint: after a crash each page is wholly done or not begun, so there is nothing to repair.
"""

from collections.abc import Iterable, Sequence

from kept.crawl.decide import Decision, Ended, Keep, TryAgain, Unchanged
from kept.model.frontier import Entry, Outcome
from kept.model.ids import new_id
from kept.model.job import CrawlJob
from kept.model.nouns import dataclass
from kept.store import contents, documents, frontier, jobs
from kept.store.database import Connection, Database
from kept.store.documents import NewVersion
from kept.store.frontier import Found, Released, Settled
from kept.store.jobs import Place

PROGRESS_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Visited:
    """An entry, and what the crawl decided about it."""

    entry: Entry
    decision: Decision
    bytes: int = 0


async def settle(
    db: Database,
    place: Place,
    job: CrawlJob,
    visited: Sequence[Visited],
    found: Iterable[Found],
    beyond: Sequence[str] = (),
    *,
    signature: str,
) -> CrawlJob:
    """The job after this batch. Raises LeaseLost, and writes nothing, if this worker was replaced or the job ended.

    ``beyond``: URLs that a limit keeps out, if nothing else has brought them into the frontier.
    """
    assert job.generation is not None, "a batch belongs to a generation"
    async with db.transaction() as tx:
        await jobs.hold(tx, place)
        kept = await _keep(tx, job, job.generation, visited, signature)
        settled = [done for one in visited if (done := _settled(one, kept))]
        await frontier.settle(tx, job.id, settled, batch=job.batch + 1)
        await frontier.release(tx, job.id, _released(visited))
        discovered = await _discover(tx, job, list(found))
        limited = bool(beyond) and not job.limited and await frontier.lacks_some(tx, job.id, beyond)
        bytes = sum(one.bytes for one in visited)
        numbered = await jobs.number_batch(tx, job.id, discovered=discovered, bytes=bytes, limited=limited)
        if numbered.batch != job.batch + 1:  # others settled meanwhile: the number is given at the commit
            await frontier.renumber(tx, job.id, [one.url for one in settled], batch=numbered.batch)
        return await count(tx, numbered)


async def _discover(tx: Connection, job: CrawlJob, found: Sequence[Found]) -> int:
    """How many of them the frontier did not have. In a refresh it has nearly all: they are marked, not offered."""
    reached = await frontier.reach(tx, job.id, found)
    if reached == len(found):
        return 0
    discovered = await frontier.insert(tx, job.id, found)
    if reached + discovered < len(found):  # reached before, or put there meanwhile by another worker
        await frontier.reach(tx, job.id, found)
    return discovered


async def count(tx: Connection, job: CrawlJob) -> CrawlJob:
    """The job after its batch: its progress is counted from what is committed, at most once a second."""
    return await jobs.count(tx, job.id, every=PROGRESS_SECONDS) or job


async def _keep(
    tx: Connection, job: CrawlJob, generation: int, visited: Sequence[Visited], signature: str
) -> dict[str, str]:
    """Stores what is new or changed; the documents it belongs to, by URL."""
    keeps = [(one.entry, one.decision) for one in visited if isinstance(one.decision, Keep)]
    if not keeps:
        return {}
    ids = await contents.keep(tx, {keep.reading.content.hash: keep.reading.content for _, keep in keeps})
    owners = {entry.url: entry.held.document_id if entry.held else new_id() for entry, _ in keeps}
    fresh = [(owners[entry.url], job.source_id) for entry, _ in keeps if entry.held is None]
    await documents.insert_document(tx, fresh, generation=generation)
    await documents.insert_versions(
        tx,
        job.source_id,
        [
            NewVersion(
                document=owners[entry.url],
                born=generation,
                pending=entry.held is not None,
                read_again=keep.read_again,
                url=entry.url,
                content_id=ids[keep.reading.content.hash],
                content_type=keep.fetched.content_type,
                validators=keep.fetched.validators,
                raw_hash=keep.raw_hash,
                signature=signature,
                depth=entry.depth,
                links=keep.reading.links,
                canonical=keep.reading.canonical,
            )
            for entry, keep in keeps
        ],
    )
    return owners


def _settled(one: Visited, kept: dict[str, str]) -> Settled | None:
    entry, decision = one.entry, one.decision
    known = entry.held.document_id if entry.held else None
    match decision:
        case Keep():
            return Settled(
                url=entry.url,
                outcome=decision.outcome,
                status=decision.fetched.status,
                document=kept[entry.url],
                reason="read again" if decision.read_again else None,
            )
        case Unchanged():
            return Settled(
                url=entry.url,
                outcome=Outcome.UNCHANGED,
                status=decision.status,
                document=known,
                renewal=decision.renewal,
            )
        case Ended():
            return Settled(
                url=entry.url,
                outcome=decision.outcome,
                reason=decision.reason,
                status=decision.status,
                document=known,
                by_settings=decision.by_settings,
                redirect_to=decision.redirect_to,
            )
        case TryAgain():
            return None


def _released(visited: Iterable[Visited]) -> list[Released]:
    return [
        Released(url=one.entry.url, due_at=one.decision.at, reason=one.decision.reason, status=one.decision.status)
        for one in visited
        if isinstance(one.decision, TryAgain)
    ]
