"""When the next run of a schedule is, and how wide it looks."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kept.crawl.change_rate import RefreshBounds, change_samples, suggest_refresh_interval
from kept.model.job import CrawlMode
from kept.model.schedule import AdaptiveSchedule, CronSchedule, Schedule
from kept.model.source import Source
from kept.store import generations
from kept.store.database import Connection

MAX_JITTER = timedelta(minutes=10)
CRON_JITTER = timedelta(seconds=30)  # who names a time means it

Chance = Callable[[], float]  # from 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePolicy:
    """What holds for every schedule."""

    bounds: RefreshBounds = field(default_factory=RefreshBounds)  # of what is learned
    full_every: int = 10  # runs; 0: none of them is full


async def next_run(
    db: Connection,
    source: Source,
    schedule: Schedule,
    policy: SchedulePolicy,
    *,
    now: datetime,
    last: datetime | None,
    chance: Chance = random.random,
) -> datetime | None:
    """When the schedule asks for the next crawl, if the last was at ``last``; not before ``now``.

    A little later than planned, so that sources that were added together are not all crawled together.
    """
    if isinstance(schedule, CronSchedule):
        at = schedule.next_after(now)
        return at + CRON_JITTER * chance() if at else None
    interval = (
        await _learned_interval(db, source, policy) if isinstance(schedule, AdaptiveSchedule) else schedule.interval
    )
    return max(now, (last or now) + interval) + min(interval / 10, MAX_JITTER) * chance()


def scheduled_mode(source: Source, schedule: Schedule, policy: SchedulePolicy) -> CrawlMode:
    """How wide the next run looks. Where validators were found wrong, asking "has it changed?" is no use."""
    is_full = policy.full_every > 0 and (source.runs + 1) % policy.full_every == 0
    if is_full or source.validators_wrong_at:
        return CrawlMode.FULL
    return CrawlMode.QUICK if isinstance(schedule, AdaptiveSchedule) else CrawlMode.REFRESH


async def _learned_interval(db: Connection, source: Source, policy: SchedulePolicy) -> timedelta:
    return suggest_refresh_interval(change_samples(await generations.all(db, source.id)), policy.bounds)
