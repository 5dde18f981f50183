"""What a crawl saw of what its base shows, read from the frontier: marks for the sweep, and moves."""

from dataclasses import dataclass, field

from kept.crawl.document_matching import MoveCandidate, resolve_redirects
from kept.crawl.lifecycle import CrawlCoverage, DocumentObservation
from kept.model.frontier import Outcome
from kept.model.generation import Generation
from kept.model.job import CrawlJob
from kept.store import documents, frontier
from kept.store.database import Connection
from kept.store.frontier import ExceptionalEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeUpdate:
    """What the ledger says of a URL once identities are settled."""

    url: str
    outcome: Outcome
    reason: str
    document: str | None


@dataclass(slots=True)
class Observations:
    """What the crawl saw, sorted."""

    documents: list[DocumentObservation] = field(default_factory=list)
    move_candidates: list[MoveCandidate] = field(default_factory=list)
    merged_documents: set[str] = field(default_factory=set)
    outcome_updates: list[OutcomeUpdate] = field(default_factory=list)
    base_documents: dict[str, ExceptionalEntry] = field(default_factory=dict)  # by document


async def collect_observations(
    db: Connection, generation: Generation, job: CrawlJob, coverage: CrawlCoverage
) -> Observations:
    observations = Observations()
    exceptions = await frontier.list_exceptional(db, job.id)
    redirects = {one.url: one.redirect_to for one in exceptions if one.redirect_to}
    for one in exceptions:
        if one.document_id is None or one.lifecycle is None:
            continue  # a redirect from a URL that is no document
        observations.base_documents[one.document_id] = one
        if one.outcome is Outcome.MOVED:
            await _follow_redirect(db, job, one, resolve_redirects(one.url, redirects), observations)
        else:
            observations.documents.append(make_observation(one, one.outcome, one.reason))
    if coverage.is_complete and not coverage.lists_everything:
        for one in await frontier.list_unreached(db, job.id):
            assert one.document_id is not None, "an unreached document is a document"
            observations.base_documents[one.document_id] = one
            observations.documents.append(make_observation(one, one.outcome, None))
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
    db: Connection, job: CrawlJob, one: ExceptionalEntry, target_url: str | None, observations: Observations
) -> None:
    """A document's URL redirects permanently: it moved there, or shares the fate of what is there."""
    assert one.document_id is not None, "only documents move"
    target = await frontier.entry(db, job.id, target_url) if target_url else None
    outcome = Outcome(target["outcome"]) if target and target["outcome"] else None
    if target_url is None:
        seen = make_observation(one, Outcome.FAILED, f"{one.reason}, and from there in a circle")
    elif target is None and job.lists_everything:
        seen = make_observation(one, Outcome.SKIPPED, f"{one.reason}, which is no part of the source")
    elif target is None or outcome is None or target["visited_at"] is None:
        seen = make_observation(one, Outcome.FAILED, f"redirects to {target_url}, which was not visited")
    elif outcome is Outcome.NEW:
        observations.move_candidates.append(
            MoveCandidate(document=one.document_id, url=one.url, depth=one.depth, target_url=target_url)
        )
        return
    elif outcome is not Outcome.GONE and target["version_id"] is not None:
        observations.merged_documents.add(one.document_id)
        seen = make_observation(one, Outcome.GONE, f"redirects to {target_url}")
    else:
        seen = make_observation(
            one, outcome, f"redirects to {target_url}: {target['reason']}", by_settings=bool(target["by_settings"])
        )
    observations.documents.append(seen)
    observations.outcome_updates.append(make_outcome_update(seen, one.url))


def make_observation(
    one: ExceptionalEntry, outcome: Outcome, reason: str | None, *, by_settings: bool | None = None
) -> DocumentObservation:
    assert one.document_id is not None, "only documents have a fate"
    assert one.lifecycle is not None, "and documents have a lifecycle"
    return DocumentObservation(
        document=one.document_id,
        in_base=True,
        outcome=outcome,
        reached=one.reached,
        reason=reason,
        by_settings=one.by_settings if by_settings is None else by_settings,
        lifecycle=one.lifecycle,
        since=one.since,
        missed_crawls=one.missed_crawls,
        retry_count=one.retry_count,
        verified_at=one.verified_at,
    )


def make_outcome_update(observation: DocumentObservation, url: str) -> OutcomeUpdate:
    assert observation.outcome is not None, "a relabelled URL was visited"
    return OutcomeUpdate(
        url=url, outcome=observation.outcome, reason=observation.reason or "", document=observation.document
    )
