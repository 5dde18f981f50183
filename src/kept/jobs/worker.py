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
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

from kept.crawl import activate
from kept.crawl.engine import CrawlRun
from kept.crawl.entry_leases import LEASE_BATCH_SIZE
from kept.errors import InvalidInput, LeaseLost, SourceUnavailable, StoreError
from kept.jobs import queue
from kept.log import Log
from kept.model.ids import new_id
from kept.model.job import CrawlJob, JobStatus, Lease
from kept.model.source import Source
from kept.store import jobs, sources
from kept.store.database import Database

log = Log(__name__)

MAX_MISSED_HEARTBEATS = 6  # in a row: half of what the reaper waits for
STATUS_POLL_SECONDS = 1.0  # so often a walk asks whether it is wanted
MIN_ENTRIES_TO_JOIN = (
    2 * LEASE_BATCH_SIZE
)  # open entries, for every worker that is there: then there is room for another
JOIN_COOLDOWN_SECONDS = 30.0  # a job that was joined, and had no use for it

JOBS_CHANNEL = "kept_jobs"  # the channel on which waiting jobs are called out
POLL_SECONDS = 1.0  # the net under it

MakeCrawlRun = Callable[[Lease, Source], CrawlRun]


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job, and this worker's place in it."""

    job: CrawlJob
    lease: Lease
    source: Source | None


async def claim_and_run(
    db: Database, job_id: str | None, make_run: MakeCrawlRun, *, heartbeat: float = 10.0
) -> CrawlJob | None:
    """Claims a job (the one named, or the first that is due) and walks it as far as it goes; None: nothing was due."""
    claimed = await _claim(db, WorkerIdentity(), job_id)
    return await _run_claimed(db, claimed, make_run, heartbeat) if claimed else None


# A worker's life -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """Who a worker is. The name may be given again; the id is of one start of one process."""

    name: str = field(default_factory=socket.gethostname)
    id: str = field(default_factory=new_id)


class Worker:
    """Walks several jobs at once, until it is told to stop. A database that is away is waited for."""

    def __init__(
        self,
        db: Database,
        make_run: MakeCrawlRun,
        *,
        name: str | None = None,
        concurrency: int = 2,
        heartbeat: float = 10.0,
        prepare: Callable[[], None] = lambda: None,
    ) -> None:
        """``prepare`` is called in a thread the first time that there is nothing to do: the next walk begins sooner."""
        self._db = db
        self._make_run = make_run
        self._identity = WorkerIdentity(name) if name else WorkerIdentity()
        self._concurrency = concurrency
        self._heartbeat = heartbeat
        self._prepare = prepare
        self._runs: dict[str, CrawlRun] = {}  # by place
        self._unreleased_leases: list[Lease] = []  # left while the database was away; it has to be told
        self._join_cooldowns: dict[str, float] = {}  # job -> until when it is not joined again
        self._database_down_since: float | None = None
        self.jobs_done = 0

    async def run(self, stop: asyncio.Event, *, grace: float = 8.0) -> None:
        """Works until ``stop`` is set; then hands back what it has within so many seconds."""
        log.info("worker started", worker=self._identity.id, name=self._identity.name, concurrency=self._concurrency)
        running: set[asyncio.Task[None]] = set()
        stopping = asyncio.create_task(stop.wait())
        called: asyncio.Task[None] | None = None
        preparing: asyncio.Task[None] | None = None
        try:
            while not stop.is_set():
                while len(running) < self._concurrency and (taken := await self._claim_or_join()):
                    running.add(asyncio.create_task(self._run_job(taken)))
                if not running and not preparing:
                    preparing = asyncio.create_task(asyncio.to_thread(self._prepare))
                called = called or asyncio.create_task(self._wait_for_jobs())
                done, _ = await asyncio.wait(
                    {*running, called, stopping},
                    return_when=asyncio.FIRST_COMPLETED,
                )
                running -= done
                called = None if called in done else called
        finally:
            for walk in self._runs.values():
                walk.stop()
            if running:
                await asyncio.wait(running, timeout=grace)
            rest = {*running, stopping, *([called] if called else [])}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, *([preparing] if preparing else []), return_exceptions=True)
            log.info("worker stopped", worker=self._identity.id, jobs=self.jobs_done)

    async def _claim_or_join(self) -> ClaimedJob | None:
        """A job to walk; None if there is none, or the database is away."""
        try:
            while self._unreleased_leases:
                await _release_lease(self._db, self._unreleased_leases[-1])
                self._unreleased_leases.pop()
            now = time.monotonic()
            self._join_cooldowns = {job: until for job, until in self._join_cooldowns.items() if until > now}
            claimed = await _claim(self._db, self._identity)
            claimed = claimed or await _join_job(self._db, self._identity, list(self._join_cooldowns))
        except StoreError as error:
            if self._database_down_since is None:
                self._database_down_since = time.monotonic()
                log.warning("database away", worker=self._identity.id, reason=str(error))
            return None
        if self._database_down_since is not None:
            seconds = round(time.monotonic() - self._database_down_since, 1)
            log.warning("database back", worker=self._identity.id, seconds=seconds)
            self._database_down_since = None
        return claimed

    async def _wait_for_jobs(self) -> None:
        """Until there may be something to do."""
        began = time.monotonic()
        try:
            if await self._db.wait_for_notification(JOBS_CHANNEL, POLL_SECONDS):
                return
        except StoreError:
            pass  # taking a job says so
        await asyncio.sleep(max(0.0, POLL_SECONDS - (time.monotonic() - began)))

    async def _run_job(self, claimed: ClaimedJob) -> None:
        lease = claimed.lease

        def make_run(place: Lease, source: Source) -> CrawlRun:
            walk = self._runs[place.id] = self._make_run(place, source)
            return walk

        try:
            job = await _run_claimed(self._db, claimed, make_run, self._heartbeat)
            self.jobs_done += bool(job and job.status.has_ended)
            if lease.joined_running_job and job and job.status.is_live:
                self._join_cooldowns[job.id] = time.monotonic() + JOIN_COOLDOWN_SECONDS
        except StoreError as error:
            log.warning("walk interrupted", job=lease.job_id, reason=str(error))
            self._unreleased_leases.append(lease)
        except Exception as error:
            # A bug in one walk is no reason to leave the others. The job waits again, until its retries are spent.
            log.exception("walk failed", job=lease.job_id)
            with suppress(StoreError):  # then the reaper does it
                async with self._db.transaction() as tx:
                    await jobs.release_lease(tx, lease.id)
                    await queue.requeue_or_fail(tx, lease.job_id, f"a bug in Kept: {type(error).__name__}: {error}")
        finally:
            self._runs.pop(lease.id, None)


# One job -------------------------------------------------------------------------------------------------------


async def _claim(db: Database, identity: WorkerIdentity, job_id: str | None = None) -> ClaimedJob | None:
    async with db.transaction(durable=True) as tx:
        job = await jobs.claim(tx, worker=identity.id, job=job_id)
        if job is None:
            return None
        place = _make_lease(identity, job, joined=False)
        await jobs.acquire_lease(tx, place)
        return ClaimedJob(job, place, await sources.get(tx, job.source_id))


async def _join_job(db: Database, identity: WorkerIdentity, excluded_jobs: list[str]) -> ClaimedJob | None:
    async with db.snapshot() as snapshot:  # most of the time there is none: nobody has to wait for that
        found = await jobs.find_joinable(
            snapshot, host=this_host(), pid=os.getpid(), entries_per_worker=MIN_ENTRIES_TO_JOIN, excluded=excluded_jobs
        )
    if found is None:
        return None
    async with db.transaction(durable=True) as tx:
        job = await jobs.lock(tx, found)
        if job is None or job.status is not JobStatus.PROCESSING:
            return None
        place = _make_lease(identity, job, joined=True)
        await jobs.acquire_lease(tx, place)
        return ClaimedJob(job, place, await sources.get(tx, job.source_id))


def _make_lease(identity: WorkerIdentity, job: CrawlJob, *, joined: bool) -> Lease:
    return Lease(
        id=new_id(),
        job_id=job.id,
        worker_name=identity.name,
        host=this_host(),
        pid=os.getpid(),
        process_started=process_start_time(os.getpid()) or "",
        attempt=job.attempt,
        joined_running_job=joined,
    )


async def _run_claimed(db: Database, claimed: ClaimedJob, make_run: MakeCrawlRun, heartbeat: float) -> CrawlJob | None:
    """The job after this worker has left it. StoreError where the database went away: it may still have the place."""
    job, lease, source = claimed.job, claimed.lease, claimed.source
    if source is None:
        return await _release_lease(db, lease)
    facts = {"source": source.label, "job": job.id}
    log.info("walk began", **facts, joined=lease.joined_running_job)
    try:
        run = make_run(lease, source)
        async with _heartbeats(db, lease, run, heartbeat):
            result = await run.run()
        log.info("walk ended", **facts, result=result)
    except (SourceUnavailable, InvalidInput) as error:  # its settings may be wrong too: on this machine, by now
        if lease.joined_running_job:
            log.warning("cannot help", **facts, reason=str(error))
        else:
            with suppress(LeaseLost):  # somebody ended it sooner
                await activate.fail_leased_job(db, lease, f"{error} Nothing was changed.")
    except LeaseLost as lost:
        left = await _release_lease(db, lease)
        if left and left.status.is_live:
            log.warning("place lost", **facts, reason=str(lost))
        return left
    except StoreError:
        with suppress(StoreError):  # where this fails too, the reaper does it
            await _release_lease(db, lease)
        raise
    except asyncio.CancelledError:
        await asyncio.shield(_release_lease(db, lease))
        raise
    return await _release_lease(db, lease)


async def _release_lease(db: Database, lease: Lease) -> CrawlJob | None:
    """Gives the place up; a job that is not finished waits for the next worker."""
    async with db.transaction(durable=True) as tx:
        await jobs.release_lease(tx, lease.id)
        await jobs.lock(tx, lease.job_id)  # of two that leave at once, the second has to see that the first is gone
        await jobs.update_progress(tx, lease.job_id)
        await jobs.requeue_if_unleased(tx, lease.job_id)
        return await jobs.get(tx, lease.job_id)


@asynccontextmanager
async def _heartbeats(db: Database, lease: Lease, run: CrawlRun, every: float) -> AsyncIterator[None]:
    """Says again and again that this worker is alive, and asks whether it is wanted, until it is done.

    It is told to end, not cancelled: a transaction that is cancelled half-way may take the cancellation for its own.
    """
    done = asyncio.Event()
    heartbeat_task = asyncio.create_task(_send_heartbeats(db, lease, run, every, done))
    try:
        yield
    finally:
        done.set()
        await asyncio.shield(heartbeat_task)


async def _send_heartbeats(db: Database, lease: Lease, run: CrawlRun, every: float, done: asyncio.Event) -> None:
    """One that was replaced, or is not wanted any more, or cannot say that it is alive, stops itself."""
    heard = beaten = time.monotonic()
    while not done.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), min(STATUS_POLL_SECONDS, every))
            return
        now = time.monotonic()
        is_due = now - beaten >= every
        asking = asyncio.create_task(_check_lease(db, lease, heartbeat=is_due))
        await asyncio.wait({asking}, timeout=max(0.0, heard + MAX_MISSED_HEARTBEATS * every - now))
        if not asking.done():  # nobody answers at all
            log.warning("heartbeat missed", job=lease.job_id, reason="the database hangs")
            run.stop()
        try:
            status = await asking
            if status is not JobStatus.PROCESSING:
                run.stop(status or JobStatus.PROCESSING)
                return
            heard, beaten = now, now if is_due else beaten
        except StoreError as error:
            log.warning("heartbeat missed", job=lease.job_id, reason=str(error))
            if now - heard > MAX_MISSED_HEARTBEATS * every:
                run.stop()
                return


async def _check_lease(db: Database, lease: Lease, *, heartbeat: bool) -> JobStatus | None:
    """What the place's job has come to, None if it was lost; and that this worker is alive, when that is due."""
    async with db.snapshot() as snapshot:
        status = await jobs.status_if_leased(snapshot, lease)
    if status is JobStatus.PROCESSING and heartbeat:
        async with db.transaction() as tx:
            await jobs.heartbeat(tx, lease)
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


def process_start_time(pid: int) -> str | None:
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


def is_alive(lease: Lease) -> bool:
    """Whether a worker of this machine is still running. A zombie is not: it waits only to be buried."""
    started = process_start_time(lease.pid)
    return started is not None and started == lease.process_started
