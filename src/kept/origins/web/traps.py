"""Recognises crawler traps: endless families of generated URLs. Pure.

Some traps show in one URL (``why_trap``). Others show only while a site is crawled: calendars that link to the next
month for ever, parameters that multiply. Their URLs belong to a family (``find_url_family``), and the crawl counts how
long a family goes on (``kept.crawl.admission``). A number alone is never a sign: numbered pages, dated posts and
versions in paths are ordinary documentation, and however many of them other pages list, all are visited.
"""

import re

from kept.model.frontier import UrlFamily

TRAP_PREFIX = "trap: "
MAX_PATH_DEPTH = 30
MAX_PARAMETERS = 8
MAX_ROUNDS = 5_000  # pages in a row that only the one before them links to
MAX_CALENDAR_ROUNDS = 100
MAX_VARIANTS_BY_PARAMETERS = {1: None, 2: 2_000}  # one parameter numbers pages (?title=…), several multiply
MAX_COMBINATIONS = 500

_SESSION_ID = re.compile(
    r"(?i);jsessionid=|/\([a-z]\([0-9a-z]{16,}\)\)/|"
    r"[?&](?:phpsessid|jsessionid|aspsessionid\w*|session_?id|sid|cfid|cftoken|oscsid|zenid)=[\w-]{8,}"
)
_REPEATED_PATH = re.compile(r"((?:/[^/]+){1,4}?)\1\1(?=/|\Z)")
_YEAR = r"(?<!\d)(?:19|2[01])\d\d"
_COMPACT_MONTH = r"(?:0[1-9]|1[0-2])(?:[0-2]\d|3[01])?(?!\d)"
_DATE = re.compile(rf"{_YEAR}(?:[-/_.](?:0?[1-9]|1[0-2])(?!\d)|{_COMPACT_MONTH})")
_YEAR_OR_DATE = re.compile(rf"{_YEAR}(?:(?!\d)|{_COMPACT_MONTH})")
_CALENDAR = re.compile(r"(?i)(?<![a-z])(?:i?cal|calend[ae]r|agenda|events?|month|week|day|date)(?![a-z])")
_DIGITS = re.compile(r"\d+")


def is_plain(url: str) -> bool:
    """Return whether a URL can be neither a trap nor one of a family. A quick test, because most links are plain."""
    if "?" in url or ";" in url or "(" in url or "20" in url or "19" in url or "21" in url:
        return False
    parts = url.split("/")
    return len(parts) <= MAX_PATH_DEPTH and len(parts) - len(set(parts)) < 2


def why_trap(url: str) -> str | None:
    """Return why a URL alone shows that it is a trap, or None."""
    if _SESSION_ID.search(url):
        return f"{TRAP_PREFIX}carries a session id"
    path = url.partition("?")[0]
    if path.count("/") - 2 > MAX_PATH_DEPTH:
        return f"{TRAP_PREFIX}deeper than {MAX_PATH_DEPTH} folders"
    if (repeated := _REPEATED_PATH.search(path, 8)) and any(map(str.isalpha, repeated[1])):
        return f"{TRAP_PREFIX}its path repeats itself"
    if url.count("&") >= MAX_PARAMETERS:
        return f"{TRAP_PREFIX}has more than {MAX_PARAMETERS} parameters"
    return None


def find_url_family(url: str) -> UrlFamily | None:
    """Return the family of a URL that may be one of endlessly many; None for a page of its own."""
    start = url.find("/", 8)  # the port of a host is no year
    path, _, query = url.partition("?")
    if _CALENDAR.search(url, start) and _YEAR_OR_DATE.search(url, start):
        reason = f"{TRAP_PREFIX}a calendar that goes on for more than {MAX_CALENDAR_ROUNDS} pages in a row"
        return UrlFamily(key=_mask_digits(url, start), max_rounds=MAX_CALENDAR_ROUNDS, trap_reason=reason)
    if query:
        names = sorted({parameter.partition("=")[0] for parameter in query.split("&")})
        max_urls = MAX_VARIANTS_BY_PARAMETERS.get(len(names), MAX_COMBINATIONS)
        reason = f"more than {max_urls:,} combinations of {len(names)} parameters" if max_urls else _too_long()
        key = f"{path}?{'&'.join(names)}"
        return UrlFamily(key=key, max_rounds=MAX_ROUNDS, max_urls=max_urls, trap_reason=f"{TRAP_PREFIX}{reason}")
    if _DATE.search(url, start):
        return UrlFamily(key=_mask_digits(url, start), max_rounds=MAX_ROUNDS, trap_reason=f"{TRAP_PREFIX}{_too_long()}")
    return None


def _mask_digits(url: str, start: int) -> str:
    return url[:start] + _DIGITS.sub("0", url[start:])


def _too_long() -> str:
    return f"pages that go on for more than {MAX_ROUNDS:,} in a row"
