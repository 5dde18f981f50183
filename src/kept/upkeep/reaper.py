"""The reaper: gives the jobs of dead and silent workers back. One pass; any process may run it, any number of them."""

from dataclasses import dataclass
from datetime import timedelta

from kept.crawl import activate
from kept.model.job import JobStatus
from kept.store import jobs
from kept.store.database import Database
from kept.store.jobs import Place
from kept.work.worker import is_alive, this_host


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    workers: int = 0


async def reap(db: Database, *, silent_after: timedelta = timedelta(minutes=2)) -> Reaped:
    """Takes dead workers of this machine, and workers that were silent for too long, from their jobs."""
    async with db.snapshot() as snapshot:
        dead = [place for place in await jobs.workers_on(snapshot, this_host()) if not is_alive(place)]
        silent = await jobs.silent_workers(snapshot, silent_after)
    gone = {place.id: place for place in [*dead, *silent]}
    for place in gone.values():
        await _bury(db, place, silent_after)
    return Reaped(workers=len(gone))


async def _bury(db: Database, place: Place, silent_after: timedelta) -> None:
    async with db.transaction(durable=True) as tx:
        still_silent = {one.id for one in await jobs.silent_workers(tx, silent_after)}
        if place.id not in still_silent and (place.host != this_host() or is_alive(place)):
            return  # it was heard of meanwhile
        await jobs.leave(tx, place.id)
        job = await jobs.reap(tx, place.job_id)
        if job and job.status is JobStatus.FAILED:
            await activate.give_up(tx, job, job.error or "worker timed out")
