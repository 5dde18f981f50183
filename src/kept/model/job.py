"""Crawl jobs: durable requests to build the next generation of a source, and the leases of their workers."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from kept.model.generation import Tally


class JobStatus(StrEnum):
    PENDING = "pending"  # waits for a worker
    PROCESSING = "processing"  # one or more workers hold a lease
    PAUSED = "paused"  # stopped by a person; its frontier is kept
    COMPLETED = "completed"  # its generation is active, or held
    FAILED = "failed"  # given up; the reason is in its error
    CANCELLED = "cancelled"  # given up by a person

    @property
    def is_live(self) -> bool:
        """Whether the job has not ended. A source has at most one live job."""
        return not self.has_ended

    @property
    def has_ended(self) -> bool:
        return self in (JobStatus.COMPLETED, JobStatus.FAILED, JobStatus.CANCELLED)

    @property
    def is_queued_or_running(self) -> bool:
        """Whether the job goes on by itself. A paused one is live too, but waits for a person."""
        return self in (JobStatus.PENDING, JobStatus.PROCESSING)


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
    """Return the table of transitions as the manual shows it."""
    targets = {status: " · ".join(to for to in JobStatus if to in moves) for status, moves in JOB_TRANSITIONS.items()}
    return "".join(f"{status:<11}{f'──►  {to}' if to else 'the end'}\n" for status, to in targets.items())


class CrawlMode(StrEnum):
    """How much a crawl visits. A request that joins a pending job keeps the wider of the two modes."""

    FAILED = "failed"  # only what failed last time; nothing counts as missing
    QUICK = "quick"  # the root, new pages, pages that probably changed, failures; nothing counts as missing
    REFRESH = "refresh"  # everything, with conditional requests
    FULL = "full"  # everything, without validators

    @property
    def is_exhaustive(self) -> bool:
        """Whether the crawl visits every known document, so that a document it does not see is missing."""
        return self in (CrawlMode.REFRESH, CrawlMode.FULL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """How far a job is."""

    discovered: int = 0
    tally: Tally = Tally()
    bytes: int = 0
    current_depth: int = 0
    percent: int = 0  # of the known URLs; it never falls, although a crawl finds more of them

    @property
    def done(self) -> int:
        return sum(self.tally.as_json().values())


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Pages per second, and the time left. None when unknown, or when no worker holds the job."""

    rate: float = 0.0
    eta_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlJob:
    id: str
    source_id: str
    mode: CrawlMode
    status: JobStatus
    priority: int
    again: CrawlMode | None  # requested while it ran: another crawl follows
    attempt: int
    retry_count: int
    max_retries: int
    generation: int | None  # the one it builds; None until it has started
    batch: int  # number of committed batches
    listed: bool  # the origin's list, or its seeds, are all in the frontier
    lists_everything: bool  # the origin lists everything: what it does not list does not exist
    limited: bool  # a limit kept something out
    unlisted: bool  # a part of the list could not be read
    held: bool
    progress: Progress
    created_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    last_heartbeat: datetime | None
    error: str | None
    claimed_at: datetime | None = None  # when it last started or continued
    done_before: int = 0  # progress.done at that time
    owner: str | None = None  # id of the key that requested it; None: the command line, or a schedule

    @property
    def short_id(self) -> str:
        """The end of the id, which is enough to name the job: ids made in one minute begin alike."""
        return self.id[-8:]

    def pace(self, now: datetime) -> "Pace":
        """Return the speed since the job last started or continued."""
        left = self.progress.discovered - self.progress.done
        if self.claimed_at is None or self.status not in (JobStatus.PROCESSING, JobStatus.COMPLETED):
            return Pace()
        seconds = ((self.completed_at or now) - self.claimed_at).total_seconds()
        rate = max(0, self.progress.done - self.done_before) / max(seconds, 0.001)
        if self.status is JobStatus.COMPLETED:
            return Pace(rate=rate)
        return Pace(rate=rate, eta_seconds=left / rate if rate else None)


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSummary:
    """A job with the label of its source and the number of its workers."""

    job: CrawlJob
    source_name: str
    source_version: str
    workers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A worker's hold on a job (a row of ``job_workers``). Without it the worker cannot write.

    Several workers may hold a lease of the same job. The frontier entries that a worker has leased name its lease.
    """

    id: str
    job_id: str
    worker_name: str
    host: str
    pid: int
    process_started: str
    attempt: int
    heartbeat_count: int = 0
    joined_running_job: bool = False  # other workers held the job before


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShare:
    """One lease's share of a host's request budget."""

    lease_id: str
    concurrency: int  # what the source's settings allow
    slots: int  # requests at once that this lease holds
