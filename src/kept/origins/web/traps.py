"""Recognises crawler traps by the URL alone. Pure.

A trap that shows in one URL has a reason (``why_trap``). One that shows only in the number of URLs is a family of
variants with a limit (``find_url_family``); the caller counts.
"""

import re
from dataclasses import dataclass

MAX_PATH_DEPTH = 30
MAX_PARAMETERS = 8
MAX_VARIANTS_BY_PARAMETERS = {1: 5_000, 2: 500}  # many pages by one parameter (?title=…) are usual, combinations not
MAX_COMBINATIONS = 100
MAX_DATED_VARIANTS = 1_000  # URLs that differ in digits only, with a year
MAX_CALENDAR_VARIANTS = 100

_SESSION_ID = re.compile(
    r"(?i);jsessionid=|/\([a-z]\([0-9a-z]{16,}\)\)/|"
    r"[?&](?:phpsessid|jsessionid|aspsessionid\w*|session_?id|sid|cfid|cftoken|oscsid|zenid)=[\w-]{8,}"
)
_REPEATED_PATH = re.compile(r"((?:/[^/]+){1,4}?)\1\1(?=/|\Z)")
_YEAR = re.compile(r"(?<!\d)(19|2[01])(\d\d)(?:[-/_.]?(?:0[1-9]|1[0-2]|[1-9](?!\d))(?!\d)|[0-1]\d[0-3]\d(?!\d)|(?!\d))")
_CALENDAR = re.compile(r"(?i)(?<![a-z])(?:i?cal|calend[ae]r|agenda|events?|month|week|day|date)(?![a-z])")
_DIGITS = re.compile(r"\d+")
_MAX_YEARS_AHEAD = 3


@dataclass(frozen=True, slots=True)
class UrlFamily:
    """A key that the variants of a page share, and how many of them are admitted."""

    key: str
    max_urls: int


def is_plain(url: str) -> bool:
    """Return whether a URL can be neither a trap nor a variant. A quick test, because most links are plain."""
    if "?" in url or ";" in url or "(" in url or "20" in url or "19" in url or "21" in url:
        return False
    parts = url.split("/")
    return len(parts) <= MAX_PATH_DEPTH and len(parts) - len(set(parts)) < 2


def why_trap(url: str, *, this_year: int) -> str | None:
    if _SESSION_ID.search(url):
        return "carries a session id"
    path = url.partition("?")[0]
    if path.count("/") - 2 > MAX_PATH_DEPTH:
        return f"deeper than {MAX_PATH_DEPTH} folders"
    if (repeated := _REPEATED_PATH.search(path, 8)) and any(map(str.isalpha, repeated[1])):
        return "its path repeats itself"
    if url.count("&") >= MAX_PARAMETERS:
        return "has too many parameters"
    year = _YEAR.search(url, 8)
    if year and int(year[1] + year[2]) > this_year + _MAX_YEARS_AHEAD and _CALENDAR.search(url):
        return "a calendar without end"
    return None


def find_url_family(url: str) -> UrlFamily | None:
    """Return the family of variants that a URL belongs to; None for a page of its own."""
    path, _, query = url.partition("?")
    if _YEAR.search(url, 8):
        is_calendar = _CALENDAR.search(url)
        return UrlFamily(_DIGITS.sub("0", url), MAX_CALENDAR_VARIANTS if is_calendar else MAX_DATED_VARIANTS)
    if query:
        names = sorted({parameter.partition("=")[0] for parameter in query.split("&")})
        return UrlFamily(f"{path}?{'&'.join(names)}", MAX_VARIANTS_BY_PARAMETERS.get(len(names), MAX_COMBINATIONS))
    return None
