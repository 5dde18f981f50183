"""The only place that builds things and joins them."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from kept.crawl.sweep import Rules
from kept.model.job import CrawlJob, JobStatus
from kept.model.source import Source
from kept.settings import Settings
from kept.store import jobs
from kept.store.database import Database, open_database
from kept.store.jobs import Place

if TYPE_CHECKING:  # heavy: only a crawl loads these
    from kept.crawl.engine import Walk
    from kept.extract.sections import Unreadable
    from kept.model.document import Reading

OnProgress = Callable[[CrawlJob], None]


class Runtime:
    """An open store and everything that works on it."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self.settings = settings
        self.db = db
        crawl = settings.crawl
        self.rules = Rules(
            grace_crawls=crawl.grace_crawls,
            grace=timedelta(days=crawl.grace_days),
            brake_share=crawl.brake_percent / 100,
            brake_documents=crawl.brake_documents,
        )

    async def run_job(self, job: CrawlJob, on_progress: OnProgress = lambda job: None) -> CrawlJob:
        """The job at its end: walked here if it is free, followed if somebody else walks it."""
        from kept.work.worker import work_on

        while True:
            await self.reap()
            make_walk = partial(self._walk, on_progress=on_progress)
            done = await work_on(self.db, job.id, make_walk, heartbeat=self.settings.work.heartbeat_seconds)
            if done is None:
                async with self.db.snapshot() as snapshot:
                    done = await jobs.get(snapshot, job.id) or job
            on_progress(done)
            if done.status not in (JobStatus.PENDING, JobStatus.PROCESSING):
                return done
            await asyncio.sleep(0.5)

    async def reap(self) -> None:
        """Jobs whose workers are gone wait again. A request that comes after this joins them."""
        from kept.upkeep.reaper import reap

        await reap(self.db, silent_after=timedelta(seconds=self.settings.work.silent_seconds))

    def _walk(self, place: Place, source: Source, on_progress: OnProgress) -> "Walk":
        from kept.crawl.engine import Walk
        from kept.extract.reader import content_type_of, read, signature
        from kept.origins.folder import FolderOrigin

        async def read_apart(body: bytes, content_type: str, url: str) -> "Reading | Unreadable":
            return await asyncio.to_thread(read, body, content_type=content_type, url=url)

        settings = source.settings
        origin = FolderOrigin(source.root, scope=settings.scope, limits=settings.limits, type_of=content_type_of)
        return Walk(
            self.db,
            place,
            source,
            origin,
            read=read_apart,
            signature=signature(),
            rules=self.rules,
            on_progress=on_progress,
        )


@asynccontextmanager
async def open_runtime(settings: Settings, *, create: bool = True) -> AsyncIterator[Runtime]:
    """A runtime on the database of the settings, closed at the end. Without ``create`` it has to be there already."""
    db = await open_database(settings.database, create=create)
    try:
        yield Runtime(settings, db)
    finally:
        await db.close()
