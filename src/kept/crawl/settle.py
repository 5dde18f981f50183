"""Makes a batch true, in one fenced transaction.

Outcomes, contents, sections, full text, versions and the URLs discovered commit together. That commit is the
checkpoint: after a crash each page is wholly done or not begun, so there is nothing to repair.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from kept.crawl.decide import Decision, NewContent, NotKept, RetryLater, Unchanged
from kept.model.frontier import FrontierEntry, Outcome
from kept.model.ids import new_id
from kept.model.job import CrawlJob
from kept.store import contents, documents, frontier, jobs
from kept.store.database import Connection, Database
from kept.store.documents import NewVersion
from kept.store.frontier import DiscoveredUrl, EntryRetry, SettledEntry
from kept.store.jobs import Lease

PROGRESS_SECONDS = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VisitResult:
    """An entry, and what the crawl decided about it."""

    entry: FrontierEntry
    decision: Decision
    bytes: int = 0


async def commit_batch(
    db: Database,
    lease: Lease,
    job: CrawlJob,
    visited: Sequence[VisitResult],
    found: Iterable[DiscoveredUrl],
    too_deep: Sequence[str] = (),
    *,
    signature: str,
) -> CrawlJob:
    """The job after this batch. Raises LeaseLost, and writes nothing, if this worker was replaced or the job ended.

    ``beyond``: URLs that a limit keeps out, if nothing else has brought them into the frontier.
    """
    assert job.generation is not None, "a batch belongs to a generation"
    async with db.transaction() as tx:
        await jobs.lock_lease(tx, lease)
        kept = await _store_contents(tx, job, job.generation, visited, signature)
        settled = [done for one in visited if (done := _make_settled(one, kept))]
        await frontier.settle(tx, job.id, settled, batch=job.batch + 1)
        await frontier.retry_later(tx, job.id, _make_released(visited))
        discovered = await _add_discovered(tx, job, list(found))
        limited = bool(too_deep) and not job.limited and await frontier.is_missing_any(tx, job.id, too_deep)
        bytes = sum(one.bytes for one in visited)
        numbered = await jobs.advance_batch(tx, job.id, discovered=discovered, bytes=bytes, limited=limited)
        if numbered.batch != job.batch + 1:  # others settled meanwhile: the number is given at the commit
            await frontier.set_batch(tx, job.id, [one.url for one in settled], batch=numbered.batch)
        return await update_progress(tx, numbered)


async def _add_discovered(tx: Connection, job: CrawlJob, found: Sequence[DiscoveredUrl]) -> int:
    """How many of them the frontier did not have. In a refresh it has nearly all: they are marked, not offered."""
    reached = await frontier.mark_reached(tx, job.id, found)
    if reached == len(found):
        return 0
    discovered = await frontier.insert(tx, job.id, found)
    if reached + discovered < len(found):  # reached before, or put there meanwhile by another worker
        await frontier.mark_reached(tx, job.id, found)
    return discovered


async def update_progress(tx: Connection, job: CrawlJob) -> CrawlJob:
    """The job after its batch: its progress is counted from what is committed, at most once a second."""
    return await jobs.update_progress(tx, job.id, min_interval=PROGRESS_SECONDS) or job


async def _store_contents(
    tx: Connection, job: CrawlJob, generation: int, visited: Sequence[VisitResult], signature: str
) -> dict[str, str]:
    """Stores what is new or changed; the documents it belongs to, by URL."""
    keeps = [(one.entry, one.decision) for one in visited if isinstance(one.decision, NewContent)]
    if not keeps:
        return {}
    ids = await contents.get_or_insert(tx, {keep.reading.content.hash: keep.reading.content for _, keep in keeps})
    owners = {entry.url: entry.base_version.document_id if entry.base_version else new_id() for entry, _ in keeps}
    fresh = [(owners[entry.url], job.source_id) for entry, _ in keeps if entry.base_version is None]
    await documents.insert_document(tx, fresh, generation=generation)
    await documents.insert_versions(
        tx,
        job.source_id,
        [
            NewVersion(
                document_id=owners[entry.url],
                born=generation,
                pending=entry.base_version is not None,
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


def _make_settled(one: VisitResult, kept: dict[str, str]) -> SettledEntry | None:
    entry, decision = one.entry, one.decision
    known = entry.base_version.document_id if entry.base_version else None
    match decision:
        case NewContent():
            return SettledEntry(
                url=entry.url,
                outcome=decision.outcome,
                http_status=decision.fetched.status,
                document_id=kept[entry.url],
                reason="read again" if decision.read_again else None,
            )
        case Unchanged():
            return SettledEntry(
                url=entry.url,
                outcome=Outcome.UNCHANGED,
                http_status=decision.status,
                document_id=known,
                metadata_update=decision.renewal,
            )
        case NotKept():
            return SettledEntry(
                url=entry.url,
                outcome=decision.outcome,
                reason=decision.reason,
                http_status=decision.status,
                document_id=known,
                by_settings=decision.by_settings,
                redirect_to=decision.redirect_to,
            )
        case RetryLater():
            return None


def _make_released(visited: Iterable[VisitResult]) -> list[EntryRetry]:
    return [
        EntryRetry(
            url=one.entry.url, due_at=one.decision.retry_at, reason=one.decision.reason, http_status=one.decision.status
        )
        for one in visited
        if isinstance(one.decision, RetryLater)
    ]
