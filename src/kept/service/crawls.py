"""Crawls: asking for one, how each stands, and steering it."""

import re
from collections.abc import Awaitable, Callable
from dataclasses import field

from kept.errors import NoSuchThing, WrongCall
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Pace
from kept.model.nouns import dataclass
from kept.model.source import label_of
from kept.service.naming import is_id, source_of
from kept.store import asked_once, browsing, jobs
from kept.store.database import Connection, Database, moment, when
from kept.store.jobs import JobRow, Place
from kept.work import queue


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job, and how it goes."""

    job: CrawlJob
    source: str  # its label
    workers: int
    pace: Pace
    places: list[Place] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Once:
    """A request that counts once, however often it comes: the key that its sender gave it, and what it says."""

    key: str
    request: str


async def request_crawl(
    db: Database,
    label: str,
    *,
    mode: CrawlMode | None = None,
    priority: int = 0,
    owner: str | None = None,
    once: Once | None = None,
) -> CrawlJob:
    """Ask for a crawl of a source (a refresh, unless another mode is named). Asking again while one waits joins it."""
    async with db.transaction(durable=True) as tx:
        if once and (asked := await _asked(tx, owner or "", once)):
            return asked
        source = await source_of(tx, label)
        job = await queue.request_in(tx, source.id, mode=mode or CrawlMode.REFRESH, priority=priority, owner=owner)
        if once:
            await asked_once.answer(tx, owner=owner or "", key=once.key, job=job.id)
        return job


async def asked_before(db: Database, owner: str | None, once: Once) -> CrawlJob | None:
    """The job that the same request came to before; None if it comes for the first time."""
    async with db.snapshot() as snapshot:
        return await _answered(snapshot, owner or "", once)


async def _asked(tx: Connection, owner: str, once: Once) -> CrawlJob | None:
    """As ``asked_before``; from now on it was asked."""
    is_first = await asked_once.ask(tx, owner=owner, key=once.key, request=once.request)
    return None if is_first else await _answered(tx, owner, once)


async def _answered(db: Connection, owner: str, once: Once) -> CrawlJob | None:
    before = await asked_once.get(db, owner=owner, key=once.key)
    if before is None:
        return None
    if before["request"] != once.request:
        raise WrongCall("This Idempotency-Key belongs to another request. Make a new one for each.")
    return await jobs.get(db, before["job_id"]) if before["job_id"] else None


async def list_jobs(
    db: Database, *, status: str | None = None, limit: int = 50, before: str | None = None
) -> list[JobView]:
    """The latest first; only those in one status, if it is named; from behind a job on."""
    if status is not None and status not in list(JobStatus):
        raise WrongCall(f"There is no status '{status}'. A job is {', '.join(JobStatus)}.")
    async with db.snapshot() as snapshot:
        wanted = JobStatus(status) if status else None
        rows = await jobs.recent(snapshot, status=wanted, limit=limit, before=before)
        return [await _view(snapshot, row) for row in rows]


async def get_job(db: Database, job_id: str) -> CrawlJob:
    async with db.snapshot() as snapshot:
        job = await jobs.get(snapshot, job_id.lower()) if is_id(job_id) else None
    if job is None:
        raise NoSuchThing(f"There is no job {job_id}.")
    return job


async def show_job(db: Database, what: str) -> JobView:
    """The job whose id this is, or begins with this."""
    async with db.snapshot() as snapshot:
        row = await _named(snapshot, what)
        return await _view(snapshot, row, places=await jobs.workers_of(snapshot, row.job.id))


async def course_of(db: Database, job: CrawlJob) -> list[tuple[float, int]]:
    """How a crawl went: after so many seconds since it began, so many URLs were done."""
    async with db.snapshot() as snapshot:
        rows = await browsing.batches(snapshot, job.id)
    begun, done, course = job.started_at or job.created_at, 0, []
    for row in rows:
        done += row["entries"]
        course.append(((when(row["settled_at"]) - begun).total_seconds(), done))
    return course


async def pause_job(db: Database, what: str) -> JobView:
    """Its workers stop after the batch at hand; its frontier waits."""
    return await _steer(db, what, queue.pause)


async def resume_job(db: Database, what: str) -> JobView:
    """It goes on from its open entries as soon as a worker is free."""
    return await _steer(db, what, queue.resume)


async def cancel_job(db: Database, what: str) -> JobView:
    """It ends, and what it built is given up; what is active stays."""
    return await _steer(db, what, queue.cancel)


async def _steer(db: Database, what: str, move: Callable[[Database, str], Awaitable[CrawlJob]]) -> JobView:
    async with db.snapshot() as snapshot:
        row = await _named(snapshot, what)
    await move(db, row.job.id)
    return await show_job(db, row.job.id)


async def _named(db: Connection, what: str) -> JobRow:
    beginning = what.strip().lower()
    found = await jobs.beginning(db, beginning) if re.fullmatch(r"[0-9a-f-]{1,36}", beginning) else []
    if len(found) > 1:
        raise WrongCall(f"Several jobs begin with '{what}'. Say more of the id; 'kept jobs' lists them.")
    if not found:
        raise NoSuchThing(f"There is no job {what}. 'kept jobs' lists them.")
    return found[0]


async def _view(db: Connection, row: JobRow, places: list[Place] | None = None) -> JobView:
    return JobView(
        job=row.job,
        source=label_of(row.source_name, row.source_version),
        workers=row.workers,
        pace=row.job.pace(await moment(db)),
        places=places or [],
    )
