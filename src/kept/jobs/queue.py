"""The job queue: requests for crawls become jobs, or join the live one; and jobs are paused, resumed and cancelled."""

from collections.abc import Mapping
from typing import Any

from kept.crawl import abandon, activate
from kept.crawl.store_retry import backoff_seconds
from kept.errors import NeedsDecision, NotFound
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.store import jobs, sources
from kept.store.database import Connection, Database

FIRST_DELAY_SECONDS = 2.0  # before a job that the database interrupted is tried again; doubled each time
MAX_DELAY_SECONDS = 300.0

_MODES_BY_WIDTH = [CrawlMode.FAILED, CrawlMode.QUICK, CrawlMode.REFRESH, CrawlMode.FULL]


async def enqueue(
    db: Database,
    source_id: str,
    *,
    mode: CrawlMode = CrawlMode.REFRESH,
    priority: int = 0,
    payload: Mapping[str, Any] | None = None,
) -> CrawlJob:
    """Return a live job that will do what is requested: a new one, or the live one of the source.

    A pending job is widened, a running one will be followed by another. Raises NeedsDecision if the job is paused.
    """
    async with db.transaction(durable=True) as tx:
        return await enqueue_in_transaction(tx, source_id, mode=mode, priority=priority, payload=payload)


async def enqueue_in_transaction(
    tx: Connection,
    source_id: str,
    *,
    mode: CrawlMode = CrawlMode.REFRESH,
    priority: int = 0,
    payload: Mapping[str, Any] | None = None,
    owner: str | None = None,
) -> CrawlJob:
    """Do the same as ``enqueue`` within a transaction."""
    await sources.resume_schedule(tx, source_id)
    payload = payload if payload is not None else await _make_payload(tx, source_id)
    while True:  # a live job may end before it can be joined; then a new one can be inserted
        job = await jobs.insert(
            tx, id=new_id(), source=source_id, mode=mode, priority=priority, payload=payload, owner=owner
        )
        if job := job or await _join_live_job(tx, source_id, mode, priority, owner):
            return job


async def enqueue_unless_running(tx: Connection, source_id: str, *, mode: CrawlMode) -> CrawlJob | None:
    """Return a pending job, new or joined; None if one is running or paused, because no person asked for another."""
    payload = await _make_payload(tx, source_id)
    job = await jobs.insert(tx, id=new_id(), source=source_id, mode=mode, payload=payload)
    if job is not None:
        return job
    live = await jobs.lock_live(tx, source_id)
    if live is None or live.status is not JobStatus.PENDING:
        return None
    return await jobs.merge_into_pending(tx, live.id, mode=_wider_mode(live.mode, mode), priority=live.priority)


async def pause(db: Database, job_id: str) -> CrawlJob:
    """Pause a job: its workers stop after their current batch, its frontier is kept."""
    async with db.transaction(durable=True) as tx:
        if not await jobs.pause(tx, job_id):
            raise await _wrong_status_error(tx, job_id, "paused")
        return await _get_job(tx, job_id)


async def resume(db: Database, job_id: str) -> CrawlJob:
    """Resume a paused job: it continues with its open entries as soon as a worker is free."""
    async with db.transaction(durable=True) as tx:
        if not await jobs.resume(tx, job_id):
            raise await _wrong_status_error(tx, job_id, "resumed")
        return await _get_job(tx, job_id)


async def cancel(db: Database, job_id: str) -> CrawlJob:
    """Cancel a job and abandon its generation; the active one stays."""
    async with db.transaction(durable=True) as tx:
        job = await _get_job(tx, job_id)
        source = await sources.lock(tx, job.source_id)
        if not await jobs.cancel(tx, job_id):
            raise await _wrong_status_error(tx, job_id, "cancelled")
        if source:
            await abandon.abandon_generation(tx, source, "its job was cancelled", job_id=job_id)
        return await _get_job(tx, job_id)


async def requeue_or_fail(tx: Connection, job_id: str, error: str = "worker timed out") -> CrawlJob | None:
    """Return a failed worker's job, pending again or failed when its retries are used up.

    Returns None if another worker holds the job, or if it has ended.
    """
    return await _requeue_or_fail(tx, job_id, error, first_delay=0.0)


async def requeue_interrupted(tx: Connection, job_id: str, error: str) -> CrawlJob | None:
    """Do the same for a job that the database interrupted: before the next try all workers wait, longer each time."""
    return await _requeue_or_fail(tx, job_id, error, first_delay=FIRST_DELAY_SECONDS)


async def _requeue_or_fail(tx: Connection, job_id: str, error: str, *, first_delay: float) -> CrawlJob | None:
    job = await jobs.lock(tx, job_id)  # no worker joins or leaves it meanwhile
    if job is None:
        return None
    await jobs.update_progress(tx, job_id)
    delay = backoff_seconds(job.retry_count, first=first_delay, longest=MAX_DELAY_SECONDS)
    job = await jobs.reap(tx, job_id, error, delay_seconds=delay)
    if job and job.status is JobStatus.FAILED:
        await activate.fail_job(tx, job, error)
    return job


async def _make_payload(tx: Connection, source_id: str) -> Mapping[str, Any]:
    """Return what a job is about, for those who read the table: what is crawled, and how deep."""
    source = await sources.get(tx, source_id)
    if source is None:
        return {}
    limits, tags = source.settings.limits, list(source.settings.tags)
    return {"url": source.root, "max_depth": limits.max_depth, "max_pages": limits.max_pages, "tags": tags}


async def _join_live_job(
    tx: Connection, source_id: str, mode: CrawlMode, priority: int, owner: str | None
) -> CrawlJob | None:
    """Let the live job do what is requested too. Returns None if it has ended, which another transaction may do."""
    live = await jobs.lock_live(tx, source_id)
    if live is None:
        return None
    match live.status:
        case JobStatus.PENDING:
            merged = await jobs.merge_into_pending(
                tx, live.id, mode=_wider_mode(live.mode, mode), priority=max(live.priority, priority)
            )
            return merged or live
        case JobStatus.PROCESSING:
            rerun = await jobs.request_rerun(tx, live.id, _wider_mode(live.again, mode), priority=priority, owner=owner)
            return rerun or live
        case _:
            raise NeedsDecision(
                f"The crawl of this source is paused. 'kept resume {live.id}' lets it go on, 'kept cancel' gives it up."
            )


async def _get_job(tx: Connection, job_id: str) -> CrawlJob:
    job = await jobs.get(tx, job_id)
    if job is None:
        raise NotFound(f"There is no job {job_id}. 'kept jobs' lists them.")
    return job


async def _wrong_status_error(tx: Connection, job_id: str, action: str) -> NeedsDecision:
    job = await _get_job(tx, job_id)
    return NeedsDecision(f"Job {job_id} is {job.status}: it cannot be {action}.")


def _wider_mode(one: CrawlMode | None, other: CrawlMode) -> CrawlMode:
    return other if one is None else max(one, other, key=_MODES_BY_WIDTH.index)
