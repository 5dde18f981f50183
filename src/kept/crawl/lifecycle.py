"""Lifecycle: what a finished crawl means for documents that did not simply stay as they were.

Pure: observations go in, changes come out. Only exceptions cost a row; an active document shares the times of its
generation. The states and the rules are in docs/concepts.md; the brake is in ``brake``.
"""

from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from kept.model.document import Lifecycle, LifecycleChange
from kept.model.frontier import Outcome

NO_LINK_REASON = "nothing leads to it any more"


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRules:
    """How long a missing document is kept, and from when on the brake holds a generation."""

    grace_crawls: int = 2
    grace_period: timedelta = timedelta(days=7)
    brake_share: float = 0.2
    brake_documents: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlCoverage:
    """How much a crawl could see: only a complete one proves that a document is missing."""

    lists_everything: bool
    is_complete: bool  # it saw everything: no limit, no unread list, no repair, not quick
    settings_changed: bool  # since the base was crawled
    verified_before: datetime | None  # when the base's documents were last confirmed
    now: datetime
    is_quick: bool = False  # it visited a selection: nothing counts as missing


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentObservation:
    """One document as a crawl saw it, with its state before the crawl."""

    document: str
    in_base: bool  # the base shows it
    outcome: Outcome | None  # None: not visited
    reached: bool = True
    reason: str | None = None
    by_settings: bool = False
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    since: datetime | None = None
    missed_crawls: int = 0
    retry_count: int = 0
    verified_at: datetime | None = None


def decide_lifecycle(
    observation: DocumentObservation, coverage: CrawlCoverage, rules: LifecycleRules
) -> LifecycleChange | None:
    """Return the document's new state, or None if it stays as it is."""
    match observation.outcome:
        case Outcome.FAILED:
            return LifecycleChange(
                document=observation.document,
                lifecycle=Lifecycle.ERROR,
                since=observation.since if observation.lifecycle is Lifecycle.ERROR else coverage.now,
                retry_count=observation.retry_count + 1,
                reason=observation.reason,
                verified_at=observation.verified_at or coverage.verified_before,
            )
        case Outcome.GONE if coverage.lists_everything:
            return _mark_missing(observation, coverage, rules, visible=False)
        case Outcome.GONE:
            return _mark_deleted(observation, coverage, is_lost=True)
        case Outcome.SKIPPED if observation.by_settings and coverage.settings_changed:
            return _mark_deleted(observation, coverage, is_lost=False)
        case Outcome.SKIPPED if coverage.is_quick:
            return None
        case Outcome.SKIPPED:
            return _mark_missing(observation, coverage, rules, visible=True)
        case None:
            return (
                _mark_missing(observation, coverage, rules, visible=False)
                if coverage.is_complete and not observation.in_base
                else None
            )
        case _ if coverage.is_complete and not coverage.lists_everything and not observation.reached:
            return _mark_missing(observation, coverage, rules, visible=True)
        case _ if observation.lifecycle is Lifecycle.MISSING and not observation.reached:
            return None  # it answers, but this crawl cannot tell whether a link leads to it
        case _ if observation.lifecycle is not Lifecycle.ACTIVE or observation.verified_at is not None:
            return LifecycleChange(document=observation.document, lifecycle=Lifecycle.ACTIVE)
        case _:
            return None


def _mark_missing(
    observation: DocumentObservation, coverage: CrawlCoverage, rules: LifecycleRules, *, visible: bool
) -> LifecycleChange:
    """Mark a document as missing; as deleted once the grace period is over, both in crawls and in time."""
    was_missing = observation.lifecycle is Lifecycle.MISSING and observation.since is not None
    since = observation.since if was_missing and observation.since else coverage.now
    missed_crawls = observation.missed_crawls + 1 if was_missing else 0
    reason = observation.reason or NO_LINK_REASON
    if missed_crawls >= rules.grace_crawls and coverage.now - since >= rules.grace_period:
        reason = f"{reason}; missing since {since:%Y-%m-%d}, and the grace period is over"
        deleted = _mark_deleted(observation, coverage, is_lost=observation.in_base)
        return replace(deleted, reason=reason, is_grace_over=True)
    is_ended = observation.in_base and not visible
    has_answered = observation.outcome in (Outcome.UNCHANGED, Outcome.CHANGED)
    return LifecycleChange(
        document=observation.document,
        lifecycle=Lifecycle.MISSING,
        since=since,
        missed_crawls=missed_crawls,
        reason=reason,
        verified_at=None if has_answered else observation.verified_at or coverage.verified_before,
        is_ended=is_ended,
        is_lost=is_ended,
    )


def _mark_deleted(observation: DocumentObservation, coverage: CrawlCoverage, *, is_lost: bool) -> LifecycleChange:
    return LifecycleChange(
        document=observation.document,
        lifecycle=Lifecycle.DELETED,
        since=coverage.now,
        reason=observation.reason,
        is_ended=observation.in_base,
        is_lost=is_lost and observation.in_base,
    )
