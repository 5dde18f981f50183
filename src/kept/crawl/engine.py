"""The walk: takes open entries, visits them, and settles what it learned, batch by batch.

    1. begin       a generation to fill (or the one that was begun before)
    2. list        the origin names everything it has, or where to start
    3. lease       take entries that are due; they are this worker's until they are settled or it is gone
    4. visit       at the origin, many at once; read what came; decide
    5. settle      one fenced transaction a batch; links that lead on join the frontier
    6. activate    when nothing is left

Resuming is walking on: an entry is open until the commit that closes it. There is no recovery code.

Several may walk one job, each from its own place. One lists; all lease, visit and settle; whoever sees that nothing is
left activates, and the job's row lets only one of them. What they may ask of a host they share (``hosts``).

    ground     what all parts of a walk stand on      leases    the entries that are taken, and the limits
    listing    the list of what can list everything   visiting  one entry: asked for, read, decided on
    seeds      where the crawl of a site begins       links     what visits lead on to
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar

from kept.crawl import activate, settle
from kept.crawl.activate import ActivationResult
from kept.crawl.context import CrawlContext
from kept.crawl.decide import VisitResult
from kept.crawl.entry_leases import EntryLeases
from kept.crawl.full_listing import FullListing
from kept.crawl.host_budget import HostBudget
from kept.crawl.lifecycle import LifecycleRules
from kept.crawl.links import LinkDiscovery
from kept.crawl.site_seeds import SiteSeeds
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
T = TypeVar("T")

BATCH_PAGES = 200
BATCH_SECONDS = 2.0
MAX_IDLE_SECONDS = 1.0
MIN_IDLE_SECONDS = 0.2  # while others have the last entries, or all of the host


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlStopped:
    """The walk ended without being finished here: paused, cancelled, handed over, or finished by another."""

    status: JobStatus


class CrawlRun:
    """One worker's walk through one job."""

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
        self._host_budget = HostBudget(db, lease, origin)
        self._seeds, self._leases = SiteSeeds(context), EntryLeases(context)
        self._visitor, self._link_discovery = Visitor(context, read), LinkDiscovery(context)
        self._stopping = asyncio.Event()
        self._stop_status = JobStatus.PROCESSING  # what was known of the job when it was stopped
        self._root_identity: str | None = None  # what tells it from another in its place

    def stop(self, status: JobStatus = JobStatus.PROCESSING) -> None:
        """Asks the walk to stop after the batch at hand, because its job is paused or ended, or this worker goes."""
        self._stop_status = status
        self._stopping.set()

    async def run(self) -> ActivationResult | CrawlStopped | None:
        """Walks to the end. None: somebody else has activated, or the job failed."""
        try:
            async with self._host_budget.renewed():
                if not await self._run_unless_stopped(self._prepare()):
                    return CrawlStopped(status=self._stop_status)
                stopped = await self._visit_entries()
            if stopped:
                return stopped
            await self._seeds.judge_sitemap()
            await self._update_progress()
            return await activate.activate(
                self._context.db, self._context.lease, self._rules, now=self._context.fixed_now
            )
        finally:
            await self._context.origin.close()

    async def _prepare(self) -> None:
        self._root_identity = await self._context.origin.open()
        await self._context.start()
        await self._list_origin()

    async def _run_unless_stopped(self, step: Coroutine[Any, Any, None]) -> bool:
        """True if the step was done. False if it was cut short; walking on, it is taken up where it was."""
        doing, stopping = asyncio.create_task(step), asyncio.create_task(self._stopping.wait())
        try:
            await asyncio.wait({doing, stopping}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            doing.cancel()
            stopping.cancel()
            await asyncio.wait({doing, stopping})
        return not doing.cancelled() and doing.result() is None

    # 2. list

    async def _list_origin(self) -> None:
        if self._context.job.listed:
            return
        unlisted: list[ListingFailure] = []
        unmentioned = 0
        if self._context.job.mode is not CrawlMode.FAILED:
            if self._context.origin.lists_everything:
                unmentioned = await FullListing(self._context).add_to_frontier(self._root_identity, unlisted)
            else:
                async for found in self._seeds.list_seeds(unlisted):
                    await self._commit_batch([], found)
        async with self._context.db.transaction() as tx:
            if (
                self._root_identity
            ):  # first: whoever locks the source and then the job would wait for us, and we for them
                await sources.set_root_identity(tx, self._context.source.id, self._root_identity)
            await jobs.lock_lease(tx, self._context.lease)
            first = await jobs.mark_listed(
                tx,
                self._context.job.id,
                lists_everything=self._context.origin.lists_everything,
                unlisted=bool(unlisted),
            )
            # Counted here and not before: a walk that is cut short lists them again, and two may list at once.
            unmentioned = unmentioned if first else 0
            numbered = await jobs.advance_batch(
                tx, self._context.job.id, discovered=unmentioned, unchanged_without_entry=unmentioned
            )
            self._context.job = await settle.update_progress(tx, numbered)

    # 3 to 5. lease, visit, settle

    async def _visit_entries(self) -> CrawlStopped | None:
        """Visits go on while the batch before is settled and the next entries are leased."""
        context = self._context
        entries: deque[FrontierEntry] = deque()
        visiting: set[asyncio.Task[VisitResult]] = set()
        visited: list[VisitResult] = []
        leasing: asyncio.Task[list[FrontierEntry]] | None = None
        settling: asyncio.Task[None] | None = None
        began = time.monotonic()
        more = True  # whether the frontier may have entries that are not leased
        progress_event = (
            asyncio.Event()
        )  # rung by whatever is done: to ask all that is under way, each time, would take longer

        def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
            task = asyncio.create_task(work)
            task.add_done_callback(lambda _: progress_event.set())
            return task

        stopping = start(self._stopping.wait())
        try:
            while True:
                stopped, concurrency = self._stop_result(), context.origin.concurrency
                if stopped and not settling and not visited:
                    return stopped
                if not concurrency and not settling and not visited:
                    if context.lease.joined_running_job and self._host_budget.is_crowded_out:
                        return CrawlStopped(
                            status=context.job.status
                        )  # those who were here before need all of the host
                    if entries or visiting:
                        await self._release_entries(entries, visiting)
                while entries and len(visiting) < concurrency and not stopped:
                    visiting.add(start(self._visitor.visit(entries.popleft())))
                under_way = visiting or visited or settling
                is_low = len(entries) <= self._leases.batch_size // 2 if more else not entries and not under_way
                is_behind = len(visited) >= BATCH_PAGES  # the store is slower than the site: it waits for the store
                if concurrency and is_low and not is_behind and not leasing and not stopped:
                    leasing = start(self._leases.lease_next())
                # Nothing more can be leased before what was found is settled: that is done while there is still some to
                # visit, in smaller batches, so that little is left to do when all of it is visited.
                left = len(entries) + len(visiting)
                runs_dry = not more and not leasing and (left * 2 <= concurrency or len(visited) >= 2 * concurrency)
                due = is_behind or time.monotonic() - began >= BATCH_SECONDS or runs_dry or stopped
                if visited and due and not settling:
                    batch, visited = visited[:BATCH_PAGES], visited[BATCH_PAGES:]
                    settling = start(self._commit_batch(batch, *self._link_discovery.discover(batch)))
                    self._leases.visits_per_second = len(batch) / max(time.monotonic() - began, 0.001)
                    began = time.monotonic()

                nap = MAX_IDLE_SECONDS if concurrency else MIN_IDLE_SECONDS
                wait = max(0.0, began + BATCH_SECONDS - time.monotonic()) if visited and not settling else nap
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await progress_event.wait()
                progress_event.clear()  # before anything is asked: what is done after that rings again
                done = [task for task in visiting if task.done()]
                visited += [task.result() for task in done]
                visiting.difference_update(done)
                if settling and settling.done():
                    await settling
                    settling, more = None, True
                if leasing and leasing.done():
                    leased = await leasing
                    entries.extend(leased)
                    leasing, more = None, more and len(leased) >= self._leases.batch_size
                    if (
                        not entries
                        and not visiting
                        and not visited
                        and not settling
                        and not await self._wait_for_entries()
                    ):
                        return None
        finally:
            unfinished: set[asyncio.Task[Any]] = visiting | {task for task in (leasing, settling, stopping) if task}
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    def _stop_result(self) -> CrawlStopped | None:
        if self._stopping.is_set() and self._stop_status is not JobStatus.PROCESSING:
            return CrawlStopped(status=self._stop_status)
        if self._context.job.status is not JobStatus.PROCESSING or self._stopping.is_set():
            return CrawlStopped(status=self._context.job.status)
        return None

    async def _wait_for_entries(self) -> bool:
        """Whether entries are left, after a while for those that are not due or are another worker's."""
        async with self._context.db.snapshot() as snapshot:
            open = await frontier.open_entries(snapshot, self._context.job.id)
            job = await jobs.get(snapshot, self._context.job.id)
        if job is None:
            raise LeaseLost("The job was ended meanwhile.")
        self._context.job = job
        if not open.has_any:
            return job.status is not JobStatus.PROCESSING  # then it is stopped, not finished here
        wait = (open.next_due_at - self._context.now()).total_seconds() if open.next_due_at else MIN_IDLE_SECONDS
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), min(max(wait, 0.05), MAX_IDLE_SECONDS))
        return True

    async def _release_entries(self, entries: deque[FrontierEntry], visiting: set[asyncio.Task[VisitResult]]) -> None:
        for task in visiting:
            task.cancel()
        await asyncio.gather(*visiting, return_exceptions=True)
        visiting.clear()
        entries.clear()
        await self._leases.release_all()

    async def _update_progress(self) -> None:
        """Brings the progress up to date before activation, which has to be short."""
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            await jobs.lock(tx, self._context.job.id)
            await jobs.update_progress(tx, self._context.job.id)

    async def _commit_batch(
        self, visited: list[VisitResult], found: list[DiscoveredUrl], too_deep: Sequence[str] = ()
    ) -> None:
        context, began = self._context, time.monotonic()
        context.job = await settle.commit_batch(
            context.db, context.lease, context.job, visited, found, too_deep, signature=context.signature
        )
        self._link_discovery.remember(found)
        self._seeds.check_claims(visited)
        log.debug(
            "batch settled",
            source=context.source.label,
            job=context.job.id,
            pages=len(visited),
            found=len(found),
            took_ms=round(1000 * (time.monotonic() - began)),
        )
        context.on_progress(context.job)
