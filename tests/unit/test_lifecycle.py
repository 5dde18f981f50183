"""Lifecycles of documents: the table of decisions and the grace period."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kept.crawl.lifecycle import CrawlCoverage, DocumentObservation, LifecycleRules, decide_lifecycle
from kept.model.document import Lifecycle
from kept.model.frontier import Outcome

NOW = datetime(2026, 1, 31, tzinfo=UTC)
DAY = timedelta(days=1)
RULES = LifecycleRules()

WEB = CrawlCoverage(
    lists_everything=False, is_complete=True, settings_changed=False, verified_before=NOW - DAY, now=NOW
)
FOLDER = replace(WEB, lists_everything=True)
LIMITED = replace(WEB, is_complete=False)
OTHER_SETTINGS = replace(WEB, settings_changed=True)

ACTIVE, MISSING, ERROR, DELETED = Lifecycle
NEW, CHANGED, UNCHANGED, MOVED, GONE, DEAD_LINK, FAILED, SKIPPED = Outcome


def observed(outcome: Outcome | None, **values: object) -> DocumentObservation:
    return DocumentObservation(**{"document": "one", "in_base": True, "outcome": outcome} | values)  # type: ignore[arg-type]


def missing(outcome: Outcome | None, *, days: float, missed: int, **values: object) -> DocumentObservation:
    return observed(outcome, lifecycle=MISSING, since=NOW - days * DAY, missed_crawls=missed, **values)


STAYS = None  # as it was, and visible


@pytest.mark.parametrize(
    ("coverage", "observation", "lifecycle", "is_ended", "is_lost"),
    [
        # seen, in good order
        (WEB, observed(UNCHANGED), STAYS, False, False),
        (WEB, observed(CHANGED), STAYS, False, False),
        (WEB, observed(UNCHANGED, lifecycle=ERROR, since=NOW - DAY), ACTIVE, False, False),
        (WEB, missing(CHANGED, days=1, missed=1), ACTIVE, False, False),
        (FOLDER, observed(UNCHANGED, verified_at=NOW - DAY), ACTIVE, False, False),
        # failed: an error is never a deletion
        (WEB, observed(FAILED), ERROR, False, False),
        (FOLDER, observed(FAILED), ERROR, False, False),
        (LIMITED, observed(FAILED), ERROR, False, False),
        (WEB, missing(FAILED, days=100, missed=100), ERROR, False, False),
        (WEB, observed(FAILED, reached=False), ERROR, False, False),
        # gone: 404 is definite, a file that is not listed may be on its way elsewhere
        (WEB, observed(GONE), DELETED, True, True),
        (LIMITED, observed(GONE), DELETED, True, True),
        (WEB, observed(GONE, reached=False), DELETED, True, True),
        (FOLDER, observed(GONE), MISSING, True, True),
        # skipped
        (WEB, observed(SKIPPED), MISSING, False, False),
        (WEB, observed(SKIPPED, by_settings=True), MISSING, False, False),
        (OTHER_SETTINGS, observed(SKIPPED), MISSING, False, False),
        (OTHER_SETTINGS, observed(SKIPPED, by_settings=True), DELETED, True, False),
        # not reached, though it answers
        (WEB, observed(UNCHANGED, reached=False), MISSING, False, False),
        (WEB, observed(CHANGED, reached=False), MISSING, False, False),
        (LIMITED, observed(UNCHANGED, reached=False), STAYS, False, False),
        (LIMITED, missing(UNCHANGED, days=100, missed=100, reached=False), STAYS, False, False),
        # not visited
        (WEB, observed(None), STAYS, False, False),
        (FOLDER, missing(None, days=1, missed=0, in_base=False), MISSING, False, False),
        (LIMITED, missing(None, days=100, missed=100, in_base=False), STAYS, False, False),
    ],
)
def test_what_a_crawl_saw_decides_the_lifecycle_of_a_document(
    coverage: CrawlCoverage,
    observation: DocumentObservation,
    lifecycle: Lifecycle | None,
    is_ended: bool,
    is_lost: bool,
) -> None:
    change = decide_lifecycle(observation, coverage, RULES)
    if lifecycle is STAYS:
        assert change is None
    else:
        assert change is not None
        assert (change.lifecycle, change.is_ended, change.is_lost) == (lifecycle, is_ended, is_lost)
        assert (change.since is None) == (lifecycle is ACTIVE)


# The grace period: two crawls and seven days, the later of them


@pytest.mark.parametrize(
    ("days", "missed", "over"),
    [(0, 0, False), (6.9, 9, False), (7, 1, True), (8, 0, False), (100, 0, False), (7, 100, True)],
    ids=["just begun", "too few days", "both are over", "too few crawls", "far too few crawls", "long over"],
)
@pytest.mark.parametrize(
    ("coverage", "outcome", "values"),
    [
        (WEB, UNCHANGED, {"reached": False}),
        (WEB, SKIPPED, {}),
        (FOLDER, None, {"in_base": False}),
    ],
    ids=["not reached", "skipped", "not listed"],
)
def test_a_missing_document_is_kept_through_two_crawls_and_seven_days(
    coverage: CrawlCoverage, outcome: Outcome | None, values: dict[str, bool], days: float, missed: int, over: bool
) -> None:
    observation = missing(outcome, days=days, missed=missed, **values)
    change = decide_lifecycle(observation, coverage, RULES)
    assert change is not None
    assert change.lifecycle is (DELETED if over else MISSING)
    assert change.is_ended is change.is_lost is (over and observation.in_base)
    if not over:
        assert (change.since, change.missed_crawls) == (observation.since, missed + 1)


def test_the_grace_period_starts_with_the_first_crawl_that_misses_the_document() -> None:
    change = decide_lifecycle(observed(SKIPPED, lifecycle=ERROR, since=NOW - 100 * DAY, retry_count=9), WEB, RULES)
    assert change is not None
    assert (change.lifecycle, change.since, change.missed_crawls, change.retry_count) == (MISSING, NOW, 0, 0)


# Times and counters


def test_every_failure_counts_and_the_first_one_is_remembered() -> None:
    first = decide_lifecycle(observed(FAILED, reason="500"), WEB, RULES)
    again = decide_lifecycle(observed(FAILED, lifecycle=ERROR, since=NOW - DAY, retry_count=3), WEB, RULES)
    assert first is not None
    assert again is not None
    assert (first.since, first.retry_count, first.reason) == (NOW, 1, "500")
    assert (again.since, again.retry_count) == (NOW - DAY, 4)


@pytest.mark.parametrize(
    ("observation", "verified_at"),
    [
        (observed(FAILED), NOW - DAY),
        (observed(FAILED, verified_at=NOW - 9 * DAY), NOW - 9 * DAY),
        (observed(SKIPPED), NOW - DAY),
        (missing(SKIPPED, days=1, missed=0, verified_at=NOW - 9 * DAY), NOW - 9 * DAY),
        (observed(UNCHANGED, reached=False), None),
        (missing(UNCHANGED, days=1, missed=0, verified_at=NOW - 9 * DAY), None),
    ],
    ids=["failed", "failed again", "skipped", "skipped again", "answers", "is back"],
)
def test_a_document_that_was_not_confirmed_keeps_the_time_of_its_last_confirmation(
    observation: DocumentObservation, verified_at: datetime | None
) -> None:
    change = decide_lifecycle(observation, WEB, RULES)
    assert change is not None
    assert change.verified_at == verified_at
