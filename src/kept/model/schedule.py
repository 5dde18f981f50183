"""A schedule: when a source is refreshed without anybody asking."""

from datetime import UTC, datetime, timedelta
from typing import TypeAlias

from kept.errors import WrongCall
from kept.model.duration import parse_duration
from kept.model.nouns import dataclass

SHORTEST = timedelta(minutes=1)
LONGEST = timedelta(days=366)


@dataclass(frozen=True, slots=True)
class Every:
    """So much time after the last one."""

    interval: timedelta


@dataclass(frozen=True, slots=True)
class Cron:
    """At the times that five fields name, in UTC: no clock of a single machine decides, and no hour happens twice."""

    text: str

    def after(self, moment: datetime) -> datetime | None:
        """The first time after a moment; None: there is none."""
        from cronsim import CronSim

        return next(CronSim(self.text, moment.astimezone(UTC)), None)


@dataclass(frozen=True, slots=True)
class Adaptive:
    """As often as its pages have changed so far."""


Schedule: TypeAlias = Every | Cron | Adaptive


def parse_schedule(text: str) -> Schedule | None:
    """What '6h', '0 3 * * *' or 'auto' says; None: nothing does ('off', or an empty text). WrongCall for the rest."""
    words = text.split()
    if not words or words == ["off"]:
        return None
    if words == ["auto"]:
        return Adaptive()
    if len(words) == 5:
        return _cron(" ".join(words))
    try:
        interval = timedelta(seconds=parse_duration(text))
    except (WrongCall, OverflowError):
        raise WrongCall(_EXPECTED.format(text)) from None
    if not SHORTEST <= interval <= LONGEST:
        raise WrongCall(f"A schedule goes from every minute (1m) to every year (366d); '{text}' is outside of that.")
    return Every(interval)


_EXPECTED = "--schedule should be like 30m, 6h or 1d, five fields of cron ('0 3 * * *'), auto or off; it is '{}'."


def _cron(text: str) -> Cron:
    from cronsim import CronSimError

    schedule = Cron(text)
    try:
        never = schedule.after(datetime.now(UTC)) is None
    except CronSimError:
        raise WrongCall(_EXPECTED.format(text)) from None
    if never:
        raise WrongCall(f"There is no time like '{text}'.")
    return schedule
