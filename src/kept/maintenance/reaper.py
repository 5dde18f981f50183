"""The reaper: gives the jobs of dead and silent workers back. Any process may run it, any number of them, at any time.

    dead       its process is gone, and it was one of this machine: at once
    silent     not heard of for two minutes by the database's clock; where each process has a clock of its own
               (SQLite), its heartbeats have stood still for as long by this reaper's own, which no step disturbs

A worker is buried only if it was not heard of since it was judged. Its job then waits again, or fails when its
retries are spent: both in one transaction, so a reaper that is killed leaves nothing half done.
"""

import time
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from datetime import timedelta

from kept.errors import StoreError
from kept.jobs import queue
from kept.jobs.worker import is_alive, this_host
from kept.log import Log
from kept.model.job import Lease
from kept.store import jobs
from kept.store.database import Database

log = Log(__name__)

BATCH_SIZE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ReapReport:
    workers: int = 0
    jobs: int = 0  # that wait again, or have failed


class Reaper:
    """Keeps, from one pass to the next, when it last saw each worker's heart beat."""

    def __init__(
        self, silent_after: timedelta = timedelta(minutes=2), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._silent_after = silent_after
        self._clock = clock
        self._last_beats: dict[str, tuple[int, float]] = {}  # place -> its beats, and since when there were so many

    async def reap(self, db: Database) -> ReapReport:
        """One pass."""
        workers = requeued = 0
        async for place in self._find_dead_leases(db):
            try:
                async with db.transaction(durable=True) as tx:
                    if not await jobs.revoke_lease(tx, place):
                        continue  # it was heard of meanwhile
                    job = await queue.requeue_or_fail(tx, place.job_id)
            except StoreError as error:  # the others are not to wait for this one
                log.warning("worker not reaped", worker=place.id, job=place.job_id, reason=str(error))
                continue
            workers, requeued = workers + 1, requeued + (job is not None)
            log.info(
                "worker reaped", worker=place.id, name=place.worker_name, job=place.job_id, status=job and job.status
            )
        return ReapReport(workers=workers, jobs=requeued + await self._requeue_stalled(db))

    async def _find_dead_leases(self, db: Database) -> AsyncIterator[Lease]:
        """The places whose workers are dead or silent, page by page: no number of them keeps the rest waiting."""
        async with db.snapshot() as snapshot:
            here = await jobs.leases_on_host(snapshot, this_host())
        dead = {place.id for place in here if not is_alive(place)}
        for place in here:
            if place.id in dead:
                yield place
        seen, after = set[str](), None
        while True:
            async with db.snapshot() as snapshot:
                if db.has_shared_clock:
                    page = await jobs.list_stale_leases(snapshot, self._silent_after, after=after, limit=BATCH_SIZE)
                else:
                    page = await jobs.list_leases(snapshot, after=after, limit=BATCH_SIZE)
            for place in page:
                seen.add(place.id)
                if place.id not in dead and (db.has_shared_clock or self._is_silent(place)):
                    yield place
            if len(page) < BATCH_SIZE:
                break
            after = page[-1].id
        self._last_beats = {id: heard for id, heard in self._last_beats.items() if id in seen}

    def _is_silent(self, lease: Lease) -> bool:
        now = self._clock()
        beats, since = self._last_beats.get(lease.id, (-1, now))
        if beats != lease.heartbeat_count:
            self._last_beats[lease.id] = (lease.heartbeat_count, now)
            return False
        return now - since >= self._silent_after.total_seconds()

    async def _requeue_stalled(self, db: Database) -> int:
        """Jobs without any worker: there should be none, and if there is one it shall not wait for ever."""
        async with db.snapshot() as snapshot:
            deserted = await jobs.list_stalled(snapshot, limit=BATCH_SIZE)
        requeued = 0
        for job_id in deserted:
            async with db.transaction(durable=True) as tx:
                requeued += await queue.requeue_or_fail(tx, job_id) is not None
        return requeued
