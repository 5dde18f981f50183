"""The crawl engine: one worker's run of one job.

    1. start       a generation to fill (or the one that was started before)
    2. list        the origin lists everything it has, or the seeds to start from
    3. lease       take entries that are due; they are this worker's until they are settled or the worker is gone
    4. visit       fetch many at once, read them, decide about each
    5. settle      one fenced transaction per batch; discovered links join the frontier
    6. activate    when no entry is left

There is no recovery code: an entry is open until the commit that settles it, so resuming is just going on.

Several workers may run one job, each with its own lease. One lists; all lease, visit and settle; the one that finds no
entry left activates, and the job's row lock lets only one do so. They share each host's request budget.

    context       what all parts share             full_listing   the list of an origin that lists everything
    pipeline      lease, visit and commit at once  site_seeds     the seeds of a web site
    entry_leases  leased entries, and the limits   visitor        one entry: fetched, read, decided
    host_budget   requests at once per host        links          the URLs that visits lead to
    admission     deferred URLs, and the guards    outage         an origin that does not answer any more
    store_retry   a database in trouble
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from kept.crawl import activate, settle
from kept.crawl.activate import ActivationResult
from kept.crawl.context import CrawlContext
from kept.crawl.decide import VisitResult
from kept.crawl.entry_leases import EntryLeases
from kept.crawl.full_listing import FullListing
from kept.crawl.host_budget import HostBudget
from kept.crawl.lifecycle import LifecycleRules
from kept.crawl.links import LinkDiscovery
from kept.crawl.outage import OutageWatch
from kept.crawl.pipeline import Pipeline
from kept.crawl.site_seeds import SiteSeeds
from kept.crawl.store_retry import StoreRetry
from kept.crawl.visitor import ReadPage, Visitor
from kept.errors import LeaseLost
from kept.log import Log
from kept.model.frontier import DiscoveredUrl, FrontierEntry, ListingFailure
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.model.source import Source
from kept.origins.origin import Origin
from kept.store import frontier, jobs, sources
from kept.store.database import Database

log = Log(__name__)

MAX_IDLE_SECONDS = 1.0
MIN_COMMIT_PAGES = 10
MIN_IDLE_SECONDS = 0.2  # while other workers have the last entries, or the whole budget of the host


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlStopped:
    """The run ended before the crawl did: paused, cancelled, handed over, or completed: by another worker, or because
    there was nothing to do."""

    status: JobStatus


class CrawlRun:
    """One worker's run of one job."""

    def __init__(
        self,
        db: Database,
        lease: Lease,
        source: Source,
        origin: Origin,
        *,
        read: ReadPage,
        signature: str,
        rules: LifecycleRules,
        give_up_seconds: float = 60.0,
        on_progress: Callable[[CrawlJob], None] = lambda job: None,
        now: datetime | None = None,
    ) -> None:
        self._context = context = CrawlContext(
            db=db,
            lease=lease,
            source=source,
            origin=origin,
            signature=signature,
            on_progress=on_progress,
            fixed_now=now,
        )
        self._rules = rules
        self._stopping = asyncio.Event()
        self._stop_status = JobStatus.PROCESSING  # the job's status when this run was stopped
        self._store_retry = StoreRetry(lease.job_id, self._stopping)
        self._host_budget = HostBudget(db, lease, origin)
        self._seeds, self._link_discovery = SiteSeeds(context), LinkDiscovery(context)
        self._entry_leases = EntryLeases(context, self._link_discovery)
        # A file that cannot be read says nothing about the others.
        self._outage = None if origin.lists_everything else OutageWatch(source.root, give_up_seconds=give_up_seconds)
        self._pipeline = Pipeline(
            lease=self._lease_next, visit=Visitor(context, read).visit, commit=self._commit_visits
        )
        self._root_identity: str | None = None
        self._has_warned = False

    def stop(self, status: JobStatus = JobStatus.PROCESSING) -> None:
        """Stop after the current batch, because the job is paused or ended, or this worker stops."""
        self._stop_status = status
        self._stopping.set()
        self._pipeline.wake()

    async def run(self) -> ActivationResult | CrawlStopped | None:
        """Crawl to the end. Returns None if another worker has activated the generation, or if the job failed."""
        try:
            async with self._host_budget.renewed():
                if not await self._run_unless_stopped(self._prepare()):
                    return CrawlStopped(status=self._stop_status)
                if self._context.job.status is JobStatus.COMPLETED:
                    return CrawlStopped(status=JobStatus.COMPLETED)
                stopped = await self._visit_entries()
            if stopped:
                return stopped
            await self._store_retry.run(lambda _: self._seeds.judge_sitemap())
            await self._store_retry.run(lambda _: self._update_progress())
            if self._outage:
                self._outage.check_end(self._context.job.progress.tally)
            return await self._store_retry.run(lambda _: self._activate())
        finally:
            await self._context.origin.close()

    async def _prepare(self) -> None:
        self._root_identity = await self._context.origin.open()
        await self._store_retry.run(lambda _: self._context.start())
        if self._context.job.status is not JobStatus.COMPLETED:
            await self._list_origin()

    async def _run_unless_stopped(self, step: Coroutine[Any, Any, None]) -> bool:
        """Return True if the step was completed, False if it was cancelled; the next run repeats it."""
        running, stopping = asyncio.create_task(step), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            running.cancel()
            stopping.cancel()
            await asyncio.wait({running, stopping})
        return not running.cancelled() and running.result() is None

    # 2. list

    async def _list_origin(self) -> None:
        context = self._context
        if context.job.listed:
            return
        failures: list[ListingFailure] = []
        unchanged_without_entry = 0
        if context.job.mode is not CrawlMode.FAILED:
            if context.origin.lists_everything:
                unchanged_without_entry = await FullListing(context).add_to_frontier(self._root_identity, failures)
            else:
                async for seeds in self._seeds.list_seeds(failures):
                    await self._commit([], seeds)
        await self._store_retry.run(lambda _: self._mark_listed(unchanged_without_entry, unlisted=bool(failures)))

    async def _mark_listed(self, unchanged_without_entry: int, *, unlisted: bool) -> None:
        context = self._context
        async with context.db.transaction() as tx:
            # First: a transaction that locks the source and then the job would deadlock with the opposite order.
            if self._root_identity:
                await sources.set_root_identity(tx, context.source.id, self._root_identity)
            await jobs.lock_lease(tx, context.lease)
            is_first = await jobs.mark_listed(
                tx, context.job.id, lists_everything=context.origin.lists_everything, unlisted=unlisted
            )
            # Counted only here: an interrupted listing is repeated, and two workers may list at once.
            unchanged_without_entry = unchanged_without_entry if is_first else 0
            advanced = await jobs.advance_batch(
                tx,
                context.job.id,
                discovered=unchanged_without_entry,
                unchanged_without_entry=unchanged_without_entry,
                is_progress=is_first,
            )
            context.job = await settle.update_progress(tx, advanced)

    # 3 to 5. lease, visit, settle

    async def _visit_entries(self) -> CrawlStopped | None:
        """Visit entries until none is left. Returns why the run stopped earlier, or None."""
        context = self._context
        self._pipeline.is_on_trial = context.job.retry_count > 0
        async with self._pipeline as pipeline:
            while True:
                if self._outage:
                    self._outage.check()
                stopped, concurrency = self._stop_result(), context.origin.concurrency
                if not pipeline.has_uncommitted:
                    if stopped:
                        return stopped
                    if not concurrency and context.lease.joined_running_job and self._host_budget.is_crowded_out:
                        return CrawlStopped(status=context.job.status)
                    if not concurrency and await pipeline.drop_entries():
                        await self._entry_leases.release_all()
                self._entry_leases.visits_per_second = pipeline.visits_per_second
                pipeline.start(
                    # A page that is fetched while nothing can be committed may have to be fetched again.
                    concurrency=0 if self._store_retry.is_failing else concurrency,
                    lease_size=self._entry_leases.batch_size,
                    is_stopping=stopped is not None,
                )
                found_nothing = await pipeline.wait(MAX_IDLE_SECONDS if concurrency else MIN_IDLE_SECONDS)
                if found_nothing and not await self._store_retry.run(lambda _: self._wait_for_entries()):
                    return None

    async def _lease_next(self) -> list[FrontierEntry]:
        return await self._store_retry.run(lambda retried: self._entry_leases.lease_next(retried=retried))

    def _stop_result(self) -> CrawlStopped | None:
        if self._stopping.is_set() and self._stop_status is not JobStatus.PROCESSING:
            return CrawlStopped(status=self._stop_status)
        if self._context.job.status is not JobStatus.PROCESSING or self._stopping.is_set():
            return CrawlStopped(status=self._context.job.status)
        return None

    async def _wait_for_entries(self) -> bool:
        """Wait a moment for entries that are not due yet or leased by other workers. Returns False if none are left."""
        async with self._context.db.snapshot() as snapshot:
            open_entries = await frontier.open_entries(snapshot, self._context.job.id)
            job = await jobs.get(snapshot, self._context.job.id)
        if job is None:
            raise LeaseLost("The job was ended meanwhile.")
        self._context.job = job
        if not open_entries.has_any:
            return job.status is not JobStatus.PROCESSING  # then this run is stopped, not finished
        due_at = open_entries.next_due_at
        seconds = (due_at - self._context.now()).total_seconds() if due_at else MIN_IDLE_SECONDS
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), min(max(seconds, 0.05), MAX_IDLE_SECONDS))
        return True

    async def _activate(self) -> ActivationResult | None:
        return await activate.activate(self._context.db, self._context.lease, self._rules, now=self._context.fixed_now)

    async def _update_progress(self) -> None:
        """Bring the job's progress up to date before activation, which has to be short."""
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            await jobs.lock(tx, self._context.job.id)
            await jobs.update_progress(tx, self._context.job.id)
            self._context.job = await jobs.get(tx, self._context.job.id) or self._context.job

    async def _commit_visits(self, results: list[VisitResult]) -> None:
        await self._commit(results)
        if self._outage:
            self._outage.record(results)
            await self._report_outage(self._outage.warning)

    async def _commit(self, results: list[VisitResult], seeds: Sequence[DiscoveredUrl] = ()) -> None:
        """Commit visits with the URLs they lead to, or seeds.

        Visits are committed in ever smaller batches while that fails: a database in trouble may still manage those.
        """
        left, size, was_retried = results, len(results), False

        async def commit(retried: bool) -> int:
            nonlocal size, was_retried
            if retried:
                size, was_retried = max(MIN_COMMIT_PAGES, size // 2), True
            part = left[:size]
            discovered = list(seeds) or self._link_discovery.discover(part)
            await self._commit_batch(part, discovered, retried=was_retried)
            return len(part)

        while left or seeds:
            left, seeds = left[await self._store_retry.run(commit) :], ()

    async def _report_outage(self, warning: str | None) -> None:
        """Show on the job that its origin does not answer, or does again."""
        context = self._context
        if warning == context.job.error or (warning is None and not self._has_warned):
            return
        if warning and not self._has_warned:
            log.warning("no answer", source=context.source.label, job=context.job.id, reason=warning)
        self._has_warned = warning is not None
        async with context.db.transaction() as tx:
            await jobs.lock_lease(tx, context.lease)
            await jobs.set_warning(tx, context.job.id, warning)
        context.job = replace(context.job, error=warning)
        context.on_progress(context.job)

    async def _commit_batch(
        self, results: list[VisitResult], discovered: list[DiscoveredUrl], *, retried: bool
    ) -> None:
        context, started = self._context, time.monotonic()
        context.job = await settle.commit_batch(
            context.db,
            context.lease,
            context.job,
            results,
            discovered,
            signature=context.signature,
            retried=retried,
        )
        self._entry_leases.forget(results)
        self._link_discovery.remember(discovered)
        self._seeds.check_claims(results)
        log.debug(
            "batch settled",
            source=context.source.label,
            job=context.job.id,
            pages=len(results),
            found=len(discovered),
            took_ms=round(1000 * (time.monotonic() - started)),
        )
        context.on_progress(context.job)
