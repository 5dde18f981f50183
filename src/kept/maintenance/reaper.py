"""The reaper: requeues the jobs of dead and silent workers. Any number of processes may run it at any time.

    dead       its process was on this machine and is gone: reaped at once
    silent     no heartbeat for two minutes by the database's clock. Without a shared clock (SQLite), the number of
               heartbeats has not changed for as long by this reaper's monotonic clock, which clock steps do not affect

A lease is revoked only if there was no heartbeat since the decision. Its job is requeued, or fails when its retries are
used up, in the same transaction, so a killed reaper leaves nothing half done.
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
    jobs: int = 0  # requeued or failed


class Reaper:
    """Remembers, from one pass to the next, the heartbeats of each worker."""

    def __init__(
        self, silent_after: timedelta = timedelta(minutes=2), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._silent_after = silent_after
        self._clock = clock
        self._last_beats: dict[str, tuple[int, float]] = {}  # lease id -> number of heartbeats, and since when

    async def reap(self, db: Database) -> ReapReport:
        """Run one pass."""
        workers = requeued = 0
        async for lease in self._find_dead_leases(db):
            try:
                async with db.transaction(durable=True) as tx:
                    if not await jobs.revoke_lease(tx, lease):
                        continue  # there was a heartbeat meanwhile
                    job = await queue.requeue_or_fail(tx, lease.job_id)
            except StoreError as error:  # the other leases must not wait for this one
                log.warning("worker not reaped", worker=lease.id, job=lease.job_id, reason=str(error))
                continue
            workers, requeued = workers + 1, requeued + (job is not None)
            log.info(
                "worker reaped", worker=lease.id, name=lease.worker_name, job=lease.job_id, status=job and job.status
            )
        return ReapReport(workers=workers, jobs=requeued + await self._requeue_stalled(db))

    async def _find_dead_leases(self, db: Database) -> AsyncIterator[Lease]:
        """Yield the leases of dead and silent workers, batch by batch."""
        async with db.snapshot() as snapshot:
            local = await jobs.leases_on_host(snapshot, this_host())
        dead = {lease.id for lease in local if not is_alive(lease)}
        for lease in local:
            if lease.id in dead:
                yield lease
        seen, after = set[str](), None
        while True:
            async with db.snapshot() as snapshot:
                if db.has_shared_clock:
                    batch = await jobs.list_stale_leases(snapshot, self._silent_after, after=after, limit=BATCH_SIZE)
                else:
                    batch = await jobs.list_leases(snapshot, after=after, limit=BATCH_SIZE)
            for lease in batch:
                seen.add(lease.id)
                if lease.id not in dead and (db.has_shared_clock or self._is_silent(lease)):
                    yield lease
            if len(batch) < BATCH_SIZE:
                break
            after = batch[-1].id
        self._last_beats = {id: beats for id, beats in self._last_beats.items() if id in seen}

    def _is_silent(self, lease: Lease) -> bool:
        now = self._clock()
        beats, since = self._last_beats.get(lease.id, (-1, now))
        if beats != lease.heartbeat_count:
            self._last_beats[lease.id] = (lease.heartbeat_count, now)
            return False
        return now - since >= self._silent_after.total_seconds()

    async def _requeue_stalled(self, db: Database) -> int:
        """Requeue jobs in processing without a lease. There should be none, but one must not wait for ever."""
        async with db.snapshot() as snapshot:
            stalled = await jobs.list_stalled(snapshot, limit=BATCH_SIZE)
        requeued = 0
        for job_id in stalled:
            async with db.transaction(durable=True) as tx:
                requeued += await queue.requeue_or_fail(tx, job_id) is not None
        return requeued
