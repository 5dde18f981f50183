"""What activating a generation would do: read from its frontier, decided by ``identity`` and ``sweep``.

Nothing is written here. The same plan is carried out by activation, held back by the brake, and shown to the
person who reviews a held generation. Its cost follows the exceptions of the crawl, not the number of documents.
"""

from collections import Counter
from collections.abc import Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from kept.crawl.document_matching import (
    DocumentMatch,
    DuplicateCandidate,
    MoveCandidate,
    find_duplicates,
    html_urls_for_markdown,
    match_documents,
)
from kept.crawl.lifecycle import CrawlCoverage, LifecycleChange, LifecycleRules, check_brake, decide_lifecycle
from kept.crawl.match_candidates import find_former_documents, find_match_candidates, match_by_path
from kept.crawl.observations import (
    Observations,
    OutcomeUpdate,
    collect_observations,
    make_observation,
    make_outcome_update,
)
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.generation import Generation, Tally
from kept.model.job import CrawlJob, CrawlMode
from kept.store import documents, frontier, generations
from kept.store.database import Connection
from kept.store.frontier import ExceptionalEntry


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedDuplicate:
    """A new page that repeats another: it was never seen, and will not be."""

    url: str
    version_id: int
    document: str
    duplicate_of: str  # the URL of the one that it repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationPlan:
    dropped: list[DroppedDuplicate] = field(default_factory=list)
    matches: list[DocumentMatch] = field(default_factory=list)
    lifecycle_changes: list[LifecycleChange] = field(default_factory=list)
    outcome_updates: list[OutcomeUpdate] = field(default_factory=list)
    tally: Tally = Tally()
    moved_count: int = 0  # documents that the base shows elsewhere
    hold_reason: str | None = None  # why a person should look first

    @property
    def ended_documents(self) -> list[str]:
        return [one.document for one in self.lifecycle_changes if one.is_ended]


async def plan_activation(
    db: Connection, generation: Generation, base: Generation | None, job: CrawlJob, rules: LifecycleRules, now: datetime
) -> ActivationPlan:
    """What activating this generation would do."""
    if base is None:  # nothing can be lost, moved or restored; a million documents cost nothing here
        dropped = await _drop_duplicates(db, generation, job, Observations(), frozenset())
        outcome_updates = [*map(_duplicate_update, dropped)]
        return ActivationPlan(
            dropped=dropped,
            outcome_updates=outcome_updates,
            tally=_recount(job.progress.tally, outcome_updates, {}, [], dropped),
        )
    coverage = CrawlCoverage(
        lists_everything=job.lists_everything,
        is_complete=job.mode.is_exhaustive and not job.limited and not job.unlisted,
        settings_changed=generation.settings.scope != base.settings.scope
        or generation.settings.limits != base.settings.limits,
        verified_before=await generations.last_verified(db, generation.source_id),
        now=now,
        is_quick=job.mode is CrawlMode.QUICK,
    )
    observations = await collect_observations(db, generation, job, coverage)
    changes = {
        seen.document: one for seen in observations.documents if (one := decide_lifecycle(seen, coverage, rules))
    }
    ending = {one.document for one in changes.values() if one.is_ended} | {
        move.document for move in observations.move_candidates
    }
    dropped = await _drop_duplicates(db, generation, job, observations, ending)
    sought = find_former_documents(observations, changes)
    arrivals, former = await find_match_candidates(db, generation, sought, observations.move_candidates)
    repeating = {one.document for one in dropped}
    arrivals = [one for one in arrivals if one.document not in repeating]
    matches = match_documents(arrivals, observations.move_candidates, [*sought, *former])
    if coverage.lists_everything:  # elsewhere a name says nothing
        matches += await match_by_path(db, generation, sought, matches, repeating)
    changes |= _end_merged_documents(observations, {adoption.document for adoption in matches}, coverage, rules)
    for adoption in matches:
        changes[adoption.document] = LifecycleChange(document=adoption.document, lifecycle=Lifecycle.ACTIVE)
    outcome_updates = [*observations.outcome_updates, *map(_duplicate_update, dropped)]
    outcome_updates += [one for adoption in matches for one in _match_updates(adoption, observations.base_documents)]
    return ActivationPlan(
        dropped=dropped,
        matches=matches,
        lifecycle_changes=list(changes.values()),
        outcome_updates=outcome_updates,
        tally=_recount(job.progress.tally, outcome_updates, observations.base_documents, matches, dropped),
        moved_count=sum(adoption.document in observations.base_documents for adoption in matches),
        hold_reason=check_brake(changes.values(), base_document_count=base.documents, rules=rules),
    )


def _end_merged_documents(
    observations: Observations, matched: Set[str], coverage: CrawlCoverage, rules: LifecycleRules
) -> dict[str, LifecycleChange]:
    """The documents that moved to where another is now: they end."""
    changes = {}
    for move in observations.move_candidates:
        if move.document in matched:
            continue
        here = observations.base_documents[move.document]
        redirects = here.outcome is Outcome.MOVED
        seen = make_observation(
            here, Outcome.GONE, f"{'redirects to' if redirects else 'a duplicate of'} {move.target_url}"
        )
        merged = decide_lifecycle(seen, coverage, rules)
        assert merged is not None, "what is gone has a fate"
        changes[move.document] = merged
        label = make_outcome_update(seen, here.url)
        observations.outcome_updates.append(label if redirects else replace(label, outcome=Outcome.SKIPPED))
    return changes


async def _drop_duplicates(
    db: Connection, generation: Generation, job: CrawlJob, observations: Observations, ending: Set[str]
) -> list[DroppedDuplicate]:
    """The new pages that repeat another. A document that does so moves there, as if it redirected."""
    named = await frontier.list_with_canonical(db, job.id, source=generation.source_id, generation=generation.number)
    pages = [
        (
            DuplicateCandidate(url=one.url, content_id=row["content_now"], is_html=_is_html(row["content_type"])),
            row["canonical"],
        )
        for one, row in named
    ]
    urls = sorted({url for page, to in pages for url in ((to,) if page.is_html else html_urls_for_markdown(to))})
    living = await documents.upcoming_by_url(db, generation.source_id, urls, generation=generation.number)
    shown = {
        row["url"]: DuplicateCandidate(
            url=row["url"], content_id=row["content_id"], is_html=_is_html(row["content_type"])
        )
        for row in living
        if row["document_id"] not in ending
    }
    stays = find_duplicates(pages, shown)
    observations.move_candidates[:] = [
        replace(move, target_url=stays.get(move.target_url, move.target_url)) for move in observations.move_candidates
    ]
    dropped = []
    for one, row in named:
        assert one.document_id is not None, "a page that was kept is a document"
        if one.url not in stays:
            continue
        if one.outcome is Outcome.NEW:
            dropped.append(
                DroppedDuplicate(
                    url=one.url, version_id=row["version_id"], document=one.document_id, duplicate_of=stays[one.url]
                )
            )
        else:
            observations.base_documents[one.document_id] = one
            observations.move_candidates.append(
                MoveCandidate(document=one.document_id, url=one.url, depth=one.depth, target_url=stays[one.url])
            )
    return dropped


def _is_html(content_type: str) -> bool:
    return "html" in content_type


def _duplicate_update(one: DroppedDuplicate) -> OutcomeUpdate:
    return OutcomeUpdate(
        url=one.url, outcome=Outcome.SKIPPED, reason=f"a duplicate of {one.duplicate_of}", document=None
    )


def _match_updates(document_match: DocumentMatch, base_documents: dict[str, ExceptionalEntry]) -> list[OutcomeUpdate]:
    """Both ends of a move say so; a document restored where it was is new again."""
    arrival, document = document_match.new_page, document_match.document
    if document_match.from_url == arrival.url:
        return [OutcomeUpdate(url=arrival.url, outcome=Outcome.NEW, reason="it is back", document=document)]
    here = OutcomeUpdate(
        url=arrival.url, outcome=Outcome.MOVED, reason=f"moved from {document_match.from_url}", document=document
    )
    there = OutcomeUpdate(
        url=document_match.from_url, outcome=Outcome.MOVED, reason=f"moved to {arrival.url}", document=document
    )
    return [here, there] if document in base_documents else [here]


def _recount(
    tally: Tally,
    outcome_updates: list[OutcomeUpdate],
    base_documents: dict[str, ExceptionalEntry],
    matches: list[DocumentMatch],
    dropped: list[DroppedDuplicate],
) -> Tally:
    """A URL counts under its last label; a move counts once, not at both of its ends."""
    counts = Counter(tally.as_json())
    before = {one.url: one.outcome for one in base_documents.values()}
    before |= dict.fromkeys([*(one.new_page.url for one in matches), *(one.url for one in dropped)], Outcome.NEW)
    for relabel in outcome_updates:  # in turn: what redirects to nothing may then be found elsewhere by its content
        counts[before[relabel.url]] -= 1
        counts[relabel.outcome] += 1
        before[relabel.url] = relabel.outcome
    counts[Outcome.MOVED] -= sum(
        adoption.document in base_documents and adoption.from_url != adoption.new_page.url for adoption in matches
    )
    return Tally(**counts)
