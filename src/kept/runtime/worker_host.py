"""Hosts the workers and the periodic tasks of this process."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from kept.errors import NotFound
from kept.jobs.worker import Worker, claim_and_run
from kept.model.authority import WebhookReach
from kept.model.job import CrawlJob
from kept.model.source import Source
from kept.runtime.models import EMBED_INTERVAL_SECONDS
from kept.runtime.origin_factory import make_permitted_origin
from kept.runtime.readers import make_reader_pool, preload_crawl_modules
from kept.runtime.services import AppServices
from kept.service.access import pin_known_sources
from kept.store import jobs

if TYPE_CHECKING:  # heavy: loaded when the first crawl begins
    from kept.crawl.engine import CrawlRun
    from kept.extract.reader_pool.pool import ReaderPool
    from kept.maintenance.periodic import PeriodicTask
    from kept.maintenance.scheduler import ScheduleReport
    from kept.maintenance.webhooks import DeliveryReport
    from kept.model.document import Content
    from kept.model.job import Lease

SCHEDULE_INTERVAL_SECONDS = 5.0
GC_INTERVAL_SECONDS = 600.0
REBUILD_INTERVAL_SECONDS = 30.0
JOB_POLL_SECONDS = 0.5

OnProgress = Callable[[CrawlJob], None]


def _ignore_progress(job: CrawlJob) -> None:
    pass


class WorkerHost:
    """Runs crawl jobs with the readers of this process, and the periodic tasks that any process may run."""

    def __init__(self, services: AppServices, readers: "ReaderPool | None" = None) -> None:
        self._services = services
        self._settings = services.settings
        self._db = services.db
        self._readers = readers

    async def run_job(self, job: CrawlJob, on_progress: OnProgress = _ignore_progress) -> CrawlJob:
        """Return the job once it has ended. It runs here if it is free, else the worker that has it is followed."""
        await pin_known_sources(self._db)
        gc.freeze()  # the loaded modules stay: collections during the crawl need not visit them
        async with self._services.models.embed_in_background(self._db):
            while True:
                await self._services.reap_jobs()
                current = await claim_and_run(
                    self._db,
                    job.id,
                    partial(self._make_crawl_run, on_progress=on_progress),
                    heartbeat=self._settings.work.heartbeat_seconds,
                )
                if current is None:
                    async with self._db.snapshot() as snapshot:
                        current = await jobs.get(snapshot, job.id)
                if current is None:
                    raise NotFound("The source was removed, and this job with it.")
                on_progress(current)
                if not current.status.is_queued_or_running:
                    await self._continue_index_rebuild()
                    return current
                await asyncio.sleep(JOB_POLL_SECONDS)

    async def _continue_index_rebuild(self) -> None:
        """Rebuild a part of an older version's index, if there is one: no server may ever run here."""
        from kept.maintenance.index_rebuild import rebuild_index

        await rebuild_index(self._db, seconds=2)

    async def run_worker(self, stop: asyncio.Event, *, name: str | None = None, concurrency: int = 2) -> int:
        """Run jobs and periodic tasks until ``stop`` is set. Returns how many jobs ended here."""
        await pin_known_sources(self._db)
        worker = Worker(
            self._db,
            partial(self._make_crawl_run, on_progress=_ignore_progress),
            name=name,
            concurrency=concurrency,
            heartbeat=self._settings.work.heartbeat_seconds,
            prepare=preload_crawl_modules,
        )
        tasks = asyncio.create_task(self.run_periodic_tasks(stop))
        try:
            await worker.run(stop)
        finally:
            tasks.cancel()  # each pass may be interrupted anywhere
            await asyncio.gather(tasks, return_exceptions=True)
        return worker.jobs_done

    async def run_periodic_tasks(self, stop: asyncio.Event) -> None:
        from kept.maintenance.periodic import run_tasks

        await run_tasks(self.periodic_tasks(), stop)

    def periodic_tasks(self) -> "list[PeriodicTask]":
        from kept.maintenance.gc import collect_if_due
        from kept.maintenance.index_rebuild import rebuild_index
        from kept.maintenance.periodic import PeriodicTask

        collect = partial(
            collect_if_due,
            self._db,
            self._services.retention,
            every=GC_INTERVAL_SECONDS * 0.8,  # intervals are jittered: the own one must never look too early
            cache=self._settings.cache_folder,
        )
        tasks = [
            PeriodicTask("reaped", min(5.0, self._settings.work.silent_seconds / 4), self._services.reap_jobs),
            PeriodicTask("scheduled", SCHEDULE_INTERVAL_SECONDS, self.enqueue_due_crawls),
            PeriodicTask("webhooks delivered", SCHEDULE_INTERVAL_SECONDS, self.deliver_webhooks),
            PeriodicTask("index rebuilt", REBUILD_INTERVAL_SECONDS, partial(rebuild_index, self._db)),
            PeriodicTask("garbage collected", GC_INTERVAL_SECONDS, collect),
        ]
        if backlog := self._services.models.embedding_backlog:
            tasks.append(PeriodicTask("embedded", EMBED_INTERVAL_SECONDS, partial(backlog.embed_pending, self._db)))
        return tasks

    async def enqueue_due_crawls(self) -> "ScheduleReport":
        from kept.maintenance.scheduler import enqueue_due_crawls

        return await enqueue_due_crawls(self._db, self._services.schedule_policy)

    async def deliver_webhooks(self) -> "DeliveryReport":
        """Deliver the webhooks that are due. The HTTP client is made only if there is one to send."""
        from kept.maintenance.webhooks import OperatorWebhook, deliver_due

        webhooks, clients = self._settings.webhooks, None

        async def send(url: str, body: bytes, headers: Mapping[str, str], reach: WebhookReach) -> str | None:
            from kept.origins.web.outbound import WebhookClients

            nonlocal clients
            clients = clients or WebhookClients(self._services.secrets.look_up(webhooks.url), webhooks.allow)
            return await clients.send(url, body, headers, reach)

        try:
            operator = OperatorWebhook(url=webhooks.url, secret=webhooks.secret)
            return await deliver_due(self._db, send, operator, look_up=self._services.secrets.look_up)
        finally:
            if clients:
                await clients.close()

    def watch_files(self, source: Source, stop: asyncio.Event) -> AsyncIterator[None]:
        """Yield whenever the files of a source have changed and no more events arrive."""
        from kept.maintenance.watcher import watch_files

        return watch_files(source.root, stop)

    async def read_markdown(self, text: str, url: str) -> "Content | None":
        """Return the content of Markdown that did not come from an origin (an import), or None if there is none."""
        from kept.model.document import ParsedPage

        page = await self._get_readers().read(text.encode("utf-8", "replace"), "text/markdown; charset=utf-8", url)
        return page.content if isinstance(page, ParsedPage) else None

    async def close(self) -> None:
        if self._readers:
            await self._readers.close()

    def _get_readers(self) -> "ReaderPool":
        self._readers = self._readers or make_reader_pool()
        return self._readers

    def _make_crawl_run(self, lease: "Lease", source: Source, on_progress: OnProgress) -> "CrawlRun":
        from kept.crawl.engine import CrawlRun
        from kept.extract.reader import pipeline_signature

        settings = source.settings
        # Pages that were read with their robots directives in force have to be read again without them.
        suffix = " heedless" if settings.access.ignore_robots else ""
        return CrawlRun(
            self._db,
            lease,
            source,
            make_permitted_origin(source.kind, source.root, settings, self._settings, source.authority),
            read=partial(self._get_readers().read, region=settings.region),
            signature=pipeline_signature(region=settings.region) + suffix,
            rules=self._services.lifecycle_rules,
            give_up_seconds=self._settings.crawl.give_up_seconds,
            on_progress=on_progress,
        )
