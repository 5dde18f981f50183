"""Deadlines of many requests, checked by one periodic timer instead of two timers for each.

A crawl makes thousands of requests a second and almost none of them is late: setting and cancelling timers would take
a tenth of its time. So requests in flight are registered, and a timer looks through them now and then.
"""

import asyncio
from time import monotonic
from types import TracebackType

_TICKS_PER_TIMEOUT = 10  # checks within the shortest timeout
_SLOWEST_TICK, _FASTEST_TICK = 0.5, 0.01


class RequestTimedOut(Exception):
    """The request took too long; the message says how."""


class Deadlines:
    """``with deadlines.track() as deadline``: the block raises RequestTimedOut when it takes too long."""

    def __init__(self, *, total: float, read: float) -> None:
        self.total = total
        self.read = read
        self._tick = min(_SLOWEST_TICK, max(_FASTEST_TICK, min(total, read) / _TICKS_PER_TIMEOUT))
        self._active: set[RequestDeadline] = set()
        self._timer: asyncio.TimerHandle | None = None

    def track(self, total: float | None = None) -> "RequestDeadline":
        """``total``: seconds that are left, where a part of the usual time is spent."""
        return RequestDeadline(self, self.total if total is None else total)

    def _start(self, deadline: "RequestDeadline") -> None:
        self._active.add(deadline)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self._tick, self._check)

    def _check(self) -> None:
        now = monotonic()
        for deadline in self._active:
            if deadline.timeout_reason is None and (now > deadline.expires_at or now > deadline.read_expires_at):
                is_silent = now <= deadline.expires_at
                deadline.timeout_reason = (
                    f"nothing came for {self.read:g} s" if is_silent else f"took longer than {self.total:g} s"
                )
                deadline.task.cancel()
        self._timer = None
        if self._active:
            self._timer = asyncio.get_running_loop().call_later(self._tick, self._check)


class RequestDeadline:
    """The deadline of one task. ``reset_read_timeout`` is called when data arrives."""

    __slots__ = ("_cancelling", "_deadlines", "expires_at", "read_expires_at", "task", "timeout_reason")

    def __init__(self, deadlines: Deadlines, total: float) -> None:
        task = asyncio.current_task()
        assert task is not None, "only tasks have deadlines"
        now = monotonic()
        self.task: asyncio.Task[object] = task
        self.expires_at = now + total
        self.read_expires_at = now + deadlines.read
        self.timeout_reason: str | None = None
        self._cancelling = task.cancelling()
        self._deadlines = deadlines

    def reset_read_timeout(self) -> None:
        self.read_expires_at = monotonic() + self._deadlines.read

    def __enter__(self) -> "RequestDeadline":
        self._deadlines._start(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._deadlines._active.discard(self)
        # As in asyncio.timeout(): only our own cancellation becomes an error, any other one propagates.
        if self.timeout_reason and self.task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise RequestTimedOut(self.timeout_reason) from error
