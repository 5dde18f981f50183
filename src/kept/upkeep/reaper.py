"""The reaper: gives the jobs of dead and silent workers back. Any process may run it, any number of them, at any time.

    dead       its process is gone, and it was one of this machine: at once
    silent     not heard of for two minutes by the database's clock; where each process has a clock of its own
               (SQLite), its heartbeats have stood still for as long by this reaper's own, which no step disturbs

A worker is buried only if it was not heard of since it was judged. Its job then waits again, or fails when its
retries are spent: both in one transaction, so a reaper that is killed leaves nothing half done.
"""

import time
from collections.abc import AsyncIterator, Callable
from datetime import timedelta

from kept.errors import StoreError
from kept.log import Log
from kept.model.nouns import dataclass
from kept.store import jobs
from kept.store.database import Database
from kept.store.jobs import Place
from kept.work import queue
from kept.work.worker import is_alive, this_host

log = Log(__name__)

AT_ONCE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Reaped:
    workers: int = 0
    jobs: int = 0  # that wait again, or have failed


class Reaper:
    """Keeps, from one pass to the next, when it last saw each worker's heart beat."""

    def __init__(
        self, silent_after: timedelta = timedelta(minutes=2), *, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._silent_after = silent_after
        self._clock = clock
        self._heard: dict[str, tuple[int, float]] = {}  # place -> its beats, and since when there were so many

    async def reap(self, db: Database) -> Reaped:
        """One pass."""
        workers = given_back = 0
        async for place in self._gone(db):
            try:
                async with db.transaction(durable=True) as tx:
                    if not await jobs.bury(tx, place):
                        continue  # it was heard of meanwhile
                    job = await queue.give_back(tx, place.job_id)
            except StoreError as error:  # the others are not to wait for this one
                log.warning("worker not reaped", worker=place.id, job=place.job_id, reason=str(error))
                continue
            workers, given_back = workers + 1, given_back + (job is not None)
            log.info("worker reaped", worker=place.id, name=place.name, job=place.job_id, status=job and job.status)
        return Reaped(workers=workers, jobs=given_back + await self._give_back_deserted(db))

    async def _gone(self, db: Database) -> AsyncIterator[Place]:
        """The places whose workers are dead or silent, page by page: no number of them keeps the rest waiting."""
        async with db.snapshot() as snapshot:
            here = await jobs.workers_on(snapshot, this_host())
        dead = {place.id for place in here if not is_alive(place)}
        for place in here:
            if place.id in dead:
                yield place
        seen, after = set[str](), None
        while True:
            async with db.snapshot() as snapshot:
                if db.one_clock:
                    page = await jobs.silent_workers(snapshot, self._silent_after, after=after, limit=AT_ONCE)
                else:
                    page = await jobs.workers(snapshot, after=after, limit=AT_ONCE)
            for place in page:
                seen.add(place.id)
                if place.id not in dead and (db.one_clock or self._stands_still(place)):
                    yield place
            if len(page) < AT_ONCE:
                break
            after = page[-1].id
        self._heard = {id: heard for id, heard in self._heard.items() if id in seen}

    def _stands_still(self, place: Place) -> bool:
        now = self._clock()
        beats, since = self._heard.get(place.id, (-1, now))
        if beats != place.beats:
            self._heard[place.id] = (place.beats, now)
            return False
        return now - since >= self._silent_after.total_seconds()

    async def _give_back_deserted(self, db: Database) -> int:
        """Jobs without any worker: there should be none, and if there is one it shall not wait for ever."""
        async with db.snapshot() as snapshot:
            deserted = await jobs.deserted(snapshot, limit=AT_ONCE)
        given_back = 0
        for job_id in deserted:
            async with db.transaction(durable=True) as tx:
                given_back += await queue.give_back(tx, job_id) is not None
        return given_back
