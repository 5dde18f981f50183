"""What becomes of documents: the table of lifecycles, the grace period, and the brake."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kept.crawl.brake import check_brake
from kept.crawl.lifecycle import CrawlCoverage, DocumentObservation, LifecycleRules, decide_lifecycle
from kept.model.document import Lifecycle, LifecycleChange
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
NEW, CHANGED, UNCHANGED, MOVED, GONE, FAILED, SKIPPED = Outcome


def seen(outcome: Outcome | None, **values: object) -> DocumentObservation:
    return DocumentObservation(**{"document": "one", "in_base": True, "outcome": outcome} | values)  # type: ignore[arg-type]


def waiting(outcome: Outcome | None, *, days: float, missed: int, **values: object) -> DocumentObservation:
    return seen(outcome, lifecycle=MISSING, since=NOW - days * DAY, missed_crawls=missed, **values)


STAYS = None  # as it was, and shown


@pytest.mark.parametrize(
    ("crawl", "mark", "lifecycle", "ends", "lost"),
    [
        # seen, in good order
        (WEB, seen(UNCHANGED), STAYS, False, False),
        (WEB, seen(CHANGED), STAYS, False, False),
        (WEB, seen(UNCHANGED, lifecycle=ERROR, since=NOW - DAY), ACTIVE, False, False),
        (WEB, waiting(CHANGED, days=1, missed=1), ACTIVE, False, False),
        (FOLDER, seen(UNCHANGED, verified_at=NOW - DAY), ACTIVE, False, False),
        # failed: an error is never a deletion
        (WEB, seen(FAILED), ERROR, False, False),
        (FOLDER, seen(FAILED), ERROR, False, False),
        (LIMITED, seen(FAILED), ERROR, False, False),
        (WEB, waiting(FAILED, days=100, missed=100), ERROR, False, False),
        (WEB, seen(FAILED, reached=False), ERROR, False, False),
        # gone: 404 is definite, a file that is not listed may be on its way elsewhere
        (WEB, seen(GONE), DELETED, True, True),
        (LIMITED, seen(GONE), DELETED, True, True),
        (WEB, seen(GONE, reached=False), DELETED, True, True),
        (FOLDER, seen(GONE), MISSING, True, True),
        # skipped
        (WEB, seen(SKIPPED), MISSING, False, False),
        (WEB, seen(SKIPPED, by_settings=True), MISSING, False, False),
        (OTHER_SETTINGS, seen(SKIPPED), MISSING, False, False),
        (OTHER_SETTINGS, seen(SKIPPED, by_settings=True), DELETED, True, False),
        # not reached, though it answers
        (WEB, seen(UNCHANGED, reached=False), MISSING, False, False),
        (WEB, seen(CHANGED, reached=False), MISSING, False, False),
        (LIMITED, seen(UNCHANGED, reached=False), STAYS, False, False),
        (LIMITED, waiting(UNCHANGED, days=100, missed=100, reached=False), STAYS, False, False),
        # not visited
        (WEB, seen(None), STAYS, False, False),
        (FOLDER, waiting(None, days=1, missed=0, in_base=False), MISSING, False, False),
        (LIMITED, waiting(None, days=100, missed=100, in_base=False), STAYS, False, False),
    ],
)
def test_what_a_crawl_saw_decides_what_becomes_of_a_document(
    crawl: CrawlCoverage, mark: DocumentObservation, lifecycle: Lifecycle | None, ends: bool, lost: bool
) -> None:
    found = decide_lifecycle(mark, crawl, RULES)
    if lifecycle is STAYS:
        assert found is None
    else:
        assert found is not None
        assert (found.lifecycle, found.is_ended, found.is_lost) == (lifecycle, ends, lost)
        assert (found.since is None) == (lifecycle is ACTIVE)


# The grace period: two crawls and seven days, the later of them


@pytest.mark.parametrize(
    ("days", "missed", "over"),
    [(0, 0, False), (6.9, 9, False), (7, 1, True), (8, 0, False), (100, 0, False), (7, 100, True)],
    ids=["just begun", "too few days", "both are over", "too few crawls", "far too few crawls", "long over"],
)
@pytest.mark.parametrize(
    ("crawl", "outcome", "values"),
    [
        (WEB, UNCHANGED, {"reached": False}),
        (WEB, SKIPPED, {}),
        (FOLDER, None, {"in_base": False}),
    ],
    ids=["not reached", "skipped", "not listed"],
)
def test_a_document_is_waited_for_through_two_crawls_and_seven_days(
    crawl: CrawlCoverage, outcome: Outcome | None, values: dict[str, bool], days: float, missed: int, over: bool
) -> None:
    mark = waiting(outcome, days=days, missed=missed, **values)
    found = decide_lifecycle(mark, crawl, RULES)
    assert found is not None
    assert found.lifecycle is (DELETED if over else MISSING)
    assert found.is_ended is found.is_lost is (over and mark.in_base)
    if not over:
        assert (found.since, found.missed_crawls) == (mark.since, missed + 1)


def test_the_grace_starts_with_the_crawl_that_misses_it() -> None:
    found = decide_lifecycle(seen(SKIPPED, lifecycle=ERROR, since=NOW - 100 * DAY, retry_count=9), WEB, RULES)
    assert found is not None
    assert (found.lifecycle, found.since, found.missed_crawls, found.retry_count) == (MISSING, NOW, 0, 0)


# What it carries


def test_every_failure_counts_and_the_first_one_is_remembered() -> None:
    first = decide_lifecycle(seen(FAILED, reason="500"), WEB, RULES)
    again = decide_lifecycle(seen(FAILED, lifecycle=ERROR, since=NOW - DAY, retry_count=3), WEB, RULES)
    assert first is not None
    assert again is not None
    assert (first.since, first.retry_count, first.reason) == (NOW, 1, "500")
    assert (again.since, again.retry_count) == (NOW - DAY, 4)


@pytest.mark.parametrize(
    ("mark", "verified_at"),
    [
        (seen(FAILED), NOW - DAY),
        (seen(FAILED, verified_at=NOW - 9 * DAY), NOW - 9 * DAY),
        (seen(SKIPPED), NOW - DAY),
        (waiting(SKIPPED, days=1, missed=0, verified_at=NOW - 9 * DAY), NOW - 9 * DAY),
        (seen(UNCHANGED, reached=False), None),
        (waiting(UNCHANGED, days=1, missed=0, verified_at=NOW - 9 * DAY), None),
    ],
    ids=["failed", "failed again", "skipped", "skipped again", "answers", "is back"],
)
def test_what_the_origin_did_not_confirm_keeps_the_time_it_last_did(
    mark: DocumentObservation, verified_at: datetime | None
) -> None:
    found = decide_lifecycle(mark, WEB, RULES)
    assert found is not None
    assert found.verified_at == verified_at


# The brake


def fates(*, lost: int = 0, failed: int = 0, fine: int = 0) -> list[LifecycleChange]:
    return [
        *(LifecycleChange(document=f"lost {n}", lifecycle=DELETED, is_ended=True, is_lost=True) for n in range(lost)),
        *(LifecycleChange(document=f"failed {n}", lifecycle=ERROR) for n in range(failed)),
        *(LifecycleChange(document=f"fine {n}", lifecycle=ACTIVE) for n in range(fine)),
    ]


@pytest.mark.parametrize(
    ("shown", "count", "held"),
    [
        (100, 0, False),
        (100, 20, False),
        (100, 21, True),
        (10, 4, False),
        (10, 5, True),
        (25, 5, False),
        (24, 5, True),
        (5, 4, False),
        (5, 5, True),
        (1, 1, True),
        (0, 0, False),
    ],
    ids=[
        "nothing", "a fifth", "more than a fifth", "too few to count", "five of ten", "five are a fifth",
        "five are more than a fifth", "all but one of a few", "all of a few", "the only one", "nothing of nothing",
    ],
)  # fmt: skip
def test_too_many_lost_or_failed_hold_a_generation(shown: int, count: int, held: bool) -> None:
    assert bool(check_brake(fates(lost=count, fine=3), base_document_count=shown, rules=RULES)) is held
    assert bool(check_brake(fates(failed=count, fine=3), base_document_count=shown, rules=RULES)) is held


def test_lost_and_failed_are_counted_apart() -> None:
    assert check_brake(fates(lost=15, failed=15), base_document_count=100, rules=RULES) is None


def test_what_the_settings_exclude_does_not_brake() -> None:
    excluded = [decide_lifecycle(seen(SKIPPED, by_settings=True), OTHER_SETTINGS, RULES)] * 100
    assert check_brake([one for one in excluded if one], base_document_count=100, rules=RULES) is None


def test_the_brake_says_what_it_saw() -> None:
    assert check_brake(fates(lost=30), base_document_count=100, rules=RULES) == "30 of 100 documents would be lost"
    assert (
        check_brake(fates(failed=30), base_document_count=100, rules=RULES) == "30 of 100 documents could not be read"
    )


def test_the_brake_can_be_set() -> None:
    assert check_brake(fates(lost=30), base_document_count=100, rules=LifecycleRules(brake_share=0.5)) is None
    assert check_brake(fates(lost=3), base_document_count=10, rules=LifecycleRules(brake_documents=1)) is not None
