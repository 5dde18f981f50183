"""Time limits for many requests by one clock that ticks, instead of two timers for each.

A crawl makes thousands of requests a second and almost none of them is late: setting and cancelling timers would take
a tenth of its time. So whoever is being timed is written down, and a clock looks through the list now and then.
"""

import asyncio
from time import monotonic
from types import TracebackType

_TICKS = 10  # in the shortest limit
_SLOWEST_TICK, _FASTEST_TICK = 0.5, 0.01


class TimedOut(Exception):
    """It took too long: the sentence says what."""


class Deadlines:
    """``with deadlines.limit() as limit``: what happens inside is given up, as TimedOut, when it takes too long."""

    def __init__(self, *, whole: float, silence: float) -> None:
        self.whole = whole
        self.silence = silence
        self._tick = min(_SLOWEST_TICK, max(_FASTEST_TICK, min(whole, silence) / _TICKS))
        self._timed: set[Limit] = set()
        self._clock: asyncio.TimerHandle | None = None

    def limit(self, whole: float | None = None) -> "Limit":
        """``whole``: less than usual, because a part of it is spent."""
        return Limit(self, self.whole if whole is None else whole)

    def _start(self, limit: "Limit") -> None:
        self._timed.add(limit)
        if self._clock is None:
            self._clock = asyncio.get_running_loop().call_later(self._tick, self._look)

    def _look(self) -> None:
        now = monotonic()
        for limit in self._timed:
            if limit.late is None and (now > limit.ends or now > limit.silent_until):
                is_silent = now <= limit.ends
                limit.late = (
                    f"nothing came for {self.silence:g} s" if is_silent else f"took longer than {self.whole:g} s"
                )
                limit.task.cancel()
        self._clock = None
        if self._timed:
            self._clock = asyncio.get_running_loop().call_later(self._tick, self._look)


class Limit:
    """One task that is being timed. ``heard`` says that something came."""

    __slots__ = ("_cancelling", "_deadlines", "ends", "late", "silent_until", "task")

    def __init__(self, deadlines: Deadlines, whole: float) -> None:
        task = asyncio.current_task()
        assert task is not None, "only tasks have deadlines"
        now = monotonic()
        self.task: asyncio.Task[object] = task
        self.ends = now + whole
        self.silent_until = now + deadlines.silence
        self.late: str | None = None
        self._cancelling = task.cancelling()
        self._deadlines = deadlines

    def heard(self) -> None:
        self.silent_until = monotonic() + self._deadlines.silence

    def __enter__(self) -> "Limit":
        self._deadlines._start(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._deadlines._timed.discard(self)
        # As asyncio.timeout() does it: only our own cancellation becomes an error, anybody else's goes on.
        if self.late and self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimedOut(self.late) from error
