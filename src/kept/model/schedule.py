"""Schedules: when a source is refreshed by itself."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from kept.errors import InvalidInput
from kept.model.duration import parse_duration

MIN_INTERVAL = timedelta(minutes=1)
MAX_INTERVAL = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """A fixed time after the last crawl."""

    interval: timedelta


@dataclass(frozen=True, slots=True)
class CronSchedule:
    """The times of a cron expression of five fields, in UTC, which has no repeated or skipped hours."""

    expression: str

    def next_after(self, moment: datetime) -> datetime | None:
        """Return the first time after a moment, or None if there is none."""
        from cronsim import CronSim

        return next(CronSim(self.expression, moment.astimezone(UTC)), None)


@dataclass(frozen=True, slots=True)
class AdaptiveSchedule:
    """An interval that follows how often the pages have changed."""


Schedule: TypeAlias = IntervalSchedule | CronSchedule | AdaptiveSchedule


def parse_schedule(text: str) -> Schedule | None:
    """Parse '6h', '0 3 * * *' or 'auto'. Returns None for 'off' and an empty text; else raises InvalidInput."""
    words = text.split()
    if not words or words == ["off"]:
        return None
    if words == ["auto"]:
        return AdaptiveSchedule()
    if len(words) == 5:
        return _parse_cron(" ".join(words))
    try:
        interval = timedelta(seconds=parse_duration(text))
    except (InvalidInput, OverflowError):
        raise InvalidInput(_EXPECTED_MESSAGE.format(text)) from None
    if not MIN_INTERVAL <= interval <= MAX_INTERVAL:
        raise InvalidInput(f"A schedule goes from every minute (1m) to every year (366d); '{text}' is outside of that.")
    return IntervalSchedule(interval)


_EXPECTED_MESSAGE = (
    "--schedule should be like 30m, 6h or 1d, five fields of cron ('0 3 * * *'), auto or off; it is '{}'."
)


_CRON_FIELDS = "The five fields are minute, hour, day of the month, month and day of the week, in UTC."


def _parse_cron(text: str) -> CronSchedule:
    from cronsim import CronSimError

    schedule = CronSchedule(text)
    try:
        is_never = schedule.next_after(datetime.now(UTC)) is None
    except CronSimError as error:
        what = str(error) or "it is no cron expression"
        raise InvalidInput(f"'{text}': {what[0].lower()}{what[1:]}. {_CRON_FIELDS}") from None
    if is_never:
        raise InvalidInput(f"There is no time like '{text}'.")
    return schedule
