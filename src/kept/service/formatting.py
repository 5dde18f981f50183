"""Numbers, times and counts the way people say them, at every door where people read."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kept.model.generation import Tally

_COUNT_ORDER = ("changed", "new", "moved", "gone", "failed", "skipped", "unchanged")


def format_duration(seconds: float) -> str:
    """'2.1 s', '3 min 20 s', '2 h 5 min'."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_ago(then: datetime, now: datetime | None = None) -> str:
    """'just now', '3 minutes ago' … for a week; then the date."""
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    if seconds < 60:
        return "just now"
    for length, unit in ((3600, "minute"), (86400, "hour"), (7 * 86400, "day")):
        if seconds < length:
            number = int(seconds // {"minute": 60, "hour": 3600, "day": 86400}[unit])
            return f"{pluralize(number, unit)} ago"
    return f"{then.astimezone():%Y-%m-%d}"


def pluralize(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def format_counts(tally: "Tally") -> str:
    """'12 changed, 1 new, 1,157 unchanged'; what did not happen is not mentioned."""
    numbers = tally.as_json()
    return ", ".join(f"{numbers[outcome]:,} {outcome}" for outcome in _COUNT_ORDER if numbers[outcome])
