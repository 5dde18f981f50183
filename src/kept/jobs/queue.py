"""The job queue: requests for crawls become jobs, or join the live one; and jobs are paused, resumed and cancelled."""

from collections.abc import Mapping
from typing import Any

from kept.crawl import abandon, activate
from kept.errors import NeedsDecision, NotFound
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.store import jobs, sources
from kept.store.database import Connection, Database

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
    while True:  # a live job may end before it can be joined; then a new one can be inserted
        job = await jobs.insert(
            tx, id=new_id(), source=source_id, mode=mode, priority=priority, payload=payload, owner=owner
        )
        if job := job or await _join_live_job(tx, source_id, mode, priority):
            return job


async def enqueue_unless_running(tx: Connection, source_id: str, *, mode: CrawlMode) -> CrawlJob | None:
    """Return a pending job, new or joined; None if one is running or paused, because no person asked for another."""
    job = await jobs.insert(tx, id=new_id(), source=source_id, mode=mode)
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
    await jobs.lock(tx, job_id)  # no worker joins or leaves it meanwhile
    await jobs.update_progress(tx, job_id)
    job = await jobs.reap(tx, job_id, error)
    if job and job.status is JobStatus.FAILED:
        await activate.fail_job(tx, job, error)
    return job


async def _join_live_job(tx: Connection, source_id: str, mode: CrawlMode, priority: int) -> CrawlJob | None:
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
            return await jobs.request_rerun(tx, live.id, _wider_mode(live.again, mode)) or live
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
