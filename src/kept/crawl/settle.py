"""The commit of a batch, in one fenced transaction.

Outcomes, contents, sections, full text, versions and the discovered URLs commit together. That commit is the
checkpoint: after a crash each page is either settled or still open, so there is nothing to repair.
"""

from collections.abc import Iterable, Mapping, Sequence

from kept.crawl.decide import NewContent, NotKept, RetryLater, Unchanged, VisitResult
from kept.model.document import NewVersion
from kept.model.frontier import DiscoveredUrl, EntryRetry, Outcome, SettledEntry
from kept.model.ids import new_id
from kept.model.job import CrawlJob, Lease
from kept.store import contents, documents, frontier, jobs
from kept.store.database import Connection, Database

PROGRESS_SECONDS = 1.0


async def commit_batch(
    db: Database,
    lease: Lease,
    job: CrawlJob,
    results: Sequence[VisitResult],
    discovered: Iterable[DiscoveredUrl],
    *,
    signature: str,
    retried: bool = False,
) -> CrawlJob:
    """Commit a batch and return the job after it.

    ``retried``: an earlier try may have been committed although its connection broke; what it settled is not settled
    again. Raises LeaseLost, and writes nothing, if this worker was replaced or the job ended.
    """
    assert job.generation is not None, "a batch belongs to a generation"
    async with db.transaction() as tx:
        await jobs.lock_lease(tx, lease)
        if retried:
            leased = await frontier.list_leased_urls(tx, lease.id)
            results = [result for result in results if result.entry.url in leased]
        document_ids = await _store_contents(tx, job, job.generation, results, signature)
        settled = [entry for result in results if (entry := _make_settled(result, document_ids))]
        await frontier.settle(tx, job.id, settled, batch=job.batch + 1)
        await frontier.retry_later(tx, job.id, _make_retries(results))
        added = await add_discovered(tx, job, list(discovered))
        size = sum(result.bytes for result in results)
        advanced = await jobs.advance_batch(
            tx, job.id, discovered=added, bytes=size, is_progress=bool(results or added)
        )
        if advanced.batch != job.batch + 1:  # other workers committed meanwhile; the number is assigned at commit
            await frontier.set_batch(tx, job.id, [entry.url for entry in settled], batch=advanced.batch)
        return await update_progress(tx, advanced)


async def add_discovered(tx: Connection, job: CrawlJob, discovered: Sequence[DiscoveredUrl]) -> int:
    """Add URLs to the frontier, or mark them as reached. Returns how many were added.

    Marking comes first: in a refresh the frontier has nearly all of them already.
    """
    reached = await frontier.mark_reached(tx, job.id, discovered)
    if reached == len(discovered):
        return 0
    added = await frontier.insert(tx, job.id, discovered)
    if reached + added < len(discovered):  # reached before, or inserted meanwhile by another worker
        await frontier.mark_reached(tx, job.id, discovered)
    return added


async def update_progress(tx: Connection, job: CrawlJob) -> CrawlJob:
    """Recount the job's progress from the committed entries, at most once a second. Returns the job."""
    return await jobs.update_progress(tx, job.id, min_interval=PROGRESS_SECONDS) or job


async def _store_contents(
    tx: Connection, job: CrawlJob, generation: int, results: Sequence[VisitResult], signature: str
) -> dict[str, str]:
    """Store new and changed pages. Returns the ids of their documents, by URL."""
    stored = [(result.entry, result.decision) for result in results if isinstance(result.decision, NewContent)]
    if not stored:
        return {}
    content_ids = await contents.get_or_insert(tx, {new.page.content.hash: new.page.content for _, new in stored})
    document_ids = {
        entry.url: entry.base_version.document_id if entry.base_version else new_id() for entry, _ in stored
    }
    new_documents = [(document_ids[entry.url], job.source_id) for entry, _ in stored if entry.base_version is None]
    await documents.insert_document(tx, new_documents, generation=generation)
    await documents.insert_versions(
        tx,
        job.source_id,
        [
            NewVersion(
                document_id=document_ids[entry.url],
                born=generation,
                pending=entry.base_version is not None,
                read_again=new.read_again,
                url=entry.url,
                content_id=content_ids[new.page.content.hash],
                content_type=new.fetched.content_type,
                validators=new.fetched.validators,
                raw_hash=new.raw_hash,
                signature=signature,
                depth=entry.depth,
                links=new.page.links,
                canonical=new.page.canonical,
            )
            for entry, new in stored
        ],
    )
    return document_ids


def _make_settled(result: VisitResult, document_ids: Mapping[str, str]) -> SettledEntry | None:
    entry, decision = result.entry, result.decision
    base_document_id = entry.base_version.document_id if entry.base_version else None
    match decision:
        case NewContent():
            return SettledEntry(
                url=entry.url,
                outcome=decision.outcome,
                http_status=decision.fetched.status,
                document_id=document_ids[entry.url],
                reason="read again" if decision.read_again else None,
            )
        case Unchanged():
            return SettledEntry(
                url=entry.url,
                outcome=Outcome.UNCHANGED,
                http_status=decision.status,
                document_id=base_document_id,
                metadata_update=decision.metadata_update,
            )
        case NotKept():
            return SettledEntry(
                url=entry.url,
                outcome=decision.outcome,
                reason=decision.reason,
                http_status=decision.status,
                document_id=base_document_id,
                by_settings=decision.by_settings,
                redirect_to=decision.redirect_to,
            )
        case RetryLater():
            return None


def _make_retries(results: Iterable[VisitResult]) -> list[EntryRetry]:
    return [
        EntryRetry(
            url=result.entry.url,
            due_at=result.decision.retry_at,
            reason=result.decision.reason,
            http_status=result.decision.status,
        )
        for result in results
        if isinstance(result.decision, RetryLater)
    ]
