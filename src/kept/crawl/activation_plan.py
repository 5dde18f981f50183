"""The plan of an activation: everything it would change, computed from the frontier without writing.

Activation applies the plan, the brake may hold it, and the review of a held generation shows it. Its cost follows the
exceptions of the crawl, not the number of documents.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field, replace
from datetime import datetime

from kept.crawl.brake import check_brake
from kept.crawl.document_matching import (
    DocumentMatch,
    DuplicateCandidate,
    MoveCandidate,
    find_duplicates,
    html_urls_for_markdown,
    match_documents,
)
from kept.crawl.lifecycle import CrawlCoverage, LifecycleRules, decide_lifecycle
from kept.crawl.match_candidates import find_former_documents, find_match_candidates, match_by_path
from kept.crawl.observations import (
    Observations,
    OutcomeUpdate,
    collect_observations,
    make_observation,
    make_outcome_update,
)
from kept.model.changes import RemovalReason
from kept.model.document import Lifecycle, LifecycleChange
from kept.model.frontier import ExceptionalEntry, Outcome
from kept.model.generation import Generation, Tally
from kept.model.job import CrawlJob, CrawlMode
from kept.store import documents, frontier, generations
from kept.store.database import Connection


@dataclass(frozen=True, slots=True, kw_only=True)
class DroppedDuplicate:
    """A new page that is a duplicate of another one, so it never becomes visible."""

    url: str
    version_id: int
    document: str
    duplicate_of: str  # a URL


@dataclass(frozen=True, slots=True, kw_only=True)
class ActivationPlan:
    dropped: list[DroppedDuplicate] = field(default_factory=list)
    matches: list[DocumentMatch] = field(default_factory=list)
    lifecycle_changes: list[LifecycleChange] = field(default_factory=list)
    outcome_updates: list[OutcomeUpdate] = field(default_factory=list)
    tally: Tally = Tally()
    moved_count: int = 0  # documents that the base shows at another URL
    hold_reason: str | None = None  # why the brake holds the generation

    @property
    def removals(self) -> dict[str, str]:
        """The documents that the new generation no longer shows, each with the reason."""
        return {change.document: change.reason or "" for change in self.lifecycle_changes if change.is_ended}

    @property
    def removal_reasons(self) -> list[RemovalReason]:
        counts = Counter(self.removals.values()).most_common()
        return [RemovalReason(reason=reason, count=count) for reason, count in counts]


async def plan_activation(
    db: Connection, generation: Generation, base: Generation | None, job: CrawlJob, rules: LifecycleRules, now: datetime
) -> ActivationPlan:
    """Return what activating this generation would do. A first generation, without a base, is cheap however large."""
    if base is None:
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
        settings_changed=_excluding_settings(generation) != _excluding_settings(base),
        verified_before=await generations.last_verified(db, generation.source_id),
        now=now,
        is_quick=job.mode is CrawlMode.QUICK,
    )
    observations = await collect_observations(db, generation, job, coverage)
    changes = {
        change.document: change
        for observation in observations.documents
        if (change := decide_lifecycle(observation, coverage, rules))
    }
    ending = {change.document for change in changes.values() if change.is_ended} | {
        move.document for move in observations.move_candidates
    }
    dropped = await _drop_duplicates(db, generation, job, observations, ending)
    former = find_former_documents(observations, changes)
    new_pages, hidden = await find_match_candidates(db, generation, former, observations.move_candidates)
    duplicates = {page.document for page in dropped}
    new_pages = [page for page in new_pages if page.document not in duplicates]
    matches = match_documents(new_pages, observations.move_candidates, [*former, *hidden])
    if coverage.lists_everything:  # on a web site a file name is no evidence
        matches += await match_by_path(db, generation, former, matches, duplicates)
    changes |= _end_merged_documents(observations, {match.document for match in matches}, coverage, rules)
    for match in matches:
        changes[match.document] = LifecycleChange(document=match.document, lifecycle=Lifecycle.ACTIVE)
    outcome_updates = [*observations.outcome_updates, *_missing_updates(observations, changes)]
    outcome_updates += map(_duplicate_update, dropped)
    outcome_updates += [update for match in matches for update in _match_updates(match, observations.base_documents)]
    return ActivationPlan(
        dropped=dropped,
        matches=matches,
        lifecycle_changes=list(changes.values()),
        outcome_updates=outcome_updates,
        tally=_recount(job.progress.tally, outcome_updates, observations.base_documents, matches, dropped),
        moved_count=sum(match.document in observations.base_documents for match in matches),
        hold_reason=check_brake(changes.values(), base_document_count=base.documents, rules=rules),
    )


def _missing_updates(observations: Observations, changes: Mapping[str, LifecycleChange]) -> Iterator[OutcomeUpdate]:
    """Yield the outcomes of documents that are missing although their URL may answer, and of those removed for it."""
    updated = {update.document for update in observations.outcome_updates}
    for observation in observations.documents:
        change, entry = changes.get(observation.document), observations.base_documents.get(observation.document)
        if change is None or change.reason is None or entry is None:
            continue
        if change.is_grace_over and change.is_ended:
            yield OutcomeUpdate(
                url=entry.url, outcome=Outcome.GONE, reason=change.reason, document=observation.document
            )
        elif change.lifecycle is Lifecycle.MISSING and not entry.reason and observation.document not in updated:
            yield OutcomeUpdate(
                url=entry.url, outcome=entry.outcome, reason=change.reason, document=observation.document
            )


def _excluding_settings(generation: Generation) -> tuple[object, ...]:
    """Return the settings that can exclude a page."""
    settings = generation.settings
    return settings.scope, settings.limits, settings.access.render


def _end_merged_documents(
    observations: Observations, matched: Set[str], coverage: CrawlCoverage, rules: LifecycleRules
) -> dict[str, LifecycleChange]:
    """End the documents whose move target has become another document."""
    changes = {}
    for move in observations.move_candidates:
        if move.document in matched:
            continue
        entry = observations.base_documents[move.document]
        is_redirect = entry.outcome is Outcome.MOVED
        observation = make_observation(
            entry, Outcome.GONE, f"{'redirects to' if is_redirect else 'a duplicate of'} {move.target_url}"
        )
        change = decide_lifecycle(observation, coverage, rules)
        assert change is not None, "a document that is gone changes its lifecycle"
        changes[move.document] = change
        update = make_outcome_update(observation, entry.url)
        observations.outcome_updates.append(update if is_redirect else replace(update, outcome=Outcome.SKIPPED))
    return changes


async def _drop_duplicates(
    db: Connection, generation: Generation, job: CrawlJob, observations: Observations, ending: Set[str]
) -> list[DroppedDuplicate]:
    """Return the new pages that are duplicates.

    A document of the base that is one becomes a move candidate, as if it redirected to the page that it duplicates.
    """
    named = await frontier.list_with_canonical(db, job.id, source=generation.source_id, generation=generation.number)
    pages = [
        (
            DuplicateCandidate(url=one.entry.url, content_id=one.content_id, is_html=_is_html(one.content_type)),
            one.canonical,
        )
        for one in named
    ]
    urls = sorted({url for page, to in pages for url in ((to,) if page.is_html else html_urls_for_markdown(to))})
    living = {
        version.url: DuplicateCandidate(
            url=version.url, content_id=version.content_id, is_html=_is_html(version.content_type)
        )
        for version in await documents.upcoming_by_url(db, generation.source_id, urls, generation=generation.number)
        if version.document_id not in ending
    }
    duplicates = find_duplicates(pages, living)
    observations.move_candidates[:] = [
        replace(move, target_url=duplicates.get(move.target_url, move.target_url))
        for move in observations.move_candidates
    ]
    dropped = []
    for one in named:
        entry = one.entry
        assert entry.document_id is not None, "a page that was kept is a document"
        if entry.url not in duplicates:
            continue
        if entry.outcome is Outcome.NEW:
            dropped.append(
                DroppedDuplicate(
                    url=entry.url,
                    version_id=one.version_id,
                    document=entry.document_id,
                    duplicate_of=duplicates[entry.url],
                )
            )
        else:
            observations.base_documents[entry.document_id] = entry
            observations.move_candidates.append(
                MoveCandidate(
                    document=entry.document_id, url=entry.url, depth=entry.depth, target_url=duplicates[entry.url]
                )
            )
    return dropped


def _is_html(content_type: str) -> bool:
    return "html" in content_type


def _duplicate_update(page: DroppedDuplicate) -> OutcomeUpdate:
    return OutcomeUpdate(
        url=page.url, outcome=Outcome.SKIPPED, reason=f"a duplicate of {page.duplicate_of}", document=None
    )


def _match_updates(document_match: DocumentMatch, base_documents: dict[str, ExceptionalEntry]) -> list[OutcomeUpdate]:
    """Return the outcomes at both ends of a move. A document that is restored at its old URL is new again."""
    url, from_url, document = document_match.new_page.url, document_match.from_url, document_match.document
    if from_url == url:
        return [OutcomeUpdate(url=url, outcome=Outcome.NEW, reason="it is back", document=document)]
    target = OutcomeUpdate(url=url, outcome=Outcome.MOVED, reason=f"moved from {from_url}", document=document)
    origin = OutcomeUpdate(url=from_url, outcome=Outcome.MOVED, reason=f"moved to {url}", document=document)
    return [target, origin] if document in base_documents else [target]


def _recount(
    tally: Tally,
    outcome_updates: list[OutcomeUpdate],
    base_documents: dict[str, ExceptionalEntry],
    matches: list[DocumentMatch],
    dropped: list[DroppedDuplicate],
) -> Tally:
    """Count each URL under its final outcome, and each move once, not at both of its ends."""
    counts = Counter(tally.as_json())
    outcomes = {entry.url: entry.outcome for entry in base_documents.values()}
    new_urls = [*(match.new_page.url for match in matches), *(page.url for page in dropped)]
    outcomes |= dict.fromkeys(new_urls, Outcome.NEW)
    for update in outcome_updates:  # in order: a URL may be updated twice
        counts[outcomes[update.url].tally_field] -= 1
        counts[update.outcome.tally_field] += 1
        outcomes[update.url] = update.outcome
    counts[Outcome.MOVED] -= sum(
        match.document in base_documents and match.from_url != match.new_page.url for match in matches
    )
    return Tally(**counts)
