"""Observations: what a crawl saw of the documents of its base, read from the frontier; and which of them moved."""

from dataclasses import dataclass, field

from kept.crawl.document_matching import MoveCandidate, resolve_redirects
from kept.crawl.lifecycle import CrawlCoverage, DocumentObservation
from kept.model.frontier import EntryResult, ExceptionalEntry, Outcome
from kept.model.generation import Generation
from kept.model.job import CrawlJob
from kept.store import documents, frontier
from kept.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeUpdate:
    """A URL's final outcome in the ledger, where matching documents changed it."""

    url: str
    outcome: Outcome
    reason: str
    document: str | None


@dataclass(slots=True)
class Observations:
    """The exceptions of a crawl, by kind."""

    documents: list[DocumentObservation] = field(default_factory=list)
    move_candidates: list[MoveCandidate] = field(default_factory=list)
    merged_documents: set[str] = field(default_factory=set)
    outcome_updates: list[OutcomeUpdate] = field(default_factory=list)
    base_documents: dict[str, ExceptionalEntry] = field(default_factory=dict)  # by document


async def collect_observations(
    db: Connection, generation: Generation, job: CrawlJob, coverage: CrawlCoverage
) -> Observations:
    """Read all documents that did not simply stay unchanged in this crawl."""
    observations = Observations()
    exceptions = await frontier.list_exceptional(db, job.id)
    redirects = {entry.url: entry.redirect_to for entry in exceptions if entry.redirect_to}
    for entry in exceptions:
        if entry.document_id is None or entry.lifecycle is None:
            continue  # a redirect from a URL that is no document
        observations.base_documents[entry.document_id] = entry
        if entry.outcome is Outcome.MOVED:
            await _follow_redirect(db, job, entry, resolve_redirects(entry.url, redirects), observations)
        else:
            observations.documents.append(make_observation(entry, entry.outcome, entry.reason))
    if coverage.is_complete and not coverage.lists_everything:
        for entry in await frontier.list_unreached(db, job.id):
            assert entry.document_id is not None, "an unreached document is a document"
            observations.base_documents[entry.document_id] = entry
            observations.documents.append(make_observation(entry, entry.outcome, None))
    for document in await documents.list_exceptional(db, generation.source_id, job.id):
        if document.id not in observations.base_documents:
            observations.documents.append(
                DocumentObservation(
                    document=document.id,
                    in_base=document.url is not None,
                    outcome=Outcome(document.outcome) if document.outcome else None,
                    reached=document.reached,
                    reason=document.reason,
                    lifecycle=document.lifecycle,
                    since=document.since,
                    missed_crawls=document.missed_crawls,
                    retry_count=document.retry_count,
                    verified_at=document.verified_at,
                )
            )
    return observations


async def _follow_redirect(
    db: Connection, job: CrawlJob, entry: ExceptionalEntry, target_url: str | None, observations: Observations
) -> None:
    """Record a document whose URL redirects permanently: it moved there, or shares the target's outcome.

    ``target_url`` is the end of its redirects, None if they form a loop.
    """
    assert entry.document_id is not None, "only documents move"
    target = await frontier.get_result(db, job.id, target_url) if target_url else None
    if target_url is None:
        observation = make_observation(entry, Outcome.FAILED, f"{entry.reason}, and from there in a circle")
    elif target is None and job.lists_everything:
        observation = make_observation(entry, Outcome.SKIPPED, f"{entry.reason}, which is no part of the source")
    elif target is None or target.outcome is None or not target.was_visited:
        observation = make_observation(entry, Outcome.FAILED, f"redirects to {target_url}, which was not visited")
    elif target.outcome is Outcome.NEW:
        observations.move_candidates.append(
            MoveCandidate(document=entry.document_id, url=entry.url, depth=entry.depth, target_url=target_url)
        )
        return
    elif target.outcome is Outcome.DEAD_LINK:
        observation = make_observation(entry, Outcome.GONE, f"redirects to {target_url}: {target.reason}")
    elif target.outcome is not Outcome.GONE and target.version_id is not None:
        observations.merged_documents.add(entry.document_id)
        observation = make_observation(entry, Outcome.GONE, f"redirects to {target_url}")
    else:
        observation = make_observation(
            entry, target.outcome, f"redirects to {target_url}: {target.reason}", by_settings=target.by_settings
        )
    observations.documents.append(observation)
    observations.outcome_updates.append(make_outcome_update(observation, entry.url))


def is_failed_end(target: EntryResult | None) -> bool:
    """Whether a document fails whose redirects end here: nothing was visited, or it failed and is no document itself.

    A document that fails is still one, and takes in those that redirect to it.
    """
    if target is None or not target.was_visited:
        return True
    return target.outcome is Outcome.FAILED and target.version_id is None


def make_observation(
    entry: ExceptionalEntry, outcome: Outcome, reason: str | None, *, by_settings: bool | None = None
) -> DocumentObservation:
    assert entry.document_id is not None, "only documents are observed"
    assert entry.lifecycle is not None, "documents have a lifecycle"
    return DocumentObservation(
        document=entry.document_id,
        in_base=True,
        outcome=outcome,
        reached=entry.reached,
        reason=reason,
        by_settings=entry.by_settings if by_settings is None else by_settings,
        lifecycle=entry.lifecycle,
        since=entry.since,
        missed_crawls=entry.missed_crawls,
        retry_count=entry.retry_count,
        verified_at=entry.verified_at,
    )


def make_outcome_update(observation: DocumentObservation, url: str) -> OutcomeUpdate:
    assert observation.outcome is not None, "only a visited URL has an outcome"
    return OutcomeUpdate(
        url=url, outcome=observation.outcome, reason=observation.reason or "", document=observation.document
    )
