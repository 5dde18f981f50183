"""Durations and points in time, as users type them."""

import re
from datetime import datetime, timedelta

from kept.errors import InvalidInput

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def parse_duration(text: str) -> float:
    """Return the seconds of '90', '90s', '15m', '1h30m' or '2d'. Raises InvalidInput for anything else."""
    lowered = text.strip().lower()
    if not re.fullmatch(r"(?:\d+(?:\.\d+)?[smhd]\s*)+|\d+(?:\.\d+)?", lowered):
        raise InvalidInput(f"'{text}' is not a length of time. Say it like 90s, 15m, 1h30m or 2d.")
    if lowered[-1].isdigit():
        return float(lowered)
    return sum(float(number) * _UNITS[unit] for number, unit in re.findall(r"([\d.]+)([smhd])", lowered))


def format_short_duration(seconds: float) -> str:
    """Return the shortest text that parse_duration() reads as about this long: '30m', '6h', '3d'."""
    for unit in ("d", "h", "m"):
        if seconds >= 2 * _UNITS[unit] or (seconds >= _UNITS[unit] and seconds % _UNITS[unit] == 0):
            return f"{round(seconds / _UNITS[unit])}{unit}"
    return f"{round(seconds)}s"


def parse_since(text: str, now: datetime) -> datetime:
    """Return the time of '2026-11-01' or '2026-11-01T12:00' (local time without a zone), or of '2d': two days ago."""
    try:
        return datetime.fromisoformat(text.strip()).astimezone(now.tzinfo)
    except (ValueError, OverflowError):
        pass
    try:
        return now - timedelta(seconds=parse_duration(text))
    except (InvalidInput, OverflowError):
        raise InvalidInput(f"'{text}' is no moment. Say it like 2026-11-01, 2026-11-01T12:00 or 2d.") from None
