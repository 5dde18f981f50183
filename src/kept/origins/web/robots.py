"""robots.txt, by RFC 9309.

    2xx                       its rules (the first 500 KiB of it), unless matching them would take too long
    4xx, too many redirects   no rules: everything is allowed
    429, 5xx, no response     unknown: nothing is visited until it can be read; pages fail, they are not skipped

Rules are cached for a day. When they cannot be read again after that, the old ones still apply.
"""

import asyncio
import codecs
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from protego import Protego

from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, FailureKind, HttpResponse

MAX_BYTES = 500 * 1024
MAX_WILDCARDS = 10_000  # of all rules together; matching a URL against them takes some milliseconds
MAX_AGE = timedelta(hours=24)
MAX_REDIRECTS = 5
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 2.0, 300.0  # before an unreadable robots.txt is requested again


class RobotsRules:
    """The rules of one robots.txt for this crawler."""

    expires_at = float("inf")  # by the clock of the cache

    def __init__(self, text: str, agent: str) -> None:
        parsed = Protego.parse("\n".join(_join_groups(text.splitlines())))
        self._agent = agent
        # A file without rules need not be matched with each URL. (Misspelled rules count as well: "disallaw".)
        self._parsed = parsed if re.search("(?i)l[oa]w", text) else None
        self.sitemaps: tuple[str, ...] = tuple(dict.fromkeys(parsed.sitemaps))
        self.crawl_delay = parsed.crawl_delay(agent) or 0.0

    def allows(self, url: str) -> bool:
        return self._parsed is None or self._parsed.can_fetch(url, self._agent)


_AGENT_LINE = re.compile(r"(?i)user[- ]?agent\s*:?\s*([^\s#]*)")
_RULE_LINE = re.compile(r"(?i)(?:allow|disallow|dissallow|dissalow|disalow|diasllow|disallaw)\b")
_SITEMAP_LINE = re.compile(r"(?i)sitemap\b")
_DELAY_LINE = re.compile(r"(?i)crawl-?delay\b")


def _join_groups(lines: Sequence[str]) -> Iterator[str]:
    """Yield the lines without those that RFC 9309 does not know, which must not separate the agents of a group.

    Protego ends a group at any line that it does not know. A Crawl-delay between two agents comes after the rules.
    """
    delays: list[str] = []
    is_in_rules = False
    for line in (line.replace("\0", "").strip() for line in lines):
        if agent := _AGENT_LINE.match(line):
            if is_in_rules:
                yield from delays
                delays, is_in_rules = [], False
            yield f"user-agent: {agent[1]}"  # words after the name are no part of it
        elif _RULE_LINE.match(line):
            is_in_rules = True
            yield line
        elif _DELAY_LINE.match(line):
            delays.append(line)
        elif _SITEMAP_LINE.match(line):
            yield line
    yield from delays


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsUnreachable:
    """robots.txt cannot be read now. It will be requested again after ``retry_in``."""

    reason: str
    retry_in: timedelta


def parse_product_token(user_agent: str) -> str:
    """Return the name in a User-Agent that robots.txt addresses."""
    token = re.match(r"[A-Za-z_-]+", user_agent)
    return user_agent if token is None or token[0].lower() == "mozilla" else token[0]


def rules_from_response(response: HttpResponse | FailedRequest, agent: str) -> RobotsRules | str:
    """Return the rules that follow from a response, or why they are unknown."""
    if isinstance(response, FailedRequest):
        if response.kind is FailureKind.PERMANENT and response.status is not None:
            return RobotsRules("", agent)  # too many redirects count as "unavailable"
        return response.reason
    if 200 <= response.status < 300:
        text = decode_robots_txt(response.body)
        if text.count("*") + text.count("$") > MAX_WILDCARDS:
            return f"more than {MAX_WILDCARDS:,} wildcards"
        return RobotsRules(text, agent)
    if 400 <= response.status < 500 and response.status != 429:
        return RobotsRules("", agent)
    return f"status {response.status}"


def decode_robots_txt(body: bytes) -> str:
    """Decode UTF-8 as the standard requires, or UTF-16 with a byte order mark. Drops a line that was cut off."""
    if len(body) >= MAX_BYTES:
        body = body[: body.rfind(b"\n") + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace")
    return body.decode("utf-8-sig", "replace")


class RobotsCache:
    """The rules of the origins that one crawl visits, each read once a day."""

    def __init__(self, client: HttpClient, user_agent: str, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._agent = parse_product_token(user_agent)
        self._clock = clock
        self._cached: dict[str, _CachedRules] = {}

    async def get_rules(self, origin: str) -> RobotsRules | RobotsUnreachable:
        """Return the rules of ``https://host`` or ``https://host:port``."""
        cached = self._cached.get(origin)
        if cached is None:
            cached = self._cached[origin] = _CachedRules()
        async with cached.lock:  # many pages wait for one robots.txt
            if self._clock() >= cached.expires_at:
                await self._fetch(origin, cached)
        if cached.rules is not None:
            cached.rules.expires_at = cached.expires_at
            return cached.rules
        return RobotsUnreachable(
            reason=cached.reason, retry_in=timedelta(seconds=max(0.0, cached.expires_at - self._clock()))
        )

    async def _fetch(self, origin: str, cached: "_CachedRules") -> None:
        response = await self._client.get_following_redirects(
            f"{origin}/robots.txt",
            max_bytes=MAX_BYTES,
            wants_body=_is_success,
            truncate=True,
            max_redirects=MAX_REDIRECTS,
        )
        rules = rules_from_response(response, self._agent)
        if isinstance(rules, RobotsRules):
            cached.rules, cached.failures = rules, 0
            cached.expires_at = self._clock() + MAX_AGE.total_seconds()
        else:
            cached.reason = rules
            cached.expires_at = self._clock() + min(_MAX_RETRY_SECONDS, _FIRST_RETRY_SECONDS * 2**cached.failures)
            cached.failures += 1


class _CachedRules:
    def __init__(self) -> None:
        self.rules: RobotsRules | None = None
        self.reason = ""
        self.expires_at = float("-inf")
        self.failures = 0
        self.lock = asyncio.Lock()


def _is_success(status: int, headers: object) -> bool:
    return 200 <= status < 300
