"""How hard a host may be asked: so many requests at once, a pause between them, and less of both when it struggles.

A ``Tempo`` decides (pure: it is told the time). A ``Host`` makes requests wait for their turn. ``Pacing`` knows all
hosts of this process, so that two crawls of one host share what it can bear. What is shared with other processes is
allotted to each ``Crawling``, and lapses unless it is allotted again.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime
from time import monotonic

DEFAULT_CONCURRENCY = 8
MAX_WAIT = timedelta(minutes=10)  # nobody waits longer for a turn: the page is failed for this crawl
MAX_CRAWL_DELAY = 30.0  # of a Crawl-delay
_MAX_IDLE_HOSTS = 1_000  # hosts that nobody crawls at the moment

_OVERLOAD_STATUSES = (429, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds, when an overloaded host does not say how long
_SLOW_SECONDS, _SLOW_FACTOR = 0.5, 4.0  # seconds to the first byte; times the usual
_RECENT_WEIGHT, _USUAL_WEIGHT = 0.2, 0.01  # how fast averages follow: of late; of what is usual, upwards


def parse_retry_after(headers: Mapping[str, str], now: datetime) -> timedelta | None:
    """What Retry-After says, in seconds or as a date. None: nothing, or nothing that can be understood."""
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
    """How many requests at once, and not before when. Halved when the host is overloaded or slow; then up again."""

    max_concurrency: int = DEFAULT_CONCURRENCY
    delay: float = 0.0
    concurrency: float = DEFAULT_CONCURRENCY
    not_before: float = 0.0
    usual_latency: float | None = None  # seconds to the first byte when all is well
    recent_latency: float = 0.0
    overloads: int = 0
    reduced_at: float = float("-inf")

    def set_limits(self, *, max_concurrency: int, delay: float) -> None:
        """What the crawls of this host ask for now: the gentlest of them."""
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
        """From one request: when it began, how long until the first byte, its status (None: there was no answer)."""
        if status in _OVERLOAD_STATUSES:
            # One page that is out of order for a day is no reason to leave the whole host alone.
            if retry_after is not None and (retry_after <= MAX_WAIT.total_seconds() or status == 429 or self.overloads):
                self.not_before = max(self.not_before, now + retry_after)
            if self._reduce(started_at, now, 0.5):
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self.overloads)
                self.not_before = max(self.not_before, now + pause) if retry_after is None else self.not_before
                self.overloads = min(self.overloads + 1, 10)
            return
        if status is None:
            return
        if status == 200 and self._is_slow(elapsed):  # other answers are quick or slow for reasons of their own
            self._reduce(started_at, now, 0.75)
            return
        self.overloads = 0
        if self.concurrency < self.max_concurrency:
            self.concurrency = min(self.max_concurrency, self.concurrency + 1 / self.concurrency)

    def _is_slow(self, elapsed: float) -> bool:
        """Whether the first byte takes much longer of late than it usually does."""
        if self.usual_latency is None:
            self.usual_latency = self.recent_latency = elapsed
        self.recent_latency += _RECENT_WEIGHT * (elapsed - self.recent_latency)
        self.usual_latency += (_RECENT_WEIGHT if elapsed < self.usual_latency else _USUAL_WEIGHT) * (
            elapsed - self.usual_latency
        )
        return self.recent_latency > _SLOW_SECONDS and self.recent_latency > _SLOW_FACTOR * self.usual_latency

    def _reduce(self, started_at: float, now: float, factor: float) -> bool:
        # Requests that were under way before the last cut tell nothing about its effect.
        if started_at <= self.reduced_at:
            return False
        self.concurrency = max(1.0, self.concurrency * factor)
        self.reduced_at = now
        return True


@dataclass(slots=True, eq=False)
class CrawlSlots:
    """One crawl's part in a host."""

    max_concurrency: int
    delay: float
    crawlers: int = 1  # who share the host, here and elsewhere: each waits longer by that
    _slots: int | None = None  # None: it need not share with other processes
    _valid_until: float = 0.0

    @property
    def slots(self) -> int:
        """What it may have under way at once, now."""
        if self._slots is None:
            return self.max_concurrency
        return self._slots if monotonic() < self._valid_until else 0

    def allot(self, slots: int, *, crawlers: int = 1, valid_seconds: float) -> None:
        self._slots, self.crawlers, self._valid_until = slots, crawlers, monotonic() + valid_seconds


class HostRateLimiter:
    """The turns at one host."""

    def __init__(self) -> None:
        self.rate = AdaptiveRate()
        self._in_flight = 0
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._wake_timer: asyncio.TimerHandle | None = None
        self._crawls: list[CrawlSlots] = []

    @contextmanager
    def join(self, *, max_concurrency: int, delay: float, shared: bool = False) -> Iterator[CrawlSlots]:
        """While a crawl of this host is open. Of several, the gentlest counts for all.

        ``shared``: with other processes; it asks for nothing until something is allotted to it.
        """
        mine = CrawlSlots(max_concurrency, delay)
        if shared:
            mine.allot(0, valid_seconds=0.0)
        self._crawls.append(mine)
        self._apply_limits()
        try:
            yield mine
        finally:
            self._crawls.remove(mine)
            self._apply_limits()

    def slots_in_use(self, crawl: CrawlSlots) -> int:
        """What this crawl has under way, or may have at any moment."""
        others = sum(one.slots for one in self._crawls if one is not crawl)
        return max(crawl.slots, self._in_flight - others, 0)

    def set_delay(self, crawl: CrawlSlots, delay: float) -> None:
        """What this crawl has learned of the pause that the host wants between requests."""
        crawl.delay = delay
        self._apply_limits()

    def allot(self, crawl: CrawlSlots, slots: int, *, crawlers: int, valid_seconds: float) -> None:
        """What this crawl may ask at once from now on, for so long."""
        crawl.allot(slots, crawlers=crawlers, valid_seconds=valid_seconds)
        self._apply_limits()
        self._wake_waiters(asyncio.get_running_loop())

    async def acquire(self) -> timedelta | None:
        """Waits until a request may start; then call ``done``. A time instead: the host asks for so long a pause."""
        now, tempo = monotonic(), self.rate
        if not self._waiters and self._in_flight < self._max_in_flight() and now >= tempo.not_before:
            self._in_flight += 1
            if tempo.delay:
                tempo.record_start(now)
            return None
        if tempo.not_before - now > MAX_WAIT.total_seconds():
            return timedelta(seconds=tempo.not_before - now)
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiters.append(turn)
        self._wake_waiters(loop)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._in_flight -= 1
            self._wake_waiters(loop)
            raise
        return None

    def release(
        self, *, started_at: float, elapsed: float, status: int | None, retry_after: timedelta | None = None
    ) -> None:
        """A request that had its turn is over."""
        self._in_flight -= 1
        seconds = retry_after.total_seconds() if retry_after is not None else None
        self.rate.record_response(
            started_at=started_at, now=monotonic(), elapsed=elapsed, status=status, retry_after=seconds
        )
        if self._waiters:
            self._wake_waiters(asyncio.get_running_loop())

    def release_unused(self) -> None:
        """A request that had its turn was given up: nothing can be learned from it."""
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
            turn = self._waiters.popleft()
            if not turn.done():
                self._in_flight += 1
                self.rate.record_start(now)
                turn.set_result(None)

    def _max_in_flight(self) -> int:
        """How many requests may be under way now."""
        most = int(self.rate.concurrency)
        return min(most, sum(one.slots for one in self._crawls)) if self._crawls else most

    def _apply_limits(self) -> None:
        if self._crawls:
            self.rate.set_limits(
                max_concurrency=min(one.max_concurrency for one in self._crawls),
                delay=max(one.delay * one.crawlers for one in self._crawls),
            )


class RateLimiters:
    """The hosts that this process asks."""

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
