"""The scheduler: asks for the crawls that are due. One pass; any process may run it, any number of them.

A run belongs to whoever moves the source's next run away from the moment that was seen: one statement, so two passes
at once ask once. Runs that were missed while nobody looked are one run.
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
from kept.store import sources
from kept.store.database import Database, current_time

log = Log(__name__)

BATCH_SIZE = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class ScheduleReport:
    requested: int = 0
    waiting: int = 0  # was due while a crawl of the source was running or paused already


async def enqueue_due_crawls(
    db: Database, policy: SchedulePolicy, *, now: datetime | None = None, chance: Chance = random.random
) -> ScheduleReport:
    """Asks for a crawl of every source whose schedule says so, by the database's clock."""
    requested = waiting = 0
    while True:
        async with db.snapshot() as snapshot:
            at = now or await current_time(snapshot)
            due = await sources.list_due(snapshot, at, limit=BATCH_SIZE)
        for source in due:
            asked = await _enqueue_run(db, source, policy, at, chance)
            requested, waiting = requested + (asked is True), waiting + (asked is False)
        if len(due) < BATCH_SIZE:
            return ScheduleReport(requested=requested, waiting=waiting)


async def _enqueue_run(
    db: Database, source: Source, policy: SchedulePolicy, now: datetime, chance: Chance
) -> bool | None:
    """Whether a crawl was asked for; None: this run is somebody else's."""
    async with db.transaction(durable=True) as tx:
        planned = _parse_or_none(source)
        following = await next_run(tx, source, planned, policy, now=now, last=now, chance=chance) if planned else None
        if following and following <= now:  # never twice in one pass
            following = now + timedelta(seconds=1)
        if not await sources.claim_run(tx, source, following) or planned is None:
            return None
        mode = scheduled_mode(source, planned, policy)
        asked = await queue.enqueue_unless_running(tx, source.id, mode=mode)
    log.info("run due", source=source.label, mode=mode, job=asked.id if asked else None, next=str(following))
    return asked is not None


def _parse_or_none(source: Source) -> Schedule | None:
    """A schedule that nobody can read any more ends; it must not keep the others from running."""
    try:
        return parse_schedule(source.settings.schedule)
    except InvalidInput as error:
        log.warning("schedule unreadable", source=source.label, reason=str(error))
        return None
