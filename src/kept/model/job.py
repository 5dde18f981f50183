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


JOB_MOVES: dict[JobStatus, frozenset[JobStatus]] = {
    JobStatus.PENDING: frozenset({JobStatus.PROCESSING, JobStatus.PAUSED, JobStatus.CANCELLED, JobStatus.FAILED}),
    JobStatus.PROCESSING: frozenset(
        {JobStatus.PENDING, JobStatus.PAUSED, JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED}
    ),
    JobStatus.PAUSED: frozenset({JobStatus.PENDING, JobStatus.CANCELLED}),
    JobStatus.COMPLETED: frozenset(),
    JobStatus.FAILED: frozenset(),
    JobStatus.CANCELLED: frozenset(),
}


class CrawlMode(StrEnum):
    """How wide a crawl looks; a request that joins a waiting one keeps the wider mode."""

    FAILED = "failed"  # only what failed last time; sweeps nothing
    REFRESH = "refresh"  # everything, conditionally
    FULL = "full"  # everything, without validators


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
