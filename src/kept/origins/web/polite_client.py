"""Requests of one crawl within robots.txt and the rate limits of the hosts."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from kept.model.frontier import Refused, Unreachable
from kept.model.source import Access
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, FailureKind, HttpResponse
from kept.origins.web.rate_limiter import MAX_CRAWL_DELAY, CrawlRateLimiter, HostRateLimiter, parse_retry_after
from kept.origins.web.responses import wants_page_body
from kept.origins.web.robots import RobotsCache, RobotsRules, RobotsUnreachable
from kept.origins.web.scope import origin_of

ROBOTS_FORBID = "robots.txt forbids it"
NO_RULES = RobotsRules("", "")


@dataclass(frozen=True, slots=True)
class _Site:
    """The rate limiter and the rules of one origin (scheme, host, port)."""

    host: HostRateLimiter
    rules: RobotsRules


class PoliteClient:
    def __init__(
        self,
        client: HttpClient,
        rate: CrawlRateLimiter,
        access: Access,
        *,
        user_agent: str,
        max_bytes: int,
        now: Callable[[], datetime],
    ) -> None:
        self._client = client
        self._rate = rate
        self._obeys_robots = not access.ignore_robots
        self._delay = access.delay
        self._max_bytes = max_bytes
        self._now = now
        self._robots = RobotsCache(client, user_agent)
        self._sites: dict[str, _Site] = {}
        self._rules_task: asyncio.Task[RobotsRules | RobotsUnreachable] | None = None

    async def get_rules(self, origin: str) -> RobotsRules | RobotsUnreachable:
        """Return the rules of an origin, also where the source ignores them: they name sitemaps."""
        return await self._robots.get_rules(origin)

    def prefetch_rules(self, origin: str) -> None:
        """Start to fetch the rules of an origin, once, unless the source ignores them."""
        if self._obeys_robots and self._rules_task is None:
            self._rules_task = asyncio.create_task(self._robots.get_rules(origin))

    async def why_forbidden(self, url: str) -> str | None:
        """Return why robots.txt forbids a visit; None when it does not."""
        if not self._obeys_robots:
            return None
        rules = await self._robots.get_rules(origin_of(url))
        if isinstance(rules, RobotsUnreachable):
            return f"robots.txt unreachable ({rules.reason})"
        return None if rules.allows(url) else ROBOTS_FORBID

    async def request(
        self, url: str, *, headers: dict[str, str] | None = None, seconds: float | None = None
    ) -> HttpResponse | FailedRequest | Refused | Unreachable:
        """Make one request for a page, if robots.txt allows it, when the host has a slot."""
        origin = origin_of(url)
        site = self._sites.get(origin)
        if site is None or site.rules.expires_at <= monotonic():
            joined = await self._join_site(origin)
            if isinstance(joined, Unreachable):
                return joined
            site = joined
        if self._obeys_robots and not site.rules.allows(url):
            return Refused(reason=ROBOTS_FORBID)
        if pause := await site.host.acquire():
            return Unreachable(reason="the server asked for a longer pause", retry_after=pause)
        started_at = monotonic()
        try:
            response = await self._client.request(
                url, max_bytes=self._max_bytes, headers=headers, wants_body=wants_page_body, seconds=seconds
            )
        except BaseException:
            site.host.release_unused()
            raise
        if isinstance(response, FailedRequest) and response.kind is FailureKind.FORBIDDEN:
            site.host.release_unused()  # no request was made
            return response
        wait = None
        if isinstance(response, HttpResponse) and response.status >= 300 and "Retry-After" in response.headers:
            wait = parse_retry_after(response.headers, self._now())
        site.host.release(started_at=started_at, elapsed=response.elapsed, status=response.status, retry_after=wait)
        return response

    async def close(self) -> None:
        if self._rules_task:
            self._rules_task.cancel()
            await asyncio.gather(self._rules_task, return_exceptions=True)
        self._sites.clear()

    async def _join_site(self, origin: str) -> _Site | Unreachable:
        host, crawl = await self._rate.join_host(origin)
        rules = await self._robots.get_rules(origin) if self._obeys_robots else NO_RULES
        if isinstance(rules, RobotsUnreachable):
            return Unreachable(reason=f"robots.txt unreachable ({rules.reason})", retry_after=rules.retry_in)
        site = self._sites.get(origin)
        if site is None or site.rules is not rules:
            host.set_delay(crawl, max(self._delay, min(rules.crawl_delay, MAX_CRAWL_DELAY)))
            site = self._sites[origin] = _Site(host, rules)
        return site
