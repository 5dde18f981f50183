"""Computes when a schedule runs next, and in which mode."""

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
CRON_JITTER = timedelta(seconds=30)  # short: the user named a time

Chance = Callable[[], float]  # from 0 to 1


@dataclass(frozen=True, slots=True, kw_only=True)
class SchedulePolicy:
    """The settings that hold for every schedule."""

    bounds: RefreshBounds = field(default_factory=RefreshBounds)  # of adaptive intervals
    full_every: int = 10  # runs; 0: never


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
    """Return the time of the next crawl after the one at ``last``, not before ``now``; None if there is none.

    It has some jitter, so that sources that were added together are not all crawled together.
    """
    if isinstance(schedule, CronSchedule):
        at = schedule.next_after(now)
        return at + CRON_JITTER * chance() if at else None
    interval = (
        await _learned_interval(db, source, policy) if isinstance(schedule, AdaptiveSchedule) else schedule.interval
    )
    return max(now, (last or now) + interval) + min(interval / 10, MAX_JITTER) * chance()


def scheduled_mode(source: Source, schedule: Schedule, policy: SchedulePolicy) -> CrawlMode:
    """Return the mode of the next run. It is full where validators were found wrong: "not modified" means nothing."""
    is_full = policy.full_every > 0 and (source.runs + 1) % policy.full_every == 0
    if is_full or source.validators_wrong_at:
        return CrawlMode.FULL
    return CrawlMode.QUICK if isinstance(schedule, AdaptiveSchedule) else CrawlMode.REFRESH


async def _learned_interval(db: Connection, source: Source, policy: SchedulePolicy) -> timedelta:
    return suggest_refresh_interval(change_samples(await generations.all(db, source.id)), policy.bounds)
