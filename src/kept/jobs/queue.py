"""The rules of waiting: how requests for crawls become jobs, and how people steer them."""

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
    """A live job that will do what is asked: a new one, the one that waits, or one that runs and will be followed."""
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
    """The same, as a part of somebody's transaction."""
    await sources.resume_schedule(tx, source_id)
    while True:  # a live job that ends before it can be joined is in nobody's way any more
        job = await jobs.insert(
            tx, id=new_id(), source=source_id, mode=mode, priority=priority, payload=payload, owner=owner
        )
        if job := job or await _join_live_job(tx, source_id, mode, priority):
            return job


async def enqueue_unless_running(tx: Connection, source_id: str, *, mode: CrawlMode) -> CrawlJob | None:
    """A job that waits, new or not; None where one runs already or is paused: nobody in a hurry asked for another."""
    job = await jobs.insert(tx, id=new_id(), source=source_id, mode=mode)
    if job is not None:
        return job
    live = await jobs.lock_live(tx, source_id)
    if live is None or live.status is not JobStatus.PENDING:
        return None
    return await jobs.merge_into_pending(tx, live.id, mode=_wider_mode(live.mode, mode), priority=live.priority)


async def pause(db: Database, job_id: str) -> CrawlJob:
    """Its workers stop after the batch at hand; its frontier waits."""
    async with db.transaction(durable=True) as tx:
        if not await jobs.pause(tx, job_id):
            raise await _wrong_status_error(tx, job_id, "paused")
        return await _get_job(tx, job_id)


async def resume(db: Database, job_id: str) -> CrawlJob:
    """It goes on from its open entries as soon as a worker is free."""
    async with db.transaction(durable=True) as tx:
        if not await jobs.resume(tx, job_id):
            raise await _wrong_status_error(tx, job_id, "resumed")
        return await _get_job(tx, job_id)


async def cancel(db: Database, job_id: str) -> CrawlJob:
    """It ends, and what it built is given up; what is active stays."""
    async with db.transaction(durable=True) as tx:
        job = await _get_job(tx, job_id)
        source = await sources.lock(tx, job.source_id)
        if not await jobs.cancel(tx, job_id):
            raise await _wrong_status_error(tx, job_id, "cancelled")
        if source:
            await abandon.abandon_generation(tx, source, "its job was cancelled", job_id=job_id)
        return await _get_job(tx, job_id)


async def requeue_or_fail(tx: Connection, job_id: str, error: str = "worker timed out") -> CrawlJob | None:
    """The job of a worker that failed, waiting again or given up; None if somebody walks it, or it has ended."""
    await jobs.lock(tx, job_id)  # nobody joins or leaves it meanwhile
    await jobs.update_progress(tx, job_id)
    job = await jobs.reap(tx, job_id, error)
    if job and job.status is JobStatus.FAILED:
        await activate.fail_job(tx, job, error)
    return job


async def _join_live_job(tx: Connection, source_id: str, mode: CrawlMode, priority: int) -> CrawlJob | None:
    """The live job, which will do what is asked too; None if it has ended, which on PostgreSQL may take a while."""
    live = await jobs.lock_live(tx, source_id)
    if live is None:
        return None
    match live.status:
        case JobStatus.PENDING:
            joined = await jobs.merge_into_pending(
                tx, live.id, mode=_wider_mode(live.mode, mode), priority=max(live.priority, priority)
            )
            return joined or live
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


async def _wrong_status_error(tx: Connection, job_id: str, what: str) -> NeedsDecision:
    job = await _get_job(tx, job_id)
    return NeedsDecision(f"Job {job_id} is {job.status}: it cannot be {what}.")


def _wider_mode(one: CrawlMode | None, other: CrawlMode) -> CrawlMode:
    return other if one is None else max(one, other, key=_MODES_BY_WIDTH.index)
