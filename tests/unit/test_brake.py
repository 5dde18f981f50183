"""The brake: how many lost or failed documents hold a generation."""

from datetime import UTC, datetime

import pytest

from kept.crawl.brake import check_brake
from kept.crawl.lifecycle import CrawlCoverage, DocumentObservation, LifecycleRules, decide_lifecycle
from kept.model.document import Lifecycle, LifecycleChange
from kept.model.frontier import Outcome

RULES = LifecycleRules()
CHANGED_SETTINGS = CrawlCoverage(
    lists_everything=False,
    is_complete=True,
    settings_changed=True,
    verified_before=None,
    now=datetime(2026, 1, 31, tzinfo=UTC),
)
ACTIVE, ERROR, DELETED = Lifecycle.ACTIVE, Lifecycle.ERROR, Lifecycle.DELETED


def changes(*, lost: int = 0, failed: int = 0, fine: int = 0) -> list[LifecycleChange]:
    return [
        *(LifecycleChange(document=f"lost {n}", lifecycle=DELETED, is_ended=True, is_lost=True) for n in range(lost)),
        *(LifecycleChange(document=f"failed {n}", lifecycle=ERROR) for n in range(failed)),
        *(LifecycleChange(document=f"fine {n}", lifecycle=ACTIVE) for n in range(fine)),
    ]


@pytest.mark.parametrize(
    ("document_count", "count", "held"),
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
def test_too_many_lost_or_failed_documents_hold_a_generation(document_count: int, count: int, held: bool) -> None:
    assert bool(check_brake(changes(lost=count, fine=3), base_document_count=document_count, rules=RULES)) is held
    assert bool(check_brake(changes(failed=count, fine=3), base_document_count=document_count, rules=RULES)) is held


def test_lost_and_failed_documents_are_counted_apart() -> None:
    assert check_brake(changes(lost=15, failed=15), base_document_count=100, rules=RULES) is None


def test_documents_that_changed_settings_exclude_do_not_count() -> None:
    skipped = DocumentObservation(document="one", in_base=True, outcome=Outcome.SKIPPED, by_settings=True)
    change = decide_lifecycle(skipped, CHANGED_SETTINGS, RULES)
    assert change is not None
    assert change.is_ended
    assert check_brake([change] * 100, base_document_count=100, rules=RULES) is None


def test_the_reason_has_the_numbers() -> None:
    assert check_brake(changes(lost=30), base_document_count=100, rules=RULES) == "30 of 100 documents would be lost"
    assert (
        check_brake(changes(failed=30), base_document_count=100, rules=RULES) == "30 of 100 documents could not be read"
    )


def test_the_thresholds_can_be_set() -> None:
    assert check_brake(changes(lost=30), base_document_count=100, rules=LifecycleRules(brake_share=0.5)) is None
    assert check_brake(changes(lost=3), base_document_count=10, rules=LifecycleRules(brake_documents=1)) is not None
