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

from kept.errors import NoSuchThing
from kept.model.source import Source, SourceKind, SourceSettings
from kept.runtime import looking, origins
from kept.runtime.meaning import EMBED_SECONDS, Meaning
from kept.runtime.readers import reader_pool
from kept.settings import Settings
from kept.store.database import Database, open_database

if TYPE_CHECKING:  # heavy: only a crawl loads these, a search answers at once
    from kept.crawl.engine import Walk
    from kept.crawl.sweep import Rules
    from kept.crawl.trying import Look, Survey
    from kept.extract.pool import ReaderPool
    from kept.model.document import Content, Section
    from kept.model.job import CrawlJob
    from kept.search.meaning import By
    from kept.search.rerank import SecondLook
    from kept.secrets import Secrets
    from kept.store.jobs import Place
    from kept.upkeep.clocks import Clock
    from kept.upkeep.embedding import Filler
    from kept.upkeep.gc import Retention
    from kept.upkeep.reaper import Reaper
    from kept.upkeep.rhythm import Rhythm
    from kept.upkeep.scheduler import Scheduled
    from kept.upkeep.webhooks import Delivered

SCHEDULE_SECONDS = 5.0
COLLECT_SECONDS = 600.0

OnProgress = Callable[["CrawlJob"], None]


class Runtime:
    """An open store and everything that works on it."""

    def __init__(self, settings: Settings, db: Database, readers: "ReaderPool | None" = None) -> None:
        self.settings = settings
        self.db = db
        self.meaning = Meaning(settings, lambda reference: self.secrets.look_up(reference))
        self._pool = readers

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

    @cached_property
    def rhythm(self) -> "Rhythm":
        from kept.crawl.history import Bounds
        from kept.upkeep.rhythm import Rhythm

        said = self.settings.schedule
        bounds = Bounds(shortest=timedelta(hours=said.shortest_hours), longest=timedelta(days=said.longest_days))
        return Rhythm(bounds=bounds, full_every=said.full_every)

    @cached_property
    def secrets(self) -> "Secrets":
        from kept.secrets import Secrets

        return Secrets(self.settings.secrets_file, self.settings.environment)

    def why_not(self, source: Source, url: str) -> str | None:
        return origins.why_not(source.kind, source.root, source.settings, self.settings, url)

    def check(self, kind: SourceKind, root: str, settings: SourceSettings) -> None:
        origins.check(kind, root, settings, self.settings)

    async def look_at_root(self, kind: SourceKind, root: str, settings: SourceSettings) -> None:
        await looking.look_at_root(self.settings, kind, root, settings)

    async def survey(self, kind: SourceKind, root: str, settings: SourceSettings) -> "Survey":
        return await looking.survey(self.settings, kind, root, settings)

    async def try_page(self, kind: SourceKind, url: str, settings: SourceSettings) -> "Look":
        return await looking.try_page(self.settings, kind, url, settings)

    async def run_job(self, job: "CrawlJob", on_progress: OnProgress = lambda job: None) -> "CrawlJob":
        """The job at its end: walked here if it is free, followed if somebody else walks it."""
        from kept.model.job import JobStatus
        from kept.store import jobs
        from kept.work.worker import work_on

        gc.freeze()  # what is loaded stays: it need not be searched again and again while files are listed
        async with self.meaning.filling(self.db):
            while True:
                await self.reap()
                make_walk = partial(self._walk, on_progress=on_progress)
                done = await work_on(self.db, job.id, make_walk, heartbeat=self.settings.work.heartbeat_seconds)
                if done is None:
                    async with self.db.snapshot() as snapshot:
                        done = await jobs.get(snapshot, job.id)
                if done is None:
                    raise NoSuchThing("The source was removed, and this job with it.")
                on_progress(done)
                if done.status not in (JobStatus.PENDING, JobStatus.PROCESSING):
                    return done
                await asyncio.sleep(0.5)

    @cached_property
    def reaper(self) -> "Reaper":
        from kept.upkeep.reaper import Reaper

        return Reaper(timedelta(seconds=self.settings.work.silent_seconds))

    async def work(self, stop: asyncio.Event, *, name: str | None = None, concurrency: int = 2) -> int:
        """Walks jobs as they come and keeps house, until ``stop`` is set. How many jobs ended here."""
        from kept.upkeep import clocks
        from kept.work.worker import Worker

        make_walk = partial(self._walk, on_progress=lambda job: None)
        heartbeat = self.settings.work.heartbeat_seconds
        worker = Worker(
            self.db, make_walk, name=name, concurrency=concurrency, heartbeat=heartbeat, prepare=looking.prepare
        )
        ticking = asyncio.create_task(clocks.run(self.clocks(), stop))
        try:
            await worker.run(stop)
        finally:
            ticking.cancel()  # each pass may be cut off anywhere
            await asyncio.gather(ticking, return_exceptions=True)
        return worker.done

    async def serve(
        self,
        stop: asyncio.Event,
        *,
        host: str,
        port: int,
        workers: int,
        ready: Callable[[str], None],
        apart: bool = False,
        verbose: bool = False,
    ) -> None:
        """Opens the doors, with workers behind them, until ``stop`` is set. ``ready`` is told where, once they are.

        Workers ``apart`` have a process of their own; ``verbose``: it tells everything.
        """
        from kept.serve.app import make_app
        from kept.serve.listening import listen

        behind = self._behind(stop, workers, apart=apart, verbose=verbose)
        beside = [asyncio.create_task(one) for one in (behind, self.watch(stop))]
        try:
            await listen(make_app(self, self.settings, host=host), host, port, stop, ready)
        finally:
            stop.set()
            await asyncio.gather(*beside)

    async def _behind(self, stop: asyncio.Event, workers: int, *, apart: bool, verbose: bool) -> None:
        """Crawls and housekeeping, for a server."""
        from kept.upkeep import clocks
        from kept.work.apart import keep_running

        if not workers:
            await clocks.run(self.clocks(), stop)
        elif not apart:
            await self.work(stop, concurrency=workers)
        else:
            command = [sys.executable, "-m", "kept", "worker", "--behind", "--concurrency", str(workers)]
            command += ["--verbose"] if verbose else []
            environment = dict(self.settings.environment) | {"KEPT_DATABASE": self.settings.database}
            await keep_running(command, environment, stop)

    def needs_keys(self, host: str) -> bool:
        """Whether whoever asks a server at this address has to have a key."""
        from kept.serve.gate import Names

        return Names.of(host, self.settings.serve.hosts).need_keys

    async def assist(self, stop: asyncio.Event, *, read_only: bool, workers: int) -> bool:
        """Answers MCP on standard input and output until it is closed, or ``stop`` is set: then False.

        Crawls run here too, unless it only reads: who has nothing but this must see theirs finish.
        """
        from kept.serve.mcp.server import make_server

        workers = 0 if read_only else workers
        working = asyncio.create_task(self.work(stop, concurrency=workers) if workers else stop.wait())
        speaking = asyncio.create_task(make_server(self, self.settings, read_only=read_only).run_stdio_async())
        try:
            await asyncio.wait({speaking, asyncio.create_task(stop.wait())}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stop.set()
            await working
        if speaking.done():
            await speaking
        return speaking.done()

    def clocks(self) -> "list[Clock]":
        """What keeps house."""
        from kept.upkeep.clocks import Clock
        from kept.upkeep.gc import collect_in_turn

        every = COLLECT_SECONDS * 0.8  # a clock is never quite on time
        collect = partial(collect_in_turn, self.db, self.retention, every=every, cache=self.cache)
        return [
            Clock("reaped", min(5.0, self.settings.work.silent_seconds / 4), partial(self.reaper.reap, self.db)),
            Clock("scheduled", SCHEDULE_SECONDS, self.schedule),
            Clock("told", SCHEDULE_SECONDS, self.deliver),
            *([Clock("embedded", EMBED_SECONDS, partial(self.filler.fill, self.db))] if self.filler else []),
            Clock("garbage collected", COLLECT_SECONDS, collect),
        ]

    async def watch(self, stop: asyncio.Event) -> None:
        """Queues a refresh whenever the files of a source that asks for it have changed, until ``stop`` is set."""
        from kept.upkeep.watching import watch

        await watch(self.db, stop)

    def changes(self, source: Source, stop: asyncio.Event) -> AsyncIterator[None]:
        """Comes whenever the files of one source have changed and are still again."""
        from kept.upkeep.watching import changes

        return changes(source.root, stop)

    async def reap(self) -> None:
        """Jobs whose workers are gone wait again. A request that comes after this joins them."""
        await self.reaper.reap(self.db)

    async def schedule(self) -> "Scheduled":
        """Crawls that are due by a schedule are asked for."""
        from kept.upkeep.scheduler import schedule

        return await schedule(self.db, self.rhythm)

    async def deliver(self) -> "Delivered":
        """Others are told what came of crawls."""
        from kept.upkeep.webhooks import Operator, deliver

        said, egress = self.settings.webhooks, None

        async def send(url: str, body: bytes, headers: Mapping[str, str]) -> str | None:
            from kept.origins.web.posting import post, posting_egress

            nonlocal egress
            egress = egress or posting_egress(self.secrets.look_up(said.url), said.allow)
            return await post(egress, url, body, headers)

        try:
            operator = Operator(url=said.url, secret=said.secret)
            return await deliver(self.db, send, operator, look_up=self.secrets.look_up)
        finally:
            if egress:
                await egress.close()

    @property
    def filler(self) -> "Filler | None":
        """Who gives sections their vectors; None: nobody wants any."""
        return self.meaning.filler

    def searches_by(self) -> "By | None":
        """What a search goes by; None: words alone."""
        return self.meaning.searches_by()

    def second_look(self) -> "SecondLook | None":
        """Who orders the first hits of a search anew; None: nobody."""
        return self.meaning.second_look()

    def _readers(self) -> "ReaderPool":
        self._pool = self._pool or reader_pool()
        return self._pool

    def _walk(self, place: "Place", source: Source, on_progress: OnProgress) -> "Walk":
        from kept.crawl.engine import Walk
        from kept.extract.reader import signature

        region = source.settings.region
        heedless = source.settings.access.ignore_robots  # what was read while wishes counted was read otherwise
        return Walk(
            self.db,
            place,
            source,
            origins.make_origin(source.kind, source.root, source.settings, self.settings, self.secrets.look_up),
            read=partial(self._readers().read, region=region),
            signature=signature(region=region) + (" heedless" if heedless else ""),
            rules=self.rules,
            on_progress=on_progress,
        )

    async def read_markdown(self, text: str, url: str) -> "Content | None":
        """What a reader makes of Markdown that no origin has brought; None: nothing."""
        from kept.model.document import Reading

        read = await self._readers().read(text.encode("utf-8", "replace"), "text/markdown; charset=utf-8", url)
        return read.content if isinstance(read, Reading) else None

    @property
    def retention(self) -> "Retention":
        from kept.upkeep.gc import Retention

        history = self.settings.history
        return Retention(generations=history.generations, younger_than=timedelta(days=history.days))

    @property
    def cache(self) -> Path:
        """What can be made again, on this machine."""
        return self.settings.cache_folder

    @property
    def hash_of(self) -> "Callable[[str, str, tuple[Section, ...]], str]":
        from kept.extract.sections import hash_of

        return hash_of

    async def close(self) -> None:
        if self._pool:
            await self._pool.close()
        await self.meaning.close()
        await self.db.close()


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, create: bool = True, readers: "ReaderPool | None" = None
) -> AsyncIterator[Runtime]:
    """A runtime on the database of the settings, closed at the end. Without ``create`` it has to be there already."""
    db = await open_database(settings.database, create=create, lease=settings.work.silent_seconds)
    runtime = Runtime(settings, db, readers)
    try:
        yield runtime
    finally:
        await runtime.close()
