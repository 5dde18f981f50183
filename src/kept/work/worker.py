"""A worker: takes jobs as they come, walks them, keeps its places with heartbeats, and leaves when it is done.

    take      the first job that is due; if none is, a place in one that has enough open entries for another
    walk      as far as it goes (``crawl.engine``); meanwhile once a second: is it paused or ended, am I still in it?
    leave     a job that is not finished waits for the next worker

Heartbeats come from the event loop, not from a thread. Pages are read in processes of their own, so nothing here takes
the loop for long; and a loop that hangs all the same should be given up, which a thread beside it would prevent.
"""

import asyncio
import os
import socket
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import field
from functools import cache
from pathlib import Path

from kept.crawl import activate
from kept.crawl.engine import Walk
from kept.crawl.leases import LEASED_AT_ONCE
from kept.errors import LeaseLost, SourceUnavailable, StoreError, WrongCall
from kept.log import Log
from kept.model.ids import new_id
from kept.model.job import CrawlJob, JobStatus
from kept.model.nouns import dataclass
from kept.model.source import Source
from kept.store import jobs, sources
from kept.store.database import Database
from kept.store.jobs import Place
from kept.work import queue

log = Log(__name__)

BEATS_MISSED = 6  # in a row: half of what the reaper waits for
LOOK_SECONDS = 1.0  # so often a walk asks whether it is wanted
ENOUGH = 2 * LEASED_AT_ONCE  # open entries, for every worker that is there: then there is room for another
LEFT_ALONE_SECONDS = 30.0  # a job that was joined, and had no use for it

CALLS = "kept_jobs"  # the channel on which waiting jobs are called out
POLL_SECONDS = 1.0  # the net under it

MakeWalk = Callable[[Place, Source], Walk]


@dataclass(frozen=True, slots=True)
class Taken:
    """A job, and this worker's place in it."""

    job: CrawlJob
    place: Place
    source: Source | None


async def work_on(db: Database, job_id: str | None, make_walk: MakeWalk, *, heartbeat: float = 10.0) -> CrawlJob | None:
    """Claims a job (the one named, or the first that is due) and walks it as far as it goes; None: nothing was due."""
    taken = await _claim(db, Identity(), job_id)
    return await _walk(db, taken, make_walk, heartbeat) if taken else None


# A worker's life -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Identity:
    """Who a worker is. The name may be given again; the id is of one start of one process."""

    name: str = field(default_factory=socket.gethostname)
    id: str = field(default_factory=new_id)


class Worker:
    """Walks several jobs at once, until it is told to stop. A database that is away is waited for."""

    def __init__(
        self,
        db: Database,
        make_walk: MakeWalk,
        *,
        name: str | None = None,
        concurrency: int = 2,
        heartbeat: float = 10.0,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """``prepare`` is called in a thread the first time that there is nothing to do: the next walk begins sooner."""
        self._db = db
        self._make_walk = make_walk
        self._identity = Identity(name) if name else Identity()
        self._concurrency = concurrency
        self._heartbeat = heartbeat
        self._prepare = prepare
        self._walks: dict[str, Walk] = {}  # by place
        self._deserted: list[Place] = []  # left while the database was away; it has to be told
        self._left_alone: dict[str, float] = {}  # job -> until when it is not joined again
        self._away_since: float | None = None
        self.done = 0

    async def run(self, stop: asyncio.Event, *, grace: float = 8.0) -> None:
        """Works until ``stop`` is set; then hands back what it has within so many seconds."""
        log.info("worker started", worker=self._identity.id, name=self._identity.name, concurrency=self._concurrency)
        walking: set[asyncio.Task[None]] = set()
        stopping = asyncio.create_task(stop.wait())
        called: asyncio.Task[None] | None = None
        preparing: asyncio.Task[None] | None = None
        try:
            while not stop.is_set():
                while len(walking) < self._concurrency and (taken := await self._take()):
                    walking.add(asyncio.create_task(self._walk(taken)))
                if not walking and not preparing:
                    preparing = asyncio.create_task(asyncio.to_thread(self._prepare))
                called = called or asyncio.create_task(self._wait())
                done, _ = await asyncio.wait(
                    {*walking, called, stopping},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                walking -= done
                called = None if called in done else called
        finally:
            for walk in self._walks.values():
                walk.stop()
            if walking:
                await asyncio.wait(walking, timeout=grace)
            rest = {*walking, stopping, *([called] if called else [])}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, *([preparing] if preparing else []), return_exceptions=True)
            log.info("worker stopped", worker=self._identity.id, jobs=self.done)

    async def _take(self) -> Taken | None:
        """A job to walk; None if there is none, or the database is away."""
        try:
            while self._deserted:
                await _leave(self._db, self._deserted[-1])
                self._deserted.pop()
            now = time.monotonic()
            self._left_alone = {job: until for job, until in self._left_alone.items() if until > now}
            taken = await _claim(self._db, self._identity)
            taken = taken or await _join(self._db, self._identity, list(self._left_alone))
        except StoreError as error:
            if self._away_since is None:
                self._away_since = time.monotonic()
                log.warning("database away", worker=self._identity.id, reason=str(error))
            return None
        if self._away_since is not None:
            seconds = round(time.monotonic() - self._away_since, 1)
            log.warning("database back", worker=self._identity.id, seconds=seconds)
            self._away_since = None
        return taken

    async def _wait(self) -> None:
        """Until there may be something to do."""
        began = time.monotonic()
        try:
            if await self._db.wait(CALLS, POLL_SECONDS):
                return
        except StoreError:
            pass  # taking a job says so
        await asyncio.sleep(max(0.0, POLL_SECONDS - (time.monotonic() - began)))

    async def _walk(self, taken: Taken) -> None:
        place = taken.place

        def make_walk(place: Place, source: Source) -> Walk:
            walk = self._walks[place.id] = self._make_walk(place, source)
            return walk

        try:
            job = await _walk(self._db, taken, make_walk, self._heartbeat)
            self.done += bool(job and job.status not in _LIVE)
            if place.joined and job and job.status in _LIVE:
                self._left_alone[job.id] = time.monotonic() + LEFT_ALONE_SECONDS
        except StoreError as error:
            log.warning("walk interrupted", job=place.job_id, reason=str(error))
            self._deserted.append(place)
        except Exception as error:
            # A bug in one walk is no reason to leave the others. The job waits again, until its retries are spent.
            log.exception("walk failed", job=place.job_id)
            with suppress(StoreError):  # then the reaper does it
                async with self._db.transaction() as tx:
                    await jobs.leave(tx, place.id)
                    await queue.give_back(tx, place.job_id, f"a bug in Kept: {type(error).__name__}: {error}")
        finally:
            self._walks.pop(place.id, None)


_LIVE = (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PAUSED)


# One job -------------------------------------------------------------------------------------------------------


async def _claim(db: Database, identity: Identity, job_id: str | None = None) -> Taken | None:
    async with db.transaction(durable=True) as tx:
        job = await jobs.claim(tx, worker=identity.id, job=job_id)
        if job is None:
            return None
        place = _place(identity, job, joined=False)
        await jobs.enter(tx, place)
        return Taken(job, place, await sources.get(tx, job.source_id))


async def _join(db: Database, identity: Identity, but: list[str]) -> Taken | None:
    async with db.snapshot() as snapshot:  # most of the time there is none: nobody has to wait for that
        found = await jobs.joinable(snapshot, host=this_host(), pid=os.getpid(), enough=ENOUGH, but=but)
    if found is None:
        return None
    async with db.transaction(durable=True) as tx:
        job = await jobs.lock(tx, found)
        if job is None or job.status is not JobStatus.PROCESSING:
            return None
        place = _place(identity, job, joined=True)
        await jobs.enter(tx, place)
        return Taken(job, place, await sources.get(tx, job.source_id))


def _place(identity: Identity, job: CrawlJob, *, joined: bool) -> Place:
    return Place(
        id=new_id(),
        job_id=job.id,
        name=identity.name,
        host=this_host(),
        pid=os.getpid(),
        process_started=process_started(os.getpid()) or "",
        attempt=job.attempt,
        joined=joined,
    )


async def _walk(db: Database, taken: Taken, make_walk: MakeWalk, heartbeat: float) -> CrawlJob | None:
    """The job after this worker has left it. StoreError where the database went away: it may still have the place."""
    job, place, source = taken.job, taken.place, taken.source
    if source is None:
        return await _leave(db, place)
    facts = {"source": source.label, "job": job.id}
    log.info("walk began", **facts, joined=place.joined)
    try:
        walk = make_walk(place, source)
        async with _beating(db, place, walk, heartbeat):
            result = await walk.run()
        log.info("walk ended", **facts, result=result)
    except (SourceUnavailable, WrongCall) as error:  # its settings may be wrong too: on this machine, by now
        if place.joined:
            log.warning("cannot help", **facts, reason=str(error))
        else:
            with suppress(LeaseLost):  # somebody ended it sooner
                await activate.fail(db, place, f"{error} Nothing was changed.")
    except LeaseLost as lost:
        left = await _leave(db, place)
        if left and left.status in _LIVE:
            log.warning("place lost", **facts, reason=str(lost))
        return left
    except StoreError:
        with suppress(StoreError):  # where this fails too, the reaper does it
            await _leave(db, place)
        raise
    except asyncio.CancelledError:
        await asyncio.shield(_leave(db, place))
        raise
    return await _leave(db, place)


async def _leave(db: Database, place: Place) -> CrawlJob | None:
    """Gives the place up; a job that is not finished waits for the next worker."""
    async with db.transaction(durable=True) as tx:
        await jobs.leave(tx, place.id)
        await jobs.lock(tx, place.job_id)  # of two that leave at once, the second has to see that the first is gone
        await jobs.count(tx, place.job_id)
        await jobs.hand_back(tx, place.job_id)
        return await jobs.get(tx, place.job_id)


@asynccontextmanager
async def _beating(db: Database, place: Place, walk: Walk, every: float) -> AsyncIterator[None]:
    """Says again and again that this worker is alive, and asks whether it is wanted, until it is done.

    It is told to end, not cancelled: a transaction that is cancelled half-way may take the cancellation for its own.
    """
    done = asyncio.Event()
    beating = asyncio.create_task(_beat(db, place, walk, every, done))
    try:
        yield
    finally:
        done.set()
        await asyncio.shield(beating)


async def _beat(db: Database, place: Place, walk: Walk, every: float, done: asyncio.Event) -> None:
    """One that was replaced, or is not wanted any more, or cannot say that it is alive, stops itself."""
    heard = beaten = time.monotonic()
    while not done.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), min(LOOK_SECONDS, every))
            return
        now = time.monotonic()
        is_due = now - beaten >= every
        asking = asyncio.create_task(_ask(db, place, beat=is_due))
        await asyncio.wait({asking}, timeout=max(0.0, heard + BEATS_MISSED * every - now))
        if not asking.done():  # nobody answers at all
            log.warning("heartbeat missed", job=place.job_id, reason="the database hangs")
            walk.stop()
        try:
            status = await asking
            if status is not JobStatus.PROCESSING:
                walk.stop(status or JobStatus.PROCESSING)
                return
            heard, beaten = now, now if is_due else beaten
        except StoreError as error:
            log.warning("heartbeat missed", job=place.job_id, reason=str(error))
            if now - heard > BEATS_MISSED * every:
                walk.stop()
                return


async def _ask(db: Database, place: Place, *, beat: bool) -> JobStatus | None:
    """What the place's job has come to, None if it was lost; and that this worker is alive, when that is due."""
    async with db.snapshot() as snapshot:
        status = await jobs.status_at(snapshot, place)
    if status is JobStatus.PROCESSING and beat:
        async with db.transaction() as tx:
            await jobs.beat(tx, place)
    return status


# Who this is, so that a process on the same machine can see that it is gone. -----------------------------------


@cache
def this_host() -> str:
    """This machine, since it was last started; and the container, whose processes have numbers of their own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        boot += f"/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        boot = "unknown"
    return f"{socket.gethostname()}/{boot}"


def process_started(pid: int) -> str | None:
    """When a process of this machine was started; None if there is none with this number.

    Together with the number this names one process: numbers are given again.
    """
    if Path("/proc/self/stat").exists():
        try:
            state, *rest = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        except OSError:
            return None
        return None if state in "ZX" else rest[18]
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except PermissionError:
        pass
    return "unknown"


def is_alive(place: Place) -> bool:
    """Whether a worker of this machine is still running. A zombie is not: it waits only to be buried."""
    started = process_started(place.pid)
    return started is not None and started == place.process_started
