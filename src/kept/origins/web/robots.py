"""What a site asks of crawlers: robots.txt, as RFC 9309 has it.

    2xx                       its rules (the first 500 KiB of it), unless a look at them for each page would take long
    4xx, too many redirects   no rules: everything is allowed
    429, 5xx, no answer       unknown: nothing is visited until it can be read; pages fail, they are not skipped

Rules are kept for a day. When they cannot be read again after that, the old ones go on counting.
"""

import asyncio
import codecs
import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from time import monotonic

from protego import Protego

from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, FailureKind, HttpResponse

MAX_BYTES = 500 * 1024
MAX_WILDCARDS = 10_000  # of all rules together: each is looked for in every URL, some milliseconds in all
MAX_AGE = timedelta(hours=24)
MAX_REDIRECTS = 5
_FIRST_RETRY_SECONDS, _MAX_RETRY_SECONDS = 2.0, 300.0  # seconds, before an unreadable robots.txt is asked for again


class RobotsRules:
    """What one robots.txt lets us visit."""

    expires_at = float("inf")  # by the clock of whoever keeps them

    def __init__(self, text: str, agent: str) -> None:
        parsed = Protego.parse(text)
        self._agent = agent
        # A file that forbids nothing needs no look at each URL. (Misspelled rules count as well: "disallaw".)
        self._parsed = parsed if re.search("(?i)l[oa]w", text) else None
        self.sitemaps: tuple[str, ...] = tuple(dict.fromkeys(parsed.sitemaps))
        self.crawl_delay = parsed.crawl_delay(agent) or 0.0

    def allows(self, url: str) -> bool:
        return self._parsed is None or self._parsed.can_fetch(url, self._agent)


@dataclass(frozen=True, slots=True, kw_only=True)
class RobotsUnreachable:
    """robots.txt cannot be read now. It will be asked for again in a while."""

    reason: str
    retry_in: timedelta


def parse_product_token(user_agent: str) -> str:
    """The word by which robots.txt may address us."""
    word = re.match(r"[A-Za-z_-]+", user_agent)
    return user_agent if word is None or word[0].lower() == "mozilla" else word[0]


def rules_from_response(response: HttpResponse | FailedRequest, agent: str) -> RobotsRules | str:
    """The rules that follow from an answer, or why they are unknown."""
    if isinstance(response, FailedRequest):
        if response.kind is FailureKind.PERMANENT and response.status is not None:
            return RobotsRules("", agent)  # a maze of redirects: unavailable
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
    """UTF-8 as the standard wants it, UTF-16 where its mark says so. A line that was cut off forbids nothing."""
    if len(body) >= MAX_BYTES:
        body = body[: body.rfind(b"\n") + 1]
    if body.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return body.decode("utf-16", "replace")
    return body.decode("utf-8-sig", "replace")


class RobotsCache:
    """The rules of the origins that one crawl meets, each read once a day."""

    def __init__(self, client: HttpClient, user_agent: str, clock: Callable[[], float] = monotonic) -> None:
        self._client = client
        self._agent = parse_product_token(user_agent)
        self._clock = clock
        self._cached: dict[str, _CachedRules] = {}

    async def get_rules(self, origin: str) -> RobotsRules | RobotsUnreachable:
        """For an origin as ``https://host`` or ``https://host:port``."""
        known = self._cached.get(origin)
        if known is None:
            known = self._cached[origin] = _CachedRules()
        async with known.lock:  # many pages wait for one robots.txt
            if self._clock() >= known.expires_at:
                await self._fetch(origin, known)
        if known.rules is not None:
            known.rules.expires_at = known.expires_at
            return known.rules
        return RobotsUnreachable(
            reason=known.reason, retry_in=timedelta(seconds=max(0.0, known.expires_at - self._clock()))
        )

    async def _fetch(self, origin: str, cached: "_CachedRules") -> None:
        answer = await self._client.get_following_redirects(
            f"{origin}/robots.txt",
            max_bytes=MAX_BYTES,
            wants_body=_is_success,
            truncate=True,
            max_redirects=MAX_REDIRECTS,
        )
        found = rules_from_response(answer, self._agent)
        if isinstance(found, RobotsRules):
            cached.rules, cached.failures = found, 0
            cached.expires_at = self._clock() + MAX_AGE.total_seconds()
        else:
            cached.reason = found
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
