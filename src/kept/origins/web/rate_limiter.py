"""Limits the requests to a host: concurrent requests, a delay between them, and fewer while the host is overloaded.

AdaptiveRate       the limits of a host, adapted to its responses (pure: the time is a parameter)
HostRateLimiter    makes requests to a host wait for a slot
RateLimiters       all hosts of this process, so that two crawls of one host share its limits
CrawlSlots         the slots that one crawl holds at a host; shared with other processes, they expire unless renewed
CrawlRateLimiter   all hosts that one crawl uses
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import ExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from time import monotonic

from kept.origins.origin import AllotHostSlots
from kept.origins.web.http.address_policy import HostPort, parse_endpoint
from kept.origins.web.scope import origin_of

INITIAL_CONCURRENCY = 8
MAX_WAIT = timedelta(minutes=10)  # for a slot; beyond it the page fails in this crawl
MAX_CRAWL_DELAY = 30.0  # seconds; a longer Crawl-delay is cut to this
_MAX_IDLE_HOSTS = 1_000  # remembered without a crawl

_OVERLOAD_STATUSES = (429, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds, when an overloaded host sends no Retry-After
_SLOW_SECONDS, _SLOW_FACTOR = 0.5, 4.0  # time to the first byte: seconds, and times the usual
_RECENT_WEIGHT, _USUAL_WEIGHT = 0.2, 0.01  # of a new value in the moving averages


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """Return the wait that Retry-After asks for, in seconds or as a date; None without a valid one."""
    text = headers.get("Retry-After", "").strip()
    try:
        wait = timedelta(seconds=int(text)) if text.isdigit() else _aware(parsedate_to_datetime(text)) - now
    except (ValueError, OverflowError, TypeError):
        return None
    return max(wait, timedelta())


def _aware(moment: datetime) -> datetime:
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


@dataclass(slots=True)
class AdaptiveRate:
    """The concurrency limit and the earliest next start. Reduced while the host is overloaded or slow, then raised."""

    max_concurrency: int = INITIAL_CONCURRENCY
    delay: float = 0.0
    concurrency: float = INITIAL_CONCURRENCY
    not_before: float = 0.0
    usual_latency: float | None = None  # seconds to the first byte
    recent_latency: float = 0.0
    overloads: int = 0
    reduced_at: float = float("-inf")

    def set_limits(self, *, max_concurrency: int, delay: float) -> None:
        """Set the configured limits: the strictest of all crawls of this host."""
        self.concurrency = (
            float(max_concurrency)
            if self.concurrency >= self.max_concurrency
            else min(self.concurrency, max_concurrency)
        )
        self.max_concurrency, self.delay = max_concurrency, delay

    def record_start(self, now: float) -> None:
        if self.delay:
            self.not_before = max(self.not_before, now + self.delay)

    def record_response(
        self, *, started_at: float, now: float, elapsed: float, status: int | None, retry_after: float | None
    ) -> None:
        """Adapt to one request. ``elapsed``: seconds to the first byte; ``status`` is None without a response."""
        if status in _OVERLOAD_STATUSES:
            # A single page that is unavailable for a day must not stop the crawl of its host.
            if retry_after is not None and (retry_after <= MAX_WAIT.total_seconds() or status == 429 or self.overloads):
                self.not_before = max(self.not_before, now + retry_after)
            if self._reduce(started_at, now, 0.5):
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self.overloads)
                self.not_before = max(self.not_before, now + pause) if retry_after is None else self.not_before
                self.overloads = min(self.overloads + 1, 10)
            return
        if status is None:
            return
        if status == 200 and self._is_slow(elapsed):  # other responses say little about the load
            self._reduce(started_at, now, 0.75)
            return
        self.overloads = 0
        if self.concurrency < self.max_concurrency:
            self.concurrency = min(self.max_concurrency, self.concurrency + 1 / self.concurrency)

    def _is_slow(self, elapsed: float) -> bool:
        """Return whether recent responses take much longer than usual."""
        if self.usual_latency is None:
            self.usual_latency = self.recent_latency = elapsed
        self.recent_latency += _RECENT_WEIGHT * (elapsed - self.recent_latency)
        self.usual_latency += (_RECENT_WEIGHT if elapsed < self.usual_latency else _USUAL_WEIGHT) * (
            elapsed - self.usual_latency
        )
        return self.recent_latency > _SLOW_SECONDS and self.recent_latency > _SLOW_FACTOR * self.usual_latency

    def _reduce(self, started_at: float, now: float, factor: float) -> bool:
        # Requests that started before the last reduction do not show its effect.
        if started_at <= self.reduced_at:
            return False
        self.concurrency = max(1.0, self.concurrency * factor)
        self.reduced_at = now
        return True


@dataclass(slots=True, eq=False)
class CrawlSlots:
    """The slots of one crawl at a host."""

    max_concurrency: int
    delay: float
    crawlers: int = 1  # crawls that share the host, in all processes; multiplies the delay
    _slots: int | None = None  # None: not shared with other processes
    _valid_until: float = 0.0

    @property
    def slots(self) -> int:
        """Return how many requests may be in flight now."""
        if self._slots is None:
            return self.max_concurrency
        return self._slots if monotonic() < self._valid_until else 0

    def allot(self, slots: int, *, crawlers: int = 1, valid_seconds: float) -> None:
        self._slots, self.crawlers, self._valid_until = slots, crawlers, monotonic() + valid_seconds


class HostRateLimiter:
    """Makes requests to one host wait for a slot."""

    def __init__(self) -> None:
        self.rate = AdaptiveRate()
        self._in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._wake_timer: asyncio.TimerHandle | None = None
        self._crawls: list[CrawlSlots] = []

    @contextmanager
    def join(self, *, max_concurrency: int, delay: float, shared: bool = False) -> Iterator[CrawlSlots]:
        """Register a crawl of this host. The strictest limits of all registered crawls apply.

        ``shared``: the host is shared with other processes; there are no slots until some are allotted.
        """
        crawl = CrawlSlots(max_concurrency, delay)
        if shared:
            crawl.allot(0, valid_seconds=0.0)
        self._crawls.append(crawl)
        self._apply_limits()
        try:
            yield crawl
        finally:
            self._crawls.remove(crawl)
            self._apply_limits()

    def slots_in_use(self, crawl: CrawlSlots) -> int:
        """Return the slots that this crawl holds, or still uses after losing them."""
        others = sum(other.slots for other in self._crawls if other is not crawl)
        return max(crawl.slots, self._in_flight - others, 0)

    def set_delay(self, crawl: CrawlSlots, delay: float) -> None:
        crawl.delay = delay
        self._apply_limits()

    def allot(self, crawl: CrawlSlots, slots: int, *, crawlers: int, valid_seconds: float) -> None:
        crawl.allot(slots, crawlers=crawlers, valid_seconds=valid_seconds)
        self._apply_limits()
        self._wake_waiters(asyncio.get_running_loop())

    async def acquire(self) -> timedelta | None:
        """Wait for a slot; ``release`` it afterwards. Returns the wait, and no slot, where that exceeds MAX_WAIT."""
        now, rate = monotonic(), self.rate
        if not self._waiters and self._in_flight < self._max_in_flight() and now >= rate.not_before:
            self._in_flight += 1
            if rate.delay:
                rate.record_start(now)
            return None
        if rate.not_before - now > MAX_WAIT.total_seconds():
            return timedelta(seconds=rate.not_before - now)
        loop = asyncio.get_running_loop()
        slot = loop.create_future()
        self._waiters.append(slot)
        self._wake_waiters(loop)
        try:
            await slot
        except asyncio.CancelledError:
            if slot.done() and not slot.cancelled():
                self._in_flight -= 1
            self._wake_waiters(loop)
            raise
        return None

    def release(
        self, *, started_at: float, elapsed: float, status: int | None, retry_after: timedelta | None = None
    ) -> None:
        """Return a slot and adapt the rate to how the request went."""
        self._in_flight -= 1
        seconds = retry_after.total_seconds() if retry_after is not None else None
        self.rate.record_response(
            started_at=started_at, now=monotonic(), elapsed=elapsed, status=status, retry_after=seconds
        )
        if self._waiters:
            self._wake_waiters(asyncio.get_running_loop())

    def release_unused(self) -> None:
        """Return a slot whose request was not made or was cancelled, without adapting the rate."""
        self._in_flight -= 1
        self._wake_waiters(asyncio.get_running_loop())

    def _wake_waiters(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiters and self._in_flight < self._max_in_flight():
            now = monotonic()
            if now < self.rate.not_before:
                if self._wake_timer:
                    self._wake_timer.cancel()
                self._wake_timer = loop.call_later(self.rate.not_before - now, self._wake_waiters, loop)
                return
            slot = self._waiters.popleft()
            if not slot.done():
                self._in_flight += 1
                self.rate.record_start(now)
                slot.set_result(None)

    def _max_in_flight(self) -> int:
        limit = int(self.rate.concurrency)
        return min(limit, sum(crawl.slots for crawl in self._crawls)) if self._crawls else limit

    def _apply_limits(self) -> None:
        if self._crawls:
            self.rate.set_limits(
                max_concurrency=min(crawl.max_concurrency for crawl in self._crawls),
                delay=max(crawl.delay * crawl.crawlers for crawl in self._crawls),
            )


class RateLimiters:
    """The rate limiters of all hosts that this process connects to."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[tuple[str, int], HostRateLimiter] = OrderedDict()

    def for_host(self, name: str, port: int) -> HostRateLimiter:
        host = self._hosts.get((name, port))
        if host is None:
            host = self._hosts[name, port] = HostRateLimiter()
            while len(self._hosts) > _MAX_IDLE_HOSTS and not next(iter(self._hosts.values()))._crawls:
                self._hosts.popitem(last=False)
        return host


SHARED_RATE_LIMITERS = RateLimiters()


class CrawlRateLimiter:
    """The slots of one crawl at every host it uses; other crawls, here and in other processes, have theirs."""

    def __init__(self, rate_limiters: RateLimiters, *, max_concurrency: int, delay: float) -> None:
        self._rate_limiters = rate_limiters
        self._max_concurrency = max_concurrency
        self._delay = delay
        self._allot: AllotHostSlots | None = None  # None: not shared with other processes
        self._hosts: dict[HostPort, tuple[HostRateLimiter, CrawlSlots]] = {}
        self._exit_stack = ExitStack()

    @property
    def slots(self) -> int:
        """Return how many requests may be in flight now, at all hosts together."""
        slots = sum(crawl.slots for _, crawl in self._hosts.values()) if self._hosts else self._max_concurrency
        return min(slots, self._max_concurrency)

    async def renew_slots(self, allot: AllotHostSlots) -> None:
        """Renew the allotment of every host, now and whenever another host is joined."""
        self._allot = allot
        for host_port in list(self._hosts):
            await self._renew(host_port)

    async def join_host(self, origin: str) -> tuple[HostRateLimiter, CrawlSlots]:
        """Return the rate limiter of a host and this crawl's slots there, registering the crawl first."""
        endpoint = parse_endpoint(f"{origin}/")
        host_port = endpoint.host_port if endpoint else ("", 0)
        if host_port not in self._hosts:
            host = self._rate_limiters.for_host(*host_port)
            joined = host.join(max_concurrency=self._max_concurrency, delay=self._delay, shared=self._allot is not None)
            self._hosts[host_port] = host, self._exit_stack.enter_context(joined)
            if self._allot:
                await self._renew(host_port)
        return self._hosts[host_port]

    @asynccontextmanager
    async def auxiliary_slot(self, url: str) -> AsyncIterator[None]:
        """Hold a slot for a request that is not a page: robots.txt, sitemaps."""
        host, _ = await self.join_host(origin_of(url))
        if await host.acquire():  # a longer pause than MAX_WAIT; this single request is made anyway
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
        host, crawl = self._hosts[host_port]
        assert self._allot is not None, "only shared slots are renewed"
        share = await self._allot(f"{host_port[0]}:{host_port[1]}", self._max_concurrency, host.slots_in_use(crawl))
        host.allot(crawl, share.slots, crawlers=share.crawlers, valid_seconds=share.valid_seconds)
