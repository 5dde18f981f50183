"""Numbers, times and counts as people read them, in every interface."""

from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from kept.model.generation import Tally

_COUNT_ORDER = ("changed", "new", "moved", "gone", "failed", "skipped", "dead_links", "unchanged")


def format_duration(seconds: float) -> str:
    """Return '2.1 s', '3 min 20 s', '2 h 5 min'."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def format_ago(then: datetime, now: datetime | None = None) -> str:
    """Return 'just now', '3 minutes ago' …; after a week, the date."""
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    if seconds < 60:
        return "just now"
    for length, unit in ((3600, "minute"), (86400, "hour"), (7 * 86400, "day")):
        if seconds < length:
            number = int(seconds // {"minute": 60, "hour": 3600, "day": 86400}[unit])
            return f"{pluralize(number, unit)} ago"
    return f"{then.astimezone():%Y-%m-%d}"


def format_local_time(then: datetime | None) -> str:
    """Return a time in the local time zone, or nothing."""
    return f"{then.astimezone():%Y-%m-%d %H:%M}" if then else ""


def pluralize(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def format_counts(tally: "Tally") -> str:
    """Return '12 changed, 1 new, 1,157 unchanged', without zeros."""
    numbers = tally.as_json()
    return ", ".join(format_count(outcome, numbers[outcome]) for outcome in _COUNT_ORDER if numbers[outcome])


def format_count(outcome: str, number: int) -> str:
    """Return '12 changed', '1 dead link'."""
    return pluralize(number, "dead link") if outcome == "dead_links" else f"{number:,} {outcome}"
