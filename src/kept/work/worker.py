"""A worker: claims a job, walks it, keeps its place with a heartbeat, and leaves when it is done."""

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import cache
from pathlib import Path

import structlog

from kept.crawl import activate
from kept.crawl.engine import Walk
from kept.errors import LeaseLost, SourceUnavailable, StoreError, WrongCall
from kept.model.ids import new_id
from kept.model.job import CrawlJob
from kept.model.source import Source
from kept.store import jobs, sources
from kept.store.database import Database
from kept.store.jobs import Place

log = structlog.get_logger(__name__)

BEATS_MISSED = 6  # in a row: half of what the reaper waits for

MakeWalk = Callable[[Place, Source], Walk]


async def work_on(db: Database, job_id: str | None, make_walk: MakeWalk, *, heartbeat: float = 10.0) -> CrawlJob | None:
    """Claims a job (the one named, or the first that is due) and walks it as far as it goes; None: nothing was due."""
    async with db.transaction(durable=True) as tx:
        id = new_id()
        job = await jobs.claim(tx, worker=id, job=job_id)
        if job is None:
            return None
        place = Place(
            id=id,
            job_id=job.id,
            name=socket.gethostname(),
            host=this_host(),
            pid=os.getpid(),
            process_started=process_started(os.getpid()) or "",
            attempt=job.attempt,
        )
        await jobs.enter(tx, place)
        source = await sources.get(tx, job.source_id)
    if source is None:
        return await _leave(db, place)
    try:
        walk = make_walk(place, source)
        async with _beating(db, place, walk, heartbeat):
            result = await walk.run()
        log.info("walk ended", source=source.label, job=job.id, result=result)
    except (SourceUnavailable, WrongCall) as error:  # its settings may be wrong too: on this machine, by now
        await activate.fail(db, place, f"{error} Nothing was changed.")
    except LeaseLost as lost:
        log.warning("place lost", source=source.label, job=job.id, reason=str(lost))
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
    async with db.transaction() as tx:
        await jobs.leave(tx, place.id)
        await jobs.hand_back(tx, place.job_id)
        return await jobs.get(tx, place.job_id)


@asynccontextmanager
async def _beating(db: Database, place: Place, walk: Walk, every: float) -> AsyncIterator[None]:
    """Says again and again that this worker is alive, until it is done.

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
    """One that was replaced, or cannot say that it is alive, stops itself."""
    missed = 0
    while missed < BEATS_MISSED:
        with suppress(TimeoutError):
            await asyncio.wait_for(done.wait(), every)
        if done.is_set():
            return
        try:
            async with db.transaction() as tx:
                if not await jobs.beat(tx, place):
                    break
            missed = 0
        except StoreError as error:
            missed += 1
            log.warning("heartbeat missed", job=place.job_id, missed=missed, reason=str(error))
    walk.stop()


# Who this is, so that a process on the same machine can see that it is gone.


@cache
def this_host() -> str:
    """This machine, since it was last started."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
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
