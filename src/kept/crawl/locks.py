"""Row locks of a crawl's transactions.

Locks are taken in one order everywhere, so that transactions cannot deadlock: source, lease, job.
"""

from kept.errors import LeaseLost
from kept.model.job import CrawlJob, JobStatus, Lease
from kept.model.source import Source
from kept.store import jobs, sources
from kept.store.database import Connection


async def lock_source(tx: Connection, source_id: str) -> Source:
    """Lock a source until the transaction ends. Raises LeaseLost if it was removed."""
    source = await sources.lock(tx, source_id)
    if source is None:
        raise LeaseLost("The source was removed meanwhile.")
    return source


async def lock_leased_job(tx: Connection, lease: Lease) -> tuple[Source, CrawlJob]:
    """Lock a worker's job with its source and lease. Raises LeaseLost if the worker was replaced or the job ended."""
    job = await jobs.get(tx, lease.job_id)
    source = await lock_source(tx, job.source_id if job else "")
    await jobs.lock_lease(tx, lease)
    job = await jobs.lock(tx, lease.job_id)
    if job is None or job.status not in (JobStatus.PROCESSING, JobStatus.PAUSED):
        raise LeaseLost("The job was ended meanwhile.")
    return source, job
