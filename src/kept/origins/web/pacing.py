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

AT_ONCE = 8
LONGEST_WAIT = timedelta(minutes=10)  # nobody waits longer for a turn: the page is failed for this crawl
LONGEST_DELAY = 30.0  # of a Crawl-delay
_REMEMBERED = 1_000  # hosts that nobody crawls at the moment

_OVERLOADED = (429, 503)
_FIRST_PAUSE, _LONGEST_PAUSE = 1.0, 60.0  # seconds, when an overloaded host does not say how long
_SLOW, _SLOW_FACTOR = 0.5, 4.0  # seconds to the first byte; times the usual
_RECENT, _DRIFT = 0.2, 0.01  # how fast averages follow: of late; of what is usual, upwards


def wait_asked(headers: Mapping[str, str], now: datetime) -> timedelta | None:
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
class Tempo:
    """How many requests at once, and not before when. Halved when the host is overloaded or slow; then up again."""

    most: int = AT_ONCE
    delay: float = 0.0
    at_once: float = AT_ONCE
    not_before: float = 0.0
    usual: float | None = None  # seconds to the first byte when all is well
    recent: float = 0.0
    strikes: int = 0
    cut_at: float = float("-inf")

    def allow(self, *, most: int, delay: float) -> None:
        """What the crawls of this host ask for now: the gentlest of them."""
        self.at_once = float(most) if self.at_once >= self.most else min(self.at_once, most)
        self.most, self.delay = most, delay

    def start(self, now: float) -> None:
        if self.delay:
            self.not_before = max(self.not_before, now + self.delay)

    def learn(self, *, began: float, now: float, took: float, status: int | None, wait: float | None) -> None:
        """From one request: when it began, how long until the first byte, its status (None: there was no answer)."""
        if status in _OVERLOADED:
            # One page that is out of order for a day is no reason to leave the whole host alone.
            if wait is not None and (wait <= LONGEST_WAIT.total_seconds() or status == 429 or self.strikes):
                self.not_before = max(self.not_before, now + wait)
            if self._slow_down(began, now, 0.5):
                pause = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2**self.strikes)
                self.not_before = max(self.not_before, now + pause) if wait is None else self.not_before
                self.strikes = min(self.strikes + 1, 10)
            return
        if status is None:
            return
        if status == 200 and self._is_slow(took):  # other answers are quick or slow for reasons of their own
            self._slow_down(began, now, 0.75)
            return
        self.strikes = 0
        if self.at_once < self.most:
            self.at_once = min(self.most, self.at_once + 1 / self.at_once)

    def _is_slow(self, took: float) -> bool:
        """Whether the first byte takes much longer of late than it usually does."""
        if self.usual is None:
            self.usual = self.recent = took
        self.recent += _RECENT * (took - self.recent)
        self.usual += (_RECENT if took < self.usual else _DRIFT) * (took - self.usual)
        return self.recent > _SLOW and self.recent > _SLOW_FACTOR * self.usual

    def _slow_down(self, began: float, now: float, factor: float) -> bool:
        # Requests that were under way before the last cut tell nothing about its effect.
        if began <= self.cut_at:
            return False
        self.at_once = max(1.0, self.at_once * factor)
        self.cut_at = now
        return True


@dataclass(slots=True, eq=False)
class Crawling:
    """One crawl's part in a host."""

    at_once: int
    delay: float
    walkers: int = 1  # who share the host, here and elsewhere: each waits longer by that
    _slots: int | None = None  # None: it need not share with other processes
    _until: float = 0.0

    @property
    def slots(self) -> int:
        """What it may have under way at once, now."""
        if self._slots is None:
            return self.at_once
        return self._slots if monotonic() < self._until else 0

    def allot(self, slots: int, *, walkers: int = 1, seconds: float) -> None:
        self._slots, self.walkers, self._until = slots, walkers, monotonic() + seconds


class Host:
    """The turns at one host."""

    def __init__(self) -> None:
        self.tempo = Tempo()
        self._under_way = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._alarm: asyncio.TimerHandle | None = None
        self._crawls: list[Crawling] = []

    @contextmanager
    def crawled(self, *, at_once: int, delay: float, shared: bool = False) -> Iterator[Crawling]:
        """While a crawl of this host is open. Of several, the gentlest counts for all.

        ``shared``: with other processes; it asks for nothing until something is allotted to it.
        """
        mine = Crawling(at_once, delay)
        if shared:
            mine.allot(0, seconds=0.0)
        self._crawls.append(mine)
        self._agree()
        try:
            yield mine
        finally:
            self._crawls.remove(mine)
            self._agree()

    def busy(self, crawling: Crawling) -> int:
        """What this crawl has under way, or may have at any moment."""
        others = sum(one.slots for one in self._crawls if one is not crawling)
        return max(crawling.slots, self._under_way - others, 0)

    def slow_down(self, crawling: Crawling, delay: float) -> None:
        """What this crawl has learned of the pause that the host wants between requests."""
        crawling.delay = delay
        self._agree()

    def allot(self, crawling: Crawling, slots: int, *, walkers: int, seconds: float) -> None:
        """What this crawl may ask at once from now on, for so long."""
        crawling.allot(slots, walkers=walkers, seconds=seconds)
        self._agree()
        self._go_on(asyncio.get_running_loop())

    async def turn(self) -> timedelta | None:
        """Waits until a request may start; then call ``done``. A time instead: the host asks for so long a pause."""
        now, tempo = monotonic(), self.tempo
        if not self._waiting and self._under_way < self._most() and now >= tempo.not_before:
            self._under_way += 1
            if tempo.delay:
                tempo.start(now)
            return None
        if tempo.not_before - now > LONGEST_WAIT.total_seconds():
            return timedelta(seconds=tempo.not_before - now)
        loop = asyncio.get_running_loop()
        turn = loop.create_future()
        self._waiting.append(turn)
        self._go_on(loop)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._under_way -= 1
            self._go_on(loop)
            raise
        return None

    def done(self, *, began: float, took: float, status: int | None, wait: timedelta | None = None) -> None:
        """A request that had its turn is over."""
        self._under_way -= 1
        seconds = wait.total_seconds() if wait is not None else None
        self.tempo.learn(began=began, now=monotonic(), took=took, status=status, wait=seconds)
        if self._waiting:
            self._go_on(asyncio.get_running_loop())

    def dropped(self) -> None:
        """A request that had its turn was given up: nothing can be learned from it."""
        self._under_way -= 1
        self._go_on(asyncio.get_running_loop())

    def _go_on(self, loop: asyncio.AbstractEventLoop) -> None:
        while self._waiting and self._under_way < self._most():
            now = monotonic()
            if now < self.tempo.not_before:
                if self._alarm:
                    self._alarm.cancel()
                self._alarm = loop.call_later(self.tempo.not_before - now, self._go_on, loop)
                return
            turn = self._waiting.popleft()
            if not turn.done():
                self._under_way += 1
                self.tempo.start(now)
                turn.set_result(None)

    def _most(self) -> int:
        """How many requests may be under way now."""
        most = int(self.tempo.at_once)
        return min(most, sum(one.slots for one in self._crawls)) if self._crawls else most

    def _agree(self) -> None:
        if self._crawls:
            self.tempo.allow(
                most=min(one.at_once for one in self._crawls),
                delay=max(one.delay * one.walkers for one in self._crawls),
            )


class Pacing:
    """The hosts that this process asks."""

    def __init__(self) -> None:
        self._hosts: OrderedDict[tuple[str, int], Host] = OrderedDict()

    def host(self, name: str, port: int) -> Host:
        host = self._hosts.get((name, port))
        if host is None:
            host = self._hosts[name, port] = Host()
            while len(self._hosts) > _REMEMBERED and not next(iter(self._hosts.values()))._crawls:
                self._hosts.popitem(last=False)
        return host


SHARED = Pacing()
