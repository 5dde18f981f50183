"""One crawl's part in the hosts that it asks; other crawls, of this process and of others, have theirs."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

from kept.origins.origin import Budget
from kept.origins.web.gate import Pair, target_of
from kept.origins.web.pacing import Crawling, Host, Pacing
from kept.origins.web.scope import origin_of


class Turns:
    def __init__(self, pacing: Pacing, *, at_once: int, delay: float) -> None:
        self._pacing = pacing
        self._at_once = at_once
        self._delay = delay
        self._budget: Budget | None = None  # None: hosts are not shared with other processes
        self._joined: dict[Pair, tuple[Host, Crawling]] = {}
        self._open = ExitStack()

    @property
    def slots(self) -> int:
        """How many requests may be under way now, at all hosts together."""
        slots = sum(crawling.slots for _, crawling in self._joined.values()) if self._joined else self._at_once
        return min(slots, self._at_once)

    async def share(self, budget: Budget) -> None:
        """What may be asked of each host is renewed by this budget, now and whenever another host is joined."""
        self._budget = budget
        for pair in list(self._joined):
            await self._renew(pair)

    async def join(self, origin: str) -> tuple[Host, Crawling]:
        """The turns at a host, and this crawl's part in them."""
        target = target_of(f"{origin}/")
        pair = target.pair if target else ("", 0)
        if pair not in self._joined:
            host = self._pacing.host(*pair)
            crawled = host.crawled(at_once=self._at_once, delay=self._delay, shared=self._budget is not None)
            self._joined[pair] = host, self._open.enter_context(crawled)
            if self._budget:
                await self._renew(pair)
        return self._joined[pair]

    @asynccontextmanager
    async def aside(self, url: str) -> AsyncIterator[None]:
        """A turn for what is no page: robots.txt, the seed lists."""
        host, _ = await self.join(origin_of(url))
        if await host.turn():  # it wants a longer pause than a page would wait for; this is one request
            yield
            return
        try:
            yield
        finally:
            host.dropped()

    def close(self) -> None:
        self._open.close()
        self._joined.clear()

    async def _renew(self, pair: Pair) -> None:
        host, crawling = self._joined[pair]
        assert self._budget is not None, "only what is shared is renewed"
        share = await self._budget(f"{pair[0]}:{pair[1]}", self._at_once, host.busy(crawling))
        host.allot(crawling, share.slots, walkers=share.walkers, seconds=share.seconds)
