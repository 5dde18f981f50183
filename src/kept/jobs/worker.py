"""A worker: claims jobs, crawls them, keeps its leases alive with heartbeats, and releases them when it is done.

    claim     the first job that is due; if none is, join a running one that has enough open entries for another worker
    run       crawl it (``crawl.engine``); check once a second whether it was paused or ended, or the lease is lost
    release   a job that is not finished waits for the next worker

Heartbeats come from the event loop, not from a thread. Pages are read in other processes, so the loop is never busy for
long; a loop that hangs nevertheless should lose its leases, which heartbeats from a thread would prevent.
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
STATUS_POLL_SECONDS = 1.0  # how often a run checks its job's status
MIN_ENTRIES_TO_JOIN = 2 * LEASE_BATCH_SIZE  # open entries per worker, from which on another one may join
JOIN_COOLDOWN_SECONDS = 30.0  # for a job that was joined and had no work

JOBS_CHANNEL = "kept_jobs"  # new jobs are announced on this channel
POLL_SECONDS = 1.0  # in case an announcement is lost

MakeCrawlRun = Callable[[Lease, Source], CrawlRun]


@dataclass(frozen=True, slots=True)
class ClaimedJob:
    """A job with this worker's lease. The source is None if it was removed."""

    job: CrawlJob
    lease: Lease
    source: Source | None


async def claim_and_run(
    db: Database, job_id: str | None, make_run: MakeCrawlRun, *, heartbeat: float = 10.0
) -> CrawlJob | None:
    """Claim a job (the given one, or the first that is due) and crawl it. Returns None if nothing was due."""
    claimed = await _claim(db, WorkerIdentity(), job_id)
    return await _run_claimed(db, claimed, make_run, heartbeat) if claimed else None


# The worker ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WorkerIdentity:
    """A worker's name, which may be reused, and its id, which is unique to one start of one process."""

    name: str = field(default_factory=socket.gethostname)
    id: str = field(default_factory=new_id)


class Worker:
    """Runs several jobs at once until it is stopped. Waits while the database is unreachable."""

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
        """``prepare`` is called once, in a thread, when there is nothing to do, to speed up the next job."""
        self._db = db
        self._make_run = make_run
        self._identity = WorkerIdentity(name) if name else WorkerIdentity()
        self._concurrency = concurrency
        self._heartbeat = heartbeat
        self._prepare = prepare
        self._runs: dict[str, CrawlRun] = {}  # by lease id
        self._unreleased_leases: list[
            tuple[Lease, str]
        ] = []  # to be released, with the reason, when the database is back
        self._join_cooldowns: dict[str, float] = {}  # job id -> time until which it is not joined again
        self._database_down_since: float | None = None
        self.jobs_done = 0

    async def run(self, stop: asyncio.Event, *, grace: float = 8.0) -> None:
        """Work until ``stop`` is set, then release all jobs within ``grace`` seconds."""
        log.info("worker started", worker=self._identity.id, name=self._identity.name, concurrency=self._concurrency)
        running: set[asyncio.Task[None]] = set()
        stopping = asyncio.create_task(stop.wait())
        waiting: asyncio.Task[None] | None = None
        preparing: asyncio.Task[None] | None = None
        try:
            while not stop.is_set():
                while len(running) < self._concurrency and (claimed := await self._claim_or_join()):
                    running.add(asyncio.create_task(self._run_job(claimed)))
                if not running and not preparing:
                    preparing = asyncio.create_task(asyncio.to_thread(self._prepare))
                waiting = waiting or asyncio.create_task(self._wait_for_jobs())
                done, _ = await asyncio.wait({*running, waiting, stopping}, return_when=asyncio.FIRST_COMPLETED)
                running -= done
                waiting = None if waiting in done else waiting
        finally:
            for run in self._runs.values():
                run.stop()
            if running:
                await asyncio.wait(running, timeout=grace)
            rest = {*running, stopping, *([waiting] if waiting else [])}
            for task in rest:
                task.cancel()
            await asyncio.gather(*rest, *([preparing] if preparing else []), return_exceptions=True)
            log.info("worker stopped", worker=self._identity.id, jobs=self.jobs_done)

    async def _claim_or_join(self) -> ClaimedJob | None:
        """Return a job to run; None if there is none, or the database is unreachable."""
        try:
            while self._unreleased_leases:
                await _interrupt(self._db, *self._unreleased_leases[-1])
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
        """Wait for the announcement of a job, or for the next poll."""
        started = time.monotonic()
        try:
            if await self._db.wait_for_notification(JOBS_CHANNEL, POLL_SECONDS):
                return
        except StoreError:
            pass  # the next claim logs it
        await asyncio.sleep(max(0.0, POLL_SECONDS - (time.monotonic() - started)))

    async def _run_job(self, claimed: ClaimedJob) -> None:
        lease = claimed.lease

        def make_run(lease: Lease, source: Source) -> CrawlRun:
            run = self._runs[lease.id] = self._make_run(lease, source)
            return run

        try:
            job = await _run_claimed(self._db, claimed, make_run, self._heartbeat)
            self.jobs_done += bool(job and job.status.has_ended)
            if lease.joined_running_job and job and job.status.is_live:
                self._join_cooldowns[job.id] = time.monotonic() + JOIN_COOLDOWN_SECONDS
        except StoreError as error:
            log.warning("crawl interrupted", job=lease.job_id, reason=str(error))
            self._unreleased_leases.append((lease, str(error)))
            # Other workers may still run it. Each that joined again at once would fetch pages in vain.
            self._join_cooldowns[lease.job_id] = time.monotonic() + JOIN_COOLDOWN_SECONDS
        except Exception as error:
            # A bug in one run must not end the others. The job is pending again until its retries are used up.
            log.exception("crawl failed", job=lease.job_id)
            with suppress(StoreError):  # the reaper does it then
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
        lease = _make_lease(identity, job, joined=False)
        await jobs.acquire_lease(tx, lease)
        return ClaimedJob(job, lease, await sources.get(tx, job.source_id))


async def _join_job(db: Database, identity: WorkerIdentity, excluded_jobs: list[str]) -> ClaimedJob | None:
    async with db.snapshot() as snapshot:  # without a write lock: most of the time there is none
        job_id = await jobs.find_joinable(
            snapshot, host=this_host(), pid=os.getpid(), entries_per_worker=MIN_ENTRIES_TO_JOIN, excluded=excluded_jobs
        )
    if job_id is None:
        return None
    async with db.transaction(durable=True) as tx:
        job = await jobs.lock(tx, job_id)
        if job is None or job.status is not JobStatus.PROCESSING:
            return None
        lease = _make_lease(identity, job, joined=True)
        await jobs.acquire_lease(tx, lease)
        return ClaimedJob(job, lease, await sources.get(tx, job.source_id))


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
    """Crawl a claimed job, release the lease, and return the job after that.

    Raises StoreError if the database became unreachable; the lease may not be released then.
    """
    job, lease, source = claimed.job, claimed.lease, claimed.source
    if source is None:
        return await _release_lease(db, lease)
    facts = {"source": source.label, "job": job.id}
    log.info("crawl started", **facts, joined=lease.joined_running_job)
    try:
        run = make_run(lease, source)
        async with _heartbeats(db, lease, run, heartbeat):
            result = await run.run()
        log.info("crawl ended", **facts, result=result)
    except (SourceUnavailable, InvalidInput) as error:  # settings may be invalid on this machine only
        if lease.joined_running_job:
            log.warning("cannot join", **facts, reason=str(error))
        else:
            with suppress(LeaseLost):  # it was ended meanwhile
                await activate.fail_leased_job(db, lease, f"{error} Nothing was changed.")
    except LeaseLost as lost:
        released = await _release_lease(db, lease)
        if released and released.status.is_live:
            log.warning("lease lost", **facts, reason=str(lost))
        return released
    except StoreError as error:
        with suppress(StoreError):  # if this fails too, the worker or the reaper does it later
            await _interrupt(db, lease, str(error))
        raise
    except asyncio.CancelledError:
        await asyncio.shield(_release_lease(db, lease))
        raise
    return await _release_lease(db, lease)


async def _release_lease(db: Database, lease: Lease) -> CrawlJob | None:
    """Release a lease and return the job. A job that is not finished waits for the next worker."""
    async with db.transaction(durable=True) as tx:
        await jobs.release_lease(tx, lease.id)
        await jobs.lock(tx, lease.job_id)  # of two releases at once, the second has to see the first
        await jobs.update_progress(tx, lease.job_id)
        await jobs.requeue_if_unleased(tx, lease.job_id)
        return await jobs.get(tx, lease.job_id)


async def _interrupt(db: Database, lease: Lease, reason: str) -> None:
    """Release a lease whose run the database interrupted. The job is tried again later, or fails with this reason."""
    async with db.transaction(durable=True) as tx:
        await jobs.release_lease(tx, lease.id)
        await queue.requeue_interrupted(tx, lease.job_id, f"the crawl was interrupted: {reason}")


@asynccontextmanager
async def _heartbeats(db: Database, lease: Lease, run: CrawlRun, interval: float) -> AsyncIterator[None]:
    """Send heartbeats while the block runs, and stop the run when its job is paused, ended or lost.

    The heartbeats end by an event, not by cancellation: a cancelled transaction may be left half-way.
    """
    done = asyncio.Event()
    heartbeat_task = asyncio.create_task(_send_heartbeats(db, lease, run, interval, done))
    try:
        yield
    finally:
        done.set()
        await asyncio.shield(heartbeat_task)


async def _send_heartbeats(db: Database, lease: Lease, run: CrawlRun, interval: float, done: asyncio.Event) -> None:
    """Stop the run if the worker was replaced, its job is no longer processing, or no heartbeat could be sent."""
    last_answer = last_heartbeat = time.monotonic()
    while not done.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), min(STATUS_POLL_SECONDS, interval))
            return
        now = time.monotonic()
        is_due = now - last_heartbeat >= interval
        check = asyncio.create_task(_check_lease(db, lease, heartbeat=is_due))
        await asyncio.wait({check}, timeout=max(0.0, last_answer + MAX_MISSED_HEARTBEATS * interval - now))
        if not check.done():
            log.warning("heartbeat missed", job=lease.job_id, reason="the database hangs")
            run.stop()
        try:
            status = await check
            if status is not JobStatus.PROCESSING:
                run.stop(status or JobStatus.PROCESSING)
                return
            last_answer, last_heartbeat = now, now if is_due else last_heartbeat
        except StoreError as error:
            log.warning("heartbeat missed", job=lease.job_id, reason=str(error))
            if now - last_answer > MAX_MISSED_HEARTBEATS * interval:
                run.stop()
                return


async def _check_lease(db: Database, lease: Lease, *, heartbeat: bool) -> JobStatus | None:
    """Return the job's status, or None if the lease is lost. With ``heartbeat``, record that this worker is alive."""
    async with db.snapshot() as snapshot:
        status = await jobs.status_if_leased(snapshot, lease)
    if status is JobStatus.PROCESSING and heartbeat:
        async with db.transaction() as tx:
            await jobs.heartbeat(tx, lease)
    return status


# Process identity, so that another process of the same machine can see that a worker is gone ----------------------


@cache
def this_host() -> str:
    """Return an id of this machine since its last boot, and of the container, which has process ids of its own."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        boot += f"/{os.readlink('/proc/self/ns/pid')}"
    except OSError:
        boot = "unknown"
    return f"{socket.gethostname()}/{boot}"


def process_start_time(pid: int) -> str | None:
    """Return when a process of this machine was started, or None if there is none with this id.

    Ids are reused; together with the start time they identify one process.
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
    """Whether the worker that holds a lease is still running on this machine. A zombie is not."""
    started = process_start_time(lease.pid)
    return started is not None and started == lease.process_started
