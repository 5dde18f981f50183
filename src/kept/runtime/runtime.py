"""Crawls, doors and clocks, on one open store."""

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from kept.errors import NotFound
from kept.model.source import Source, SourceKind, SourceSettings
from kept.runtime import origin_factory, preview
from kept.runtime.models import EMBED_INTERVAL_SECONDS, SearchModels
from kept.runtime.readers import make_reader_pool
from kept.settings import Settings
from kept.store.database import Database, open_database

if TYPE_CHECKING:  # heavy: only a crawl loads these, a search answers at once
    from kept.crawl.engine import CrawlRun
    from kept.crawl.lifecycle import LifecycleRules
    from kept.crawl.preview import PagePreview, ScopePreview
    from kept.extract.reader_pool.pool import ReaderPool
    from kept.maintenance.embedding_backlog import EmbeddingBacklog
    from kept.maintenance.gc import Retention
    from kept.maintenance.next_run import SchedulePolicy
    from kept.maintenance.periodic import PeriodicTask
    from kept.maintenance.reaper import Reaper
    from kept.maintenance.scheduler import ScheduleReport
    from kept.maintenance.webhooks import DeliveryReport
    from kept.model.document import Content, Section
    from kept.model.job import CrawlJob, Lease
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions
    from kept.secrets import SecretStore

SCHEDULE_INTERVAL_SECONDS = 5.0
GC_INTERVAL_SECONDS = 600.0

OnProgress = Callable[["CrawlJob"], None]


class Runtime:
    """An open store and everything that works on it."""

    def __init__(self, settings: Settings, db: Database, readers: "ReaderPool | None" = None) -> None:
        self.settings = settings
        self.db = db
        self.models = SearchModels(settings, lambda reference: self.secrets.look_up(reference))
        self._pool = readers

    @cached_property
    def lifecycle_rules(self) -> "LifecycleRules":
        from kept.crawl.lifecycle import LifecycleRules

        crawl = self.settings.crawl
        return LifecycleRules(
            grace_crawls=crawl.grace_crawls,
            grace_period=timedelta(days=crawl.grace_days),
            brake_share=crawl.brake_percent / 100,
            brake_documents=crawl.brake_documents,
        )

    @cached_property
    def schedule_policy(self) -> "SchedulePolicy":
        from kept.crawl.change_rate import RefreshBounds
        from kept.maintenance.next_run import SchedulePolicy

        said = self.settings.schedule
        bounds = RefreshBounds(shortest=timedelta(hours=said.shortest_hours), longest=timedelta(days=said.longest_days))
        return SchedulePolicy(bounds=bounds, full_every=said.full_every)

    @cached_property
    def secrets(self) -> "SecretStore":
        from kept.secrets import SecretStore

        return SecretStore(self.settings.secrets_file, self.settings.environment)

    def why_excluded(self, source: Source, url: str) -> str | None:
        return origin_factory.why_excluded(source.kind, source.root, source.settings, self.settings, url)

    def check_source(self, kind: SourceKind, root: str, settings: SourceSettings) -> None:
        origin_factory.check_source(kind, root, settings, self.settings)

    async def probe_root(self, kind: SourceKind, root: str, settings: SourceSettings) -> None:
        await preview.probe_root(self.settings, kind, root, settings)

    async def preview_scope(self, kind: SourceKind, root: str, settings: SourceSettings) -> "ScopePreview":
        return await preview.preview_scope(self.settings, kind, root, settings)

    async def preview_page(self, kind: SourceKind, url: str, settings: SourceSettings) -> "PagePreview":
        return await preview.preview_page(self.settings, kind, url, settings)

    async def run_job(self, job: "CrawlJob", on_progress: OnProgress = lambda job: None) -> "CrawlJob":
        """The job at its end: walked here if it is free, followed if somebody else walks it."""
        from kept.jobs.worker import claim_and_run
        from kept.model.job import JobStatus
        from kept.store import jobs

        gc.freeze()  # what is loaded stays: it need not be searched again and again while files are listed
        async with self.models.embed_in_background(self.db):
            while True:
                await self.reap_jobs()
                make_walk = partial(self._make_crawl_run, on_progress=on_progress)
                done = await claim_and_run(self.db, job.id, make_walk, heartbeat=self.settings.work.heartbeat_seconds)
                if done is None:
                    async with self.db.snapshot() as snapshot:
                        done = await jobs.get(snapshot, job.id)
                if done is None:
                    raise NotFound("The source was removed, and this job with it.")
                on_progress(done)
                if done.status not in (JobStatus.PENDING, JobStatus.PROCESSING):
                    return done
                await asyncio.sleep(0.5)

    @cached_property
    def reaper(self) -> "Reaper":
        from kept.maintenance.reaper import Reaper

        return Reaper(timedelta(seconds=self.settings.work.silent_seconds))

    async def run_worker(self, stop: asyncio.Event, *, name: str | None = None, concurrency: int = 2) -> int:
        """Walks jobs as they come and keeps house, until ``stop`` is set. How many jobs ended here."""
        from kept.jobs.worker import Worker
        from kept.maintenance import periodic

        make_walk = partial(self._make_crawl_run, on_progress=lambda job: None)
        heartbeat = self.settings.work.heartbeat_seconds
        worker = Worker(
            self.db,
            make_walk,
            name=name,
            concurrency=concurrency,
            heartbeat=heartbeat,
            prepare=preview.preload_crawl_modules,
        )
        ticking = asyncio.create_task(periodic.run_tasks(self.periodic_tasks(), stop))
        try:
            await worker.run(stop)
        finally:
            ticking.cancel()  # each pass may be cut off anywhere
            await asyncio.gather(ticking, return_exceptions=True)
        return worker.jobs_done

    async def serve(
        self,
        stop: asyncio.Event,
        *,
        host: str,
        port: int,
        workers: int,
        on_ready: Callable[[str], None],
        separate_process: bool = False,
        verbose: bool = False,
    ) -> None:
        """Opens the doors, with workers behind them, until ``stop`` is set. ``ready`` is told where, once they are.

        Workers ``apart`` have a process of their own; ``verbose``: it tells everything.
        """
        from kept.server.app import make_app
        from kept.server.server import run_server

        behind = self._run_background(stop, workers, separate_process=separate_process, verbose=verbose)
        beside = [asyncio.create_task(one) for one in (behind, self.watch_folders(stop))]
        try:
            await run_server(make_app(self, self.settings, host=host), host, port, stop, on_ready)
        finally:
            stop.set()
            await asyncio.gather(*beside)

    async def _run_background(
        self, stop: asyncio.Event, workers: int, *, separate_process: bool, verbose: bool
    ) -> None:
        """Crawls and housekeeping, for a server."""
        from kept.jobs.worker_process import supervise_process
        from kept.maintenance import periodic

        if not workers:
            await periodic.run_tasks(self.periodic_tasks(), stop)
        elif not separate_process:
            await self.run_worker(stop, concurrency=workers)
        else:
            command = [sys.executable, "-m", "kept", "worker", "--behind", "--concurrency", str(workers)]
            command += ["--verbose"] if verbose else []
            environment = dict(self.settings.environment) | {"KEPT_DATABASE": self.settings.database}
            await supervise_process(command, environment, stop)

    def needs_keys(self, host: str) -> bool:
        """Whether whoever asks a server at this address has to have a key."""
        from kept.server.auth import AllowedHosts

        return AllowedHosts.from_settings(host, self.settings.serve.hosts).requires_keys

    async def serve_mcp_stdio(self, stop: asyncio.Event, *, read_only: bool, workers: int) -> bool:
        """Answers MCP on standard input and output until it is closed, or ``stop`` is set: then False.

        Crawls run here too, unless it only reads: who has nothing but this must see theirs finish.
        """
        from kept.server.mcp.server import make_mcp_server

        workers = 0 if read_only else workers
        working = asyncio.create_task(self.run_worker(stop, concurrency=workers) if workers else stop.wait())
        speaking = asyncio.create_task(make_mcp_server(self, self.settings, read_only=read_only).run_stdio_async())
        try:
            await asyncio.wait({speaking, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            await working
        if speaking.done():
            await speaking
        return speaking.done()

    def periodic_tasks(self) -> "list[PeriodicTask]":
        """What keeps house."""
        from kept.maintenance.gc import collect_if_due
        from kept.maintenance.periodic import PeriodicTask

        every = GC_INTERVAL_SECONDS * 0.8  # a clock is never quite on time
        collect = partial(collect_if_due, self.db, self.retention, every=every, cache=self.cache_folder)
        return [
            PeriodicTask("reaped", min(5.0, self.settings.work.silent_seconds / 4), partial(self.reaper.reap, self.db)),
            PeriodicTask("scheduled", SCHEDULE_INTERVAL_SECONDS, self.enqueue_due_crawls),
            PeriodicTask("told", SCHEDULE_INTERVAL_SECONDS, self.deliver_webhooks),
            *(
                [
                    PeriodicTask(
                        "embedded", EMBED_INTERVAL_SECONDS, partial(self.embedding_backlog.embed_pending, self.db)
                    )
                ]
                if self.embedding_backlog
                else []
            ),
            PeriodicTask("garbage collected", GC_INTERVAL_SECONDS, collect),
        ]

    async def watch_folders(self, stop: asyncio.Event) -> None:
        """Queues a refresh whenever the files of a source that asks for it have changed, until ``stop`` is set."""
        from kept.maintenance.watcher import watch_sources

        await watch_sources(self.db, stop)

    def file_changes(self, source: Source, stop: asyncio.Event) -> AsyncIterator[None]:
        """Comes whenever the files of one source have changed and are still again."""
        from kept.maintenance.watcher import watch_files

        return watch_files(source.root, stop)

    async def reap_jobs(self) -> None:
        """Jobs whose workers are gone wait again. A request that comes after this joins them."""
        await self.reaper.reap(self.db)

    async def enqueue_due_crawls(self) -> "ScheduleReport":
        """Crawls that are due by a schedule are asked for."""
        from kept.maintenance.scheduler import enqueue_due_crawls

        return await enqueue_due_crawls(self.db, self.schedule_policy)

    async def deliver_webhooks(self) -> "DeliveryReport":
        """Others are told what came of crawls."""
        from kept.maintenance.webhooks import OperatorWebhook, deliver_due

        said, egress = self.settings.webhooks, None

        async def send(url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
            from kept.origins.web.outbound import make_webhook_client, post_webhook

            nonlocal egress
            egress = egress or make_webhook_client(self.secrets.look_up(said.url), said.allow)
            return await post_webhook(egress, url, body, headers)

        try:
            operator = OperatorWebhook(url=said.url, secret=said.secret)
            return await deliver_due(self.db, send, operator, look_up=self.secrets.look_up)
        finally:
            if egress:
                await egress.close()

    @property
    def embedding_backlog(self) -> "EmbeddingBacklog | None":
        """Who gives sections their vectors; None: nobody wants any."""
        return self.models.embedding_backlog

    def vector_search(self) -> "VectorSearchOptions | None":
        """What a search goes by; None: words alone."""
        return self.models.vector_search()

    def reranking(self) -> "Reranking | None":
        """Who orders the first hits of a search anew; None: nobody."""
        return self.models.reranking()

    def _get_reader_pool(self) -> "ReaderPool":
        self._pool = self._pool or make_reader_pool()
        return self._pool

    def _make_crawl_run(self, lease: "Lease", source: Source, on_progress: OnProgress) -> "CrawlRun":
        from kept.crawl.engine import CrawlRun
        from kept.extract.reader import pipeline_signature

        region = source.settings.region
        heedless = source.settings.access.ignore_robots  # what was read while wishes counted was read otherwise
        return CrawlRun(
            self.db,
            lease,
            source,
            origin_factory.make_origin(source.kind, source.root, source.settings, self.settings, self.secrets.look_up),
            read=partial(self._get_reader_pool().read, region=region),
            signature=pipeline_signature(region=region) + (" heedless" if heedless else ""),
            rules=self.lifecycle_rules,
            on_progress=on_progress,
        )

    async def read_markdown(self, text: str, url: str) -> "Content | None":
        """What a reader makes of Markdown that no origin has brought; None: nothing."""
        from kept.model.document import ParsedPage

        read = await self._get_reader_pool().read(text.encode("utf-8", "replace"), "text/markdown; charset=utf-8", url)
        return read.content if isinstance(read, ParsedPage) else None

    @property
    def retention(self) -> "Retention":
        from kept.maintenance.gc import Retention

        history = self.settings.history
        return Retention(generations=history.generations, younger_than=timedelta(days=history.days))

    @property
    def cache_folder(self) -> Path:
        """What can be made again, on this machine."""
        return self.settings.cache_folder

    @property
    def hash_content(self) -> "Callable[[str, str, tuple[Section, ...]], str]":
        from kept.extract.sections import compute_content_hash

        return compute_content_hash

    async def close(self) -> None:
        if self._pool:
            await self._pool.close()
        await self.models.close()
        await self.db.close()


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, create: bool = True, readers: "ReaderPool | None" = None
) -> AsyncIterator[Runtime]:
    """A runtime on the database of the settings, closed at the end. Without ``create`` it has to be there already."""
    db = await open_database(settings.database, create=create, lease_seconds=settings.work.silent_seconds)
    runtime = Runtime(settings, db, readers)
    try:
        yield runtime
    finally:
        await runtime.close()
