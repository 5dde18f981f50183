"""The statuses of a job, its pace, and the page of the manual about it."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from kept.model.generation import Tally
from kept.model.job import JOB_TRANSITIONS, CrawlJob, CrawlMode, JobStatus, Pace, Progress, format_job_transitions

NOW = datetime(2026, 11, 16, 12, 0, tzinfo=UTC)
PAGE = Path(__file__).parents[2] / "docs" / "jobs.md"


def job(status: JobStatus, *, done: int, before: int = 0, completed: datetime | None = None) -> CrawlJob:
    return CrawlJob(
        id="1",
        source_id="2",
        mode=CrawlMode.REFRESH,
        status=status,
        priority=0,
        again=None,
        attempt=1,
        retry_count=0,
        max_retries=3,
        generation=1,
        batch=1,
        listed=True,
        lists_everything=False,
        limited=False,
        unlisted=False,
        held=False,
        progress=Progress(discovered=200, tally=Tally(new=done)),
        created_at=NOW - timedelta(days=1),
        started_at=NOW - timedelta(days=1),
        completed_at=completed,
        last_heartbeat=NOW,
        error=None,
        claimed_at=NOW - timedelta(seconds=10),
        done_before=before,
    )


def test_the_diagram_in_the_manual_is_drawn_from_the_table() -> None:
    assert f"```text\n{format_job_transitions()}```" in PAGE.read_text("utf-8")
    assert all(status in format_job_transitions() for status in JobStatus)


def test_a_job_that_has_ended_stays_ended_and_every_other_can_be_cancelled() -> None:
    ended = {JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}
    assert {status for status, moves in JOB_TRANSITIONS.items() if not moves} == ended
    assert all(JobStatus.CANCELLED in moves for status, moves in JOB_TRANSITIONS.items() if status not in ended)


def test_a_job_is_live_until_it_has_ended_and_a_paused_one_does_not_go_on_by_itself() -> None:
    assert {status for status in JobStatus if status.has_ended} == {"completed", "failed", "cancelled"}
    assert {status for status in JobStatus if status.is_live} == {"pending", "processing", "paused"}
    assert {status for status in JobStatus if status.is_queued_or_running} == {"pending", "processing"}


@pytest.mark.parametrize(
    ("one", "pace"),
    [
        (job(JobStatus.PROCESSING, done=100), Pace(rate=10, eta_seconds=10)),
        (job(JobStatus.PROCESSING, done=100, before=50), Pace(rate=5, eta_seconds=20)),
        (job(JobStatus.PROCESSING, done=0), Pace(rate=0, eta_seconds=None)),
        (job(JobStatus.COMPLETED, done=200, completed=NOW - timedelta(seconds=5)), Pace(rate=40)),
        (job(JobStatus.PAUSED, done=100), Pace()),
        (job(JobStatus.PENDING, done=100), Pace()),
    ],
)
def test_the_pace_counts_from_when_the_job_last_continued_and_only_while_it_is_crawled(
    one: CrawlJob, pace: Pace
) -> None:
    assert one.pace(NOW) == pace
