"""One crawl's part in the hosts that it asks; other crawls, of this process and of others, have theirs."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from kept.origins.origin import AllotHostSlots
from kept.origins.web.http.address_policy import HostPort, parse_endpoint
from kept.origins.web.rate_limiter import CrawlSlots, HostRateLimiter, RateLimiters
from kept.origins.web.scope import origin_of


class CrawlRateLimiter:
    def __init__(self, rate_limiters: RateLimiters, *, max_concurrency: int, delay: float) -> None:
        self._rate_limiters = rate_limiters
        self._max_concurrency = max_concurrency
        self._delay = delay
        self._allot: AllotHostSlots | None = None  # None: hosts are not shared with other processes
        self._hosts: dict[HostPort, tuple[HostRateLimiter, CrawlSlots]] = {}
        self._exit_stack = ExitStack()

    @property
    def slots(self) -> int:
        """How many requests may be under way now, at all hosts together."""
        slots = sum(crawling.slots for _, crawling in self._hosts.values()) if self._hosts else self._max_concurrency
        return min(slots, self._max_concurrency)

    async def renew_slots(self, allot: AllotHostSlots) -> None:
        """What may be asked of each host is renewed by this budget, now and whenever another host is joined."""
        self._allot = allot
        for pair in list(self._hosts):
            await self._renew(pair)

    async def join_host(self, origin: str) -> tuple[HostRateLimiter, CrawlSlots]:
        """The turns at a host, and this crawl's part in them."""
        target = parse_endpoint(f"{origin}/")
        pair = target.host_port if target else ("", 0)
        if pair not in self._hosts:
            host = self._rate_limiters.for_host(*pair)
            crawled = host.join(
                max_concurrency=self._max_concurrency, delay=self._delay, shared=self._allot is not None
            )
            self._hosts[pair] = host, self._exit_stack.enter_context(crawled)
            if self._allot:
                await self._renew(pair)
        return self._hosts[pair]

    @asynccontextmanager
    async def auxiliary_slot(self, url: str) -> AsyncIterator[None]:
        """A turn for what is no page: robots.txt, the seed lists."""
        host, _ = await self.join_host(origin_of(url))
        if await host.acquire():  # it wants a longer pause than a page would wait for; this is one request
            yield
            return
        try:
            yield
        finally:
            host.release_unused()

    def close(self) -> None:
        self._exit_stack.close()
        self._hosts.clear()

    async def _renew(self, host_port: HostPort) -> None:
        host, crawling = self._hosts[host_port]
        assert self._allot is not None, "only what is shared is renewed"
        share = await self._allot(f"{host_port[0]}:{host_port[1]}", self._max_concurrency, host.slots_in_use(crawling))
        host.allot(crawling, share.slots, crawlers=share.crawlers, valid_seconds=share.valid_seconds)
