"""The scheduler: enqueues the crawls that are due. One pass; any number of processes may run it.

A pass claims a run by moving the source's next run away from the time it has read, in one statement, so concurrent
passes enqueue it once. Runs that were missed while no scheduler ran become one run.
"""

import random
from dataclasses import dataclass
from datetime import datetime, timedelta

from kept.errors import InvalidInput
from kept.jobs import queue
from kept.log import Log
from kept.maintenance.next_run import Chance, SchedulePolicy, next_run, scheduled_mode
from kept.model.schedule import Schedule, parse_schedule
from kept.model.source import Source
from kept.store import gc, sources
from kept.store.database import Database, ReadableDatabase, current_time

log = Log(__name__)

BATCH_SIZE = 100
MARK_SECONDS = 60.0
_PASS_NAME = "schedules"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReport:
    requested: int = 0
    waiting: int = 0  # due while a crawl of the source was already running or paused


async def is_running(db: ReadableDatabase) -> bool:
    """Return whether a process obeyed the schedules of this database within the last minutes."""
    async with db.snapshot() as snapshot:
        return await gc.was_pass_started(snapshot, _PASS_NAME, seconds=3 * MARK_SECONDS)


async def enqueue_due_crawls(
    db: Database, policy: SchedulePolicy, *, now: datetime | None = None, chance: Chance = random.random
) -> ScheduleReport:
    """Enqueue a crawl of every source whose next run is due, by the database's clock."""
    requested = waiting = 0
    await _mark_running(db)
    while True:
        async with db.snapshot() as snapshot:
            at = now or await current_time(snapshot)
            due = await sources.list_due(snapshot, at, limit=BATCH_SIZE)
        for source in due:
            enqueued = await _enqueue_run(db, source, policy, at, chance)
            requested, waiting = requested + (enqueued is True), waiting + (enqueued is False)
        if len(due) < BATCH_SIZE:
            return ScheduleReport(requested=requested, waiting=waiting)


async def _mark_running(db: Database) -> None:
    """Note about once a minute that schedules are obeyed: see ``is_running``."""
    async with db.snapshot() as snapshot:
        if await gc.was_pass_started(snapshot, _PASS_NAME, seconds=MARK_SECONDS):
            return
    async with db.transaction() as tx:
        await gc.try_start_pass(tx, _PASS_NAME, min_interval=MARK_SECONDS)


async def _enqueue_run(
    db: Database, source: Source, policy: SchedulePolicy, now: datetime, chance: Chance
) -> bool | None:
    """Return whether a crawl was enqueued; None if another process claimed the run."""
    async with db.transaction(durable=True) as tx:
        schedule = _parse_or_none(source)
        following = await next_run(tx, source, schedule, policy, now=now, last=now, chance=chance) if schedule else None
        if following and following <= now:  # never twice in one pass
            following = now + timedelta(seconds=1)
        if not await sources.claim_run(tx, source, following) or schedule is None:
            return None
        mode = scheduled_mode(source, schedule, policy)
        job = await queue.enqueue_unless_running(tx, source.id, mode=mode)
    log.info("run due", source=source.label, mode=mode, job=job.id if job else None, next=str(following))
    return job is not None


def _parse_or_none(source: Source) -> Schedule | None:
    """Return the schedule, or None if it cannot be parsed: an invalid one must not keep others from running."""
    try:
        return parse_schedule(source.settings.schedule)
    except InvalidInput as error:
        log.warning("schedule unreadable", source=source.label, reason=str(error))
        return None
