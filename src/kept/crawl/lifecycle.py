"""What a finished crawl means for documents that did not simply stay as they were, and whether a person should look.

Pure: marks go in (what the crawl saw), fates come out. Only exceptions cost a row; an active document shares
the times of its generation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from kept.model.document import Lifecycle
from kept.model.frontier import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleRules:
    """What counts as lost, and for how long a document is waited for."""

    grace_crawls: int = 2
    grace_period: timedelta = timedelta(days=7)
    brake_share: float = 0.2
    brake_documents: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlCoverage:
    """What kind of crawl it was."""

    lists_everything: bool
    is_complete: bool  # it saw everything: no limit, no unread list, no repair, not quick
    settings_changed: bool  # since the base was made
    verified_before: datetime | None  # when the base's documents were last confirmed
    now: datetime
    is_quick: bool = False  # it looked here and there: nothing counts as missing


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentObservation:
    """What a crawl saw of one document."""

    document: str
    in_base: bool  # by the base
    outcome: Outcome | None  # None: not visited
    reached: bool = True
    reason: str | None = None
    by_settings: bool = False
    lifecycle: Lifecycle = Lifecycle.ACTIVE
    since: datetime | None = None
    missed_crawls: int = 0
    retry_count: int = 0
    verified_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleChange:
    """What becomes of a document."""

    document: str
    lifecycle: Lifecycle
    since: datetime | None = None
    missed_crawls: int = 0
    retry_count: int = 0
    reason: str | None = None
    verified_at: datetime | None = None
    is_ended: bool = False  # the new generation does not show it any more
    is_lost: bool = False  # and nobody here wanted that


def decide_lifecycle(
    observation: DocumentObservation, coverage: CrawlCoverage, rules: LifecycleRules
) -> LifecycleChange | None:
    """What becomes of a document; None: it stays as it is."""
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
            return None  # it answers, but whether something leads to it is not known
        case _ if observation.lifecycle is not Lifecycle.ACTIVE or observation.verified_at is not None:
            return LifecycleChange(document=observation.document, lifecycle=Lifecycle.ACTIVE)
        case _:
            return None


def check_brake(changes: Iterable[LifecycleChange], *, base_document_count: int, rules: LifecycleRules) -> str | None:
    """Why a person should look before this becomes true; None if nobody needs to. ``shown``: by the base."""
    changes = list(changes)
    lost = sum(one.is_lost for one in changes)
    failed = sum(one.lifecycle is Lifecycle.ERROR for one in changes)
    for count, what in ((lost, "would be lost"), (failed, "could not be read")):
        many = count > base_document_count * rules.brake_share and count >= rules.brake_documents
        if count and (many or count >= base_document_count):
            return f"{count} of {base_document_count} documents {what}"
    return None


def _mark_missing(
    observation: DocumentObservation, coverage: CrawlCoverage, rules: LifecycleRules, *, visible: bool
) -> LifecycleChange:
    """Waited for until the grace period ends, both in crawls and in time."""
    waiting = observation.lifecycle is Lifecycle.MISSING and observation.since is not None
    since = observation.since if waiting and observation.since else coverage.now
    missed = observation.missed_crawls + 1 if waiting else 0
    if missed >= rules.grace_crawls and coverage.now - since >= rules.grace_period:
        return _mark_deleted(observation, coverage, is_lost=observation.in_base)
    ends = observation.in_base and not visible
    answered = observation.outcome in (Outcome.UNCHANGED, Outcome.CHANGED)
    return LifecycleChange(
        document=observation.document,
        lifecycle=Lifecycle.MISSING,
        since=since,
        missed_crawls=missed,
        reason=observation.reason or "nothing leads to it any more",
        verified_at=None if answered else observation.verified_at or coverage.verified_before,
        is_ended=ends,
        is_lost=ends,
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
