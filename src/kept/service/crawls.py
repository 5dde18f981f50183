"""Crawls: asking for one, and how one stands."""

from kept.errors import NoSuchThing
from kept.model.job import CrawlJob, CrawlMode
from kept.service.naming import is_id, source_of
from kept.store import jobs
from kept.store.database import Database
from kept.work import queue


async def request_crawl(db: Database, label: str, *, mode: CrawlMode | None = None, priority: int = 0) -> CrawlJob:
    """Ask for a crawl of a source (a refresh, unless another mode is named). Asking again while one waits joins it."""
    async with db.snapshot() as snapshot:
        source = await source_of(snapshot, label)
    return await queue.request(db, source.id, mode=mode or CrawlMode.REFRESH, priority=priority)


async def get_job(db: Database, job_id: str) -> CrawlJob:
    async with db.snapshot() as snapshot:
        job = await jobs.get(snapshot, job_id.lower()) if is_id(job_id) else None
    if job is None:
        raise NoSuchThing(f"There is no job {job_id}.")
    return job
