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
from datetime import datetime
from typing import Any, TypeVar

from kept.crawl import activate, settle
from kept.crawl.activate import Activation
from kept.crawl.ground import Ground
from kept.crawl.hosts import Sharing
from kept.crawl.leases import Leases
from kept.crawl.links import Links
from kept.crawl.listing import CompleteList
from kept.crawl.seeds import Seeds
from kept.crawl.settle import Visited
from kept.crawl.sweep import Rules
from kept.crawl.visiting import Read, Visits
from kept.errors import LeaseLost
from kept.log import Log
from kept.model.frontier import Entry, Unlisted
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.nouns import dataclass
from kept.model.source import Source
from kept.origins.origin import Origin
from kept.store import frontier, jobs, sources
from kept.store.database import Database
from kept.store.frontier import Found
from kept.store.jobs import Place

log = Log(__name__)
T = TypeVar("T")

BATCH_PAGES = 200
BATCH_SECONDS = 2.0
LONGEST_NAP = 1.0
SHORTEST_NAP = 0.2  # while others have the last entries, or all of the host


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The walk ended without being finished here: paused, cancelled, handed over, or finished by another."""

    status: JobStatus


class Walk:
    """One worker's walk through one job."""

    def __init__(
        self,
        db: Database,
        place: Place,
        source: Source,
        origin: Origin,
        *,
        read: Read,
        signature: str,
        rules: Rules,
        on_progress: Callable[[CrawlJob], None] = lambda job: None,
        now: datetime | None = None,
    ) -> None:
        self._ground = ground = Ground(
            db=db,
            place=place,
            source=source,
            origin=origin,
            signature=signature,
            on_progress=on_progress,
            fixed_now=now,
        )
        self._rules = rules
        self._sharing = Sharing(db, place, origin)
        self._seeds, self._leases = Seeds(ground), Leases(ground)
        self._visits, self._links = Visits(ground, read), Links(ground)
        self._stopping = asyncio.Event()
        self._ended = JobStatus.PROCESSING  # what was known of the job when it was stopped
        self._root: str | None = None  # what tells it from another in its place

    def stop(self, status: JobStatus = JobStatus.PROCESSING) -> None:
        """Asks the walk to stop after the batch at hand, because its job is paused or ended, or this worker goes."""
        self._ended = status
        self._stopping.set()

    async def run(self) -> Activation | Stopped | None:
        """Walks to the end. None: somebody else has activated, or the job failed."""
        try:
            async with self._sharing.renewed():
                if not await self._unless_stopped(self._prepare()):
                    return Stopped(status=self._ended)
                stopped = await self._walk()
            if stopped:
                return stopped
            await self._seeds.judge()
            await self._count()
            return await activate.activate(self._ground.db, self._ground.place, self._rules, now=self._ground.fixed_now)
        finally:
            await self._ground.origin.close()

    async def _prepare(self) -> None:
        self._root = await self._ground.origin.open()
        await self._ground.begin()
        await self._list()

    async def _unless_stopped(self, step: Coroutine[Any, Any, None]) -> bool:
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

    async def _list(self) -> None:
        if self._ground.job.listed:
            return
        unlisted: list[Unlisted] = []
        unmentioned = 0
        if self._ground.job.mode is not CrawlMode.FAILED:
            if self._ground.origin.lists_everything:
                unmentioned = await CompleteList(self._ground).take(self._root, unlisted)
            else:
                async for found in self._seeds.take(unlisted):
                    await self._settle([], found)
        async with self._ground.db.transaction() as tx:
            if self._root:  # first: whoever locks the source and then the job would wait for us, and we for them
                await sources.remember_root(tx, self._ground.source.id, self._root)
            await jobs.hold(tx, self._ground.place)
            first = await jobs.mark_listed(
                tx, self._ground.job.id, lists_everything=self._ground.origin.lists_everything, unlisted=bool(unlisted)
            )
            # Counted here and not before: a walk that is cut short lists them again, and two may list at once.
            unmentioned = unmentioned if first else 0
            numbered = await jobs.number_batch(tx, self._ground.job.id, discovered=unmentioned, unmentioned=unmentioned)
            self._ground.job = await settle.count(tx, numbered)

    # 3 to 5. lease, visit, settle

    async def _walk(self) -> Stopped | None:
        """Visits go on while the batch before is settled and the next entries are leased."""
        ground = self._ground
        entries: deque[Entry] = deque()
        visiting: set[asyncio.Task[Visited]] = set()
        visited: list[Visited] = []
        leasing: asyncio.Task[list[Entry]] | None = None
        settling: asyncio.Task[None] | None = None
        began = time.monotonic()
        more = True  # whether the frontier may have entries that are not leased
        bell = asyncio.Event()  # rung by whatever is done: to ask all that is under way, each time, would take longer

        def start(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
            task = asyncio.create_task(work)
            task.add_done_callback(lambda _: bell.set())
            return task

        stopping = start(self._stopping.wait())
        try:
            while True:
                stopped, concurrency = self._stopped(), ground.origin.concurrency
                if stopped and not settling and not visited:
                    return stopped
                if not concurrency and not settling and not visited:
                    if ground.place.joined and self._sharing.is_crowded_out:
                        return Stopped(status=ground.job.status)  # those who were here before need all of the host
                    if entries or visiting:
                        await self._give_back(entries, visiting)
                while entries and len(visiting) < concurrency and not stopped:
                    visiting.add(start(self._visits.visit(entries.popleft())))
                under_way = visiting or visited or settling
                is_low = len(entries) <= self._leases.stride // 2 if more else not entries and not under_way
                is_behind = len(visited) >= BATCH_PAGES  # the store is slower than the site: it waits for the store
                if concurrency and is_low and not is_behind and not leasing and not stopped:
                    leasing = start(self._leases.take())
                # Nothing more can be leased before what was found is settled: that is done while there is still some to
                # visit, in smaller batches, so that little is left to do when all of it is visited.
                left = len(entries) + len(visiting)
                runs_dry = not more and not leasing and (left * 2 <= concurrency or len(visited) >= 2 * concurrency)
                due = is_behind or time.monotonic() - began >= BATCH_SECONDS or runs_dry or stopped
                if visited and due and not settling:
                    batch, visited = visited[:BATCH_PAGES], visited[BATCH_PAGES:]
                    settling = start(self._settle(batch, *self._links.found_by(batch)))
                    self._leases.pace = len(batch) / max(time.monotonic() - began, 0.001)
                    began = time.monotonic()

                nap = LONGEST_NAP if concurrency else SHORTEST_NAP
                wait = max(0.0, began + BATCH_SECONDS - time.monotonic()) if visited and not settling else nap
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await bell.wait()
                bell.clear()  # before anything is asked: what is done after that rings again
                done = [task for task in visiting if task.done()]
                visited += [task.result() for task in done]
                visiting.difference_update(done)
                if settling and settling.done():
                    await settling
                    settling, more = None, True
                if leasing and leasing.done():
                    leased = await leasing
                    entries.extend(leased)
                    leasing, more = None, more and len(leased) >= self._leases.stride
                    if not entries and not visiting and not visited and not settling and not await self._more():
                        return None
        finally:
            unfinished: set[asyncio.Task[Any]] = visiting | {task for task in (leasing, settling, stopping) if task}
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)

    def _stopped(self) -> Stopped | None:
        if self._stopping.is_set() and self._ended is not JobStatus.PROCESSING:
            return Stopped(status=self._ended)
        if self._ground.job.status is not JobStatus.PROCESSING or self._stopping.is_set():
            return Stopped(status=self._ground.job.status)
        return None

    async def _more(self) -> bool:
        """Whether entries are left, after a while for those that are not due or are another worker's."""
        async with self._ground.db.snapshot() as snapshot:
            open = await frontier.unfinished(snapshot, self._ground.job.id)
            job = await jobs.get(snapshot, self._ground.job.id)
        if job is None:
            raise LeaseLost("The job was ended meanwhile.")
        self._ground.job = job
        if not open.entries:
            return job.status is not JobStatus.PROCESSING  # then it is stopped, not finished here
        wait = (open.due_at - self._ground.now()).total_seconds() if open.due_at else SHORTEST_NAP
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stopping.wait(), min(max(wait, 0.05), LONGEST_NAP))
        return True

    async def _give_back(self, entries: deque[Entry], visiting: set[asyncio.Task[Visited]]) -> None:
        for task in visiting:
            task.cancel()
        await asyncio.gather(*visiting, return_exceptions=True)
        visiting.clear()
        entries.clear()
        await self._leases.give_back()

    async def _count(self) -> None:
        """Brings the progress up to date before activation, which has to be short."""
        async with self._ground.db.transaction() as tx:
            await jobs.hold(tx, self._ground.place)
            await jobs.lock(tx, self._ground.job.id)
            await jobs.count(tx, self._ground.job.id)

    async def _settle(self, visited: list[Visited], found: list[Found], beyond: Sequence[str] = ()) -> None:
        ground, began = self._ground, time.monotonic()
        ground.job = await settle.settle(
            ground.db, ground.place, ground.job, visited, found, beyond, signature=ground.signature
        )
        self._links.remember(found)
        self._seeds.check(visited)
        log.debug(
            "batch settled",
            source=ground.source.label,
            job=ground.job.id,
            pages=len(visited),
            found=len(found),
            took_ms=round(1000 * (time.monotonic() - began)),
        )
        ground.on_progress(ground.job)
