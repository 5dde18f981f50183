"""What a finished crawl means for documents that did not simply stay as they were, and whether a person should look.

Pure: marks go in (what the crawl saw), fates come out. Only exceptions cost a row; an active document shares
the times of its generation.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta

from kept.model.document import Lifecycle
from kept.model.frontier import Outcome
from kept.model.nouns import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What counts as lost, and for how long a document is waited for."""

    grace_crawls: int = 2
    grace: timedelta = timedelta(days=7)
    brake_share: float = 0.2
    brake_documents: int = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """What kind of crawl it was."""

    lists_everything: bool
    sweeps: bool  # it saw everything: no limit, no unread list, no repair, not quick
    settings_changed: bool  # since the base was made
    verified_before: datetime | None  # when the base's documents were last confirmed
    now: datetime
    quick: bool = False  # it looked here and there: nothing counts as missing


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What a crawl saw of one document."""

    document: str
    shown: bool  # by the base
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
class Fate:
    """What becomes of a document."""

    document: str
    lifecycle: Lifecycle
    since: datetime | None = None
    missed_crawls: int = 0
    retry_count: int = 0
    reason: str | None = None
    verified_at: datetime | None = None
    ends: bool = False  # the new generation does not show it any more
    lost: bool = False  # and nobody here wanted that


def fate(seen: Seen, crawl: Crawl, rules: Rules) -> Fate | None:
    """What becomes of a document; None: it stays as it is."""
    match seen.outcome:
        case Outcome.FAILED:
            return Fate(
                document=seen.document,
                lifecycle=Lifecycle.ERROR,
                since=seen.since if seen.lifecycle is Lifecycle.ERROR else crawl.now,
                retry_count=seen.retry_count + 1,
                reason=seen.reason,
                verified_at=seen.verified_at or crawl.verified_before,
            )
        case Outcome.GONE if crawl.lists_everything:
            return _missing(seen, crawl, rules, visible=False)
        case Outcome.GONE:
            return _deleted(seen, crawl, lost=True)
        case Outcome.SKIPPED if seen.by_settings and crawl.settings_changed:
            return _deleted(seen, crawl, lost=False)
        case Outcome.SKIPPED if crawl.quick:
            return None
        case Outcome.SKIPPED:
            return _missing(seen, crawl, rules, visible=True)
        case None:
            return _missing(seen, crawl, rules, visible=False) if crawl.sweeps and not seen.shown else None
        case _ if crawl.sweeps and not crawl.lists_everything and not seen.reached:
            return _missing(seen, crawl, rules, visible=True)
        case _ if seen.lifecycle is Lifecycle.MISSING and not seen.reached:
            return None  # it answers, but whether something leads to it is not known
        case _ if seen.lifecycle is not Lifecycle.ACTIVE or seen.verified_at is not None:
            return Fate(document=seen.document, lifecycle=Lifecycle.ACTIVE)
        case _:
            return None


def brake(fates: Iterable[Fate], *, shown: int, rules: Rules) -> str | None:
    """Why a person should look before this becomes true; None if nobody needs to. ``shown``: by the base."""
    fates = list(fates)
    lost = sum(one.lost for one in fates)
    failed = sum(one.lifecycle is Lifecycle.ERROR for one in fates)
    for count, what in ((lost, "would be lost"), (failed, "could not be read")):
        many = count > shown * rules.brake_share and count >= rules.brake_documents
        if count and (many or count >= shown):
            return f"{count} of {shown} documents {what}"
    return None


def _missing(seen: Seen, crawl: Crawl, rules: Rules, *, visible: bool) -> Fate:
    """Waited for until the grace period ends, both in crawls and in time."""
    waiting = seen.lifecycle is Lifecycle.MISSING and seen.since is not None
    since = seen.since if waiting and seen.since else crawl.now
    missed = seen.missed_crawls + 1 if waiting else 0
    if missed >= rules.grace_crawls and crawl.now - since >= rules.grace:
        return _deleted(seen, crawl, lost=seen.shown)
    ends = seen.shown and not visible
    answered = seen.outcome in (Outcome.UNCHANGED, Outcome.CHANGED)
    return Fate(
        document=seen.document,
        lifecycle=Lifecycle.MISSING,
        since=since,
        missed_crawls=missed,
        reason=seen.reason or "nothing leads to it any more",
        verified_at=None if answered else seen.verified_at or crawl.verified_before,
        ends=ends,
        lost=ends,
    )


def _deleted(seen: Seen, crawl: Crawl, *, lost: bool) -> Fate:
    return Fate(
        document=seen.document,
        lifecycle=Lifecycle.DELETED,
        since=crawl.now,
        reason=seen.reason,
        ends=seen.shown,
        lost=lost and seen.shown,
    )
