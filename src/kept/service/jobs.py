"""Jobs: request, list, show, pause, resume and cancel crawls; hooks of other programs that request one."""

import hashlib
import hmac
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

from kept.errors import AccessDenied, InvalidInput, KeptError, NotFound
from kept.jobs import queue
from kept.model.changes import MAX_REASONS, RemovalReason
from kept.model.job import CrawlJob, CrawlMode, JobStatus, JobSummary, Lease, Pace
from kept.model.source import format_label
from kept.service.lookup import find_source, is_id
from kept.store import changes, frontier, jobs, keys
from kept.store.database import Connection, Database, ReadableDatabase, current_time


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """A job with its workers and its pace."""

    job: CrawlJob
    source: str  # its label
    workers: int
    pace: Pace
    removed: list[RemovalReason]  # why its generation no longer shows documents, the commonest reasons first
    leases: list[Lease] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class IdempotencyKey:
    """An idempotency key, and the hash of the request that it belongs to."""

    key: str
    request_hash: str


async def request_crawl(
    db: Database,
    label: str,
    *,
    mode: CrawlMode | None = None,
    priority: int = 0,
    owner: str | None = None,
    idempotency_key: IdempotencyKey | None = None,
) -> CrawlJob:
    """Enqueue a crawl of a source, a refresh unless another mode is named. Joins one that waits already."""
    async with db.transaction(durable=True) as tx:
        if idempotency_key and (job := await _claim_key(tx, owner or "", idempotency_key)):
            return job
        source = await find_source(tx, label)
        job = await queue.enqueue_in_transaction(
            tx, source.id, mode=mode or CrawlMode.REFRESH, priority=priority, owner=owner
        )
        if idempotency_key:
            await keys.set_idempotency_job(tx, owner=owner or "", key=idempotency_key.key, job=job.id)
        return job


async def receive_hook(
    db: Database, label: str, body: bytes, signature: str, look_up: Callable[[str], str], *, enqueue: bool = True
) -> CrawlJob | None:
    """Enqueue the crawl that a signed hook requests. Raises AccessDenied for a wrong signature or an unknown source.

    ``signature``: ``sha256=`` and the HMAC-SHA256 of the body by the secret of the source, in hexadecimal digits.
    """
    secret = await _hook_secret(db, label, look_up)
    expected = f"sha256={hmac.digest(secret.encode(), body, hashlib.sha256).hex()}"
    right = hmac.compare_digest(expected.encode(), signature.strip().lower().encode("utf-8", "replace"))
    if not secret or not right:
        raise AccessDenied(
            "The signature is not that of a source with a hook. 'kept set NAME --hook-secret' gives a source one."
        )
    return await request_crawl(db, label) if enqueue else None


async def _hook_secret(db: Database, label: str, look_up: Callable[[str], str]) -> str:
    """Return the secret of a source, empty where there is none: callers cannot find out which sources exist."""
    try:
        async with db.snapshot() as snapshot:
            return look_up((await find_source(snapshot, label)).settings.hook_secret)
    except KeptError:
        return ""


async def find_previous_job(db: Database, owner: str | None, idempotency_key: IdempotencyKey) -> CrawlJob | None:
    """Return the job of an earlier request with this key; None where this is the first. Raises InvalidInput."""
    async with db.snapshot() as snapshot:
        return await _job_for_key(snapshot, owner or "", idempotency_key)


async def _claim_key(tx: Connection, owner: str, idempotency_key: IdempotencyKey) -> CrawlJob | None:
    """Claim a key. Returns the job of an earlier request with it; None where this is the first."""
    is_first = await keys.claim_idempotency_key(
        tx, owner=owner, key=idempotency_key.key, request=idempotency_key.request_hash
    )
    return None if is_first else await _job_for_key(tx, owner, idempotency_key)


async def _job_for_key(db: Connection, owner: str, idempotency_key: IdempotencyKey) -> CrawlJob | None:
    before = await keys.get_idempotency_key(db, owner=owner, key=idempotency_key.key)
    if before is None:
        return None
    request, job = before
    if request != idempotency_key.request_hash:
        raise InvalidInput("This Idempotency-Key belongs to another request. Make a new one for each.")
    return await jobs.get(db, job) if job else None


async def list_jobs(
    db: ReadableDatabase, *, status: str | None = None, limit: int = 50, before: str | None = None
) -> list[JobView]:
    """List jobs, the latest first; only those in a status, and only those before a job, if one is named."""
    if status is not None and status not in list(JobStatus):
        raise InvalidInput(f"There is no status '{status}'. A job is {', '.join(JobStatus)}.")
    async with db.snapshot() as snapshot:
        wanted = JobStatus(status) if status else None
        rows = await jobs.list_recent(snapshot, status=wanted, limit=limit, before=before)
        return [await view_job(snapshot, row) for row in rows]


async def get_job(db: ReadableDatabase, job_id: str) -> CrawlJob:
    async with db.snapshot() as snapshot:
        job = await jobs.get(snapshot, job_id.lower()) if is_id(job_id) else None
    if job is None:
        raise NotFound(f"There is no job {job_id}.")
    return job


async def show_job(db: ReadableDatabase, what: str) -> JobView:
    """Return the job with this id, or the only one whose id begins or ends so. Raises NotFound and InvalidInput."""
    async with db.snapshot() as snapshot:
        row = await _find_job(snapshot, what)
        return await view_job(snapshot, row, leases=await jobs.leases_of_job(snapshot, row.job.id))


async def progress_over_time(db: ReadableDatabase, job: CrawlJob) -> list[tuple[float, int]]:
    """Return the progress of a crawl: pairs of seconds since its start and URLs done by then."""
    async with db.snapshot() as snapshot:
        batches = await frontier.list_batches(snapshot, job.id)
    begun, done, course = job.started_at or job.created_at, 0, []
    for batch in batches:
        done += batch.entries
        course.append(((batch.settled_at - begun).total_seconds(), done))
    return course


async def pause_job(db: Database, what: str) -> JobView:
    """Pause a job: its workers stop after their batch."""
    return await _change_status(db, what, queue.pause)


async def resume_job(db: Database, what: str) -> JobView:
    """Resume a job: it continues with its open entries when a worker is free."""
    return await _change_status(db, what, queue.resume)


async def cancel_job(db: Database, what: str) -> JobView:
    """Cancel a job and abandon its generation. The active generation stays."""
    return await _change_status(db, what, queue.cancel)


async def _change_status(db: Database, what: str, change: Callable[[Database, str], Awaitable[CrawlJob]]) -> JobView:
    async with db.snapshot() as snapshot:
        row = await _find_job(snapshot, what)
    await change(db, row.job.id)
    return await show_job(db, row.job.id)


async def _find_job(db: Connection, what: str) -> JobSummary:
    part = what.strip().lower()
    found = await jobs.find_by_part_of_id(db, part) if re.fullmatch(r"[0-9a-f-]{1,36}", part) else []
    if len(found) > 1:
        raise InvalidInput(f"The ids of several jobs begin or end with '{what}'. Say more; 'kept jobs' lists them.")
    if not found:
        raise NotFound(f"There is no job {what}. 'kept jobs' lists them.")
    return found[0]


async def view_job(db: Connection, row: JobSummary, leases: list[Lease] | None = None) -> JobView:
    """Return a job as the interfaces show it."""
    job, removed = row.job, list[RemovalReason]()
    if job.status is JobStatus.COMPLETED and job.generation is not None:
        removed = await changes.removal_reasons(db, job.source_id, job.generation, limit=MAX_REASONS)
    return JobView(
        job=job,
        source=format_label(row.source_name, row.source_version),
        workers=row.workers,
        pace=job.pace(await current_time(db)),
        removed=removed,
        leases=leases or [],
    )
