"""Numbers, times and counts the way people say them."""

import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from kept.model.duration import parse_duration as parse_duration

if TYPE_CHECKING:
    from kept.model.generation import Tally

_ORDER = ("changed", "new", "moved", "gone", "failed", "skipped", "unchanged")


def duration(seconds: float) -> str:
    """'2.1 s', '3 min 20 s', '2 h 5 min'."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    return f"{minutes // 60} h {minutes % 60} min"


def ago(then: datetime, now: datetime | None = None) -> str:
    """'just now', '3 minutes ago' … for a week; then the date."""
    seconds = ((now or datetime.now(UTC)) - then).total_seconds()
    if seconds < 60:
        return "just now"
    for length, unit in ((3600, "minute"), (86400, "hour"), (7 * 86400, "day")):
        if seconds < length:
            number = int(seconds // {"minute": 60, "hour": 3600, "day": 86400}[unit])
            return f"{plural(number, unit)} ago"
    return f"{then.astimezone():%Y-%m-%d}"


def moment(then: datetime | None) -> str:
    """A time on the reader's own clock."""
    return f"{then.astimezone():%Y-%m-%d %H:%M}" if then else ""


def plural(number: int, word: str) -> str:
    return f"{number:,} {word}" if number == 1 else f"{number:,} {word}s"


def counts(tally: "Tally") -> str:
    """'12 changed, 1 new, 1,157 unchanged'; what did not happen is not mentioned."""
    numbers = tally.as_json()
    return ", ".join(f"{numbers[outcome]:,} {outcome}" for outcome in _ORDER if numbers[outcome])


def without_password(url: str) -> str:
    """A database's URL that may be shown."""
    try:
        password = urlsplit(url).password
    except ValueError:
        return url
    shown = url.replace(f":{password}@", ":***@", 1) if password else url
    return re.sub(r"(password=)[^&]*", r"\1***", shown)
