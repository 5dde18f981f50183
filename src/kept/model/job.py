"""A crawl job: a durable request to build the next generation of a source."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kept.model.generation import Tally


class JobStatus(StrEnum):
    PENDING = "pending"  # waits for a worker
    PROCESSING = "processing"  # one or more workers walk it
    PAUSED = "paused"  # a person stopped it; its frontier waits
    COMPLETED = "completed"  # its generation is active, or held
    FAILED = "failed"  # given up; the reason is in its error
    CANCELLED = "cancelled"  # a person gave it up


JOB_TRANSITIONS: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.PROCESSING, JobStatus.PAUSED, JobStatus.CANCELLED, JobStatus.FAILED}),
    JobStatus.PROCESSING: frozenset(
        {JobStatus.PENDING, JobStatus.PAUSED, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}
    ),
    JobStatus.PAUSED: frozenset({JobStatus.PENDING, JobStatus.CANCELLED}),
    JobStatus.COMPLETED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}


def format_job_transitions() -> str:
    """The table as the manual shows it: from each state to those that may follow."""
    following = {state: " · ".join(to for to in JobStatus if to in moves) for state, moves in JOB_TRANSITIONS.items()}
    return "".join(f"{state:<11}{f'──►  {to}' if to else 'the end'}\n" for state, to in following.items())


class CrawlMode(StrEnum):
    """How wide a crawl looks; a request that joins a waiting one keeps the wider mode."""

    FAILED = "failed"  # only what failed last time; sweeps nothing
    QUICK = "quick"  # the root, what is new, what probably changed, what failed; sweeps nothing
    REFRESH = "refresh"  # everything, conditionally
    FULL = "full"  # everything, without validators

    @property
    def is_exhaustive(self) -> bool:
        """Whether it visits every known document, so that what it does not see counts."""
        return self in (CrawlMode.REFRESH, CrawlMode.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is."""

    discovered: int = 0
    tally: Tally = Tally()
    bytes: int = 0
    current_depth: int = 0

    @property
    def done(self) -> int:
        return sum(self.tally.as_json().values())

    @property
    def percent(self) -> int:
        return 100 * self.done // self.discovered if self.discovered else 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Pages a second, and how long the rest takes at that; None: who knows, or nobody is at it."""

    rate: float = 0.0
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlJob:
    id: str
    source_id: str
    mode: CrawlMode
    status: JobStatus
    priority: int
    again: CrawlMode | None  # asked for while it ran: another crawl follows
    attempt: int
    retry_count: int
    max_retries: int
    generation: int | None  # the one it builds; None until it began
    batch: int  # how many batches are committed
    listed: bool  # the origin's list, or its seeds, are all in the frontier
    lists_everything: bool  # what its origin does not list is not there
    limited: bool  # a limit kept something out
    unlisted: bool  # a part of the list could not be read
    held: bool
    progress: Progress
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    last_heartbeat: datetime | None
    error: str | None
    claimed_at: datetime | None = None  # the last time that it began or went on
    done_before: int = 0  # what was done by then
    owner: str | None = None  # the key that asked for it; None: a person at the command line, or a schedule

    def pace(self, now: datetime) -> "Pace":
        """How fast it goes, since it last began or went on; a job that nobody walks does not go."""
        left = self.progress.discovered - self.progress.done
        if self.claimed_at is None or self.status not in (JobStatus.PROCESSING, JobStatus.COMPLETED):
            return Pace()
        seconds = ((self.completed_at or now) - self.claimed_at).total_seconds()
        rate = max(0, self.progress.done - self.done_before) / max(seconds, 0.001)
        if self.status is JobStatus.COMPLETED:
            return Pace(rate=rate)
        return Pace(rate=rate, eta_seconds=left / rate if rate else None)
