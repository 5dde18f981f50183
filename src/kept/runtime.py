"""The only place that builds things and joins them."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cached_property, partial
from typing import TYPE_CHECKING

from kept.model.source import Source, SourceKind
from kept.settings import Settings
from kept.store.database import Database, open_database

if TYPE_CHECKING:  # heavy: only a crawl loads these, a search answers at once
    from kept.crawl.engine import Walk
    from kept.crawl.sweep import Rules
    from kept.extract.pool import ReaderPool
    from kept.model.job import CrawlJob
    from kept.origins.origin import Origin
    from kept.store.jobs import Place

OnProgress = Callable[["CrawlJob"], None]


class Runtime:
    """An open store and everything that works on it."""

    def __init__(self, settings: Settings, db: Database) -> None:
        self.settings = settings
        self.db = db
        self._pool: ReaderPool | None = None

    @cached_property
    def rules(self) -> "Rules":
        from kept.crawl.sweep import Rules

        crawl = self.settings.crawl
        return Rules(
            grace_crawls=crawl.grace_crawls,
            grace=timedelta(days=crawl.grace_days),
            brake_share=crawl.brake_percent / 100,
            brake_documents=crawl.brake_documents,
        )

    async def run_job(self, job: "CrawlJob", on_progress: OnProgress = lambda job: None) -> "CrawlJob":
        """The job at its end: walked here if it is free, followed if somebody else walks it."""
        from kept.model.job import JobStatus
        from kept.store import jobs
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

    def _walk(self, place: "Place", source: Source, on_progress: OnProgress) -> "Walk":
        from kept.crawl.engine import Walk
        from kept.extract.pool import ReaderPool
        from kept.extract.reader import signature

        self._pool = self._pool or ReaderPool(processes=max(1, min(4, os.cpu_count() or 1)))
        return Walk(
            self.db,
            place,
            source,
            _origin(source, browser=self.settings.crawl.browser),
            read=self._pool.read,
            signature=signature(),
            rules=self.rules,
            on_progress=on_progress,
        )

    async def close(self) -> None:
        if self._pool:
            await self._pool.close()
        await self.db.close()


def _origin(source: Source, *, browser: str = "") -> "Origin":
    """Where the source lives."""
    if source.kind is SourceKind.WEB:
        from kept.origins.web import web_origin

        return web_origin(source.root, source.settings, browser=browser)
    from kept.extract.reader import content_type_of
    from kept.origins.folder import FolderOrigin

    settings = source.settings
    return FolderOrigin(source.root, scope=settings.scope, limits=settings.limits, type_of=content_type_of)


@asynccontextmanager
async def open_runtime(settings: Settings, *, create: bool = True) -> AsyncIterator[Runtime]:
    """A runtime on the database of the settings, closed at the end. Without ``create`` it has to be there already."""
    runtime = Runtime(settings, await open_database(settings.database, create=create))
    try:
        yield runtime
    finally:
        await runtime.close()
