"""The pipeline of a crawl: entries are leased, visited and committed at the same time.

    lease ──► entries ──► visits, many at once ──► batch ──► commit

The pipeline decides when each step starts; its caller provides the steps.
"""

import asyncio
import time
from collections import deque
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from typing import Any, Self, TypeAlias, TypeVar

from kept.crawl.decide import VisitResult
from kept.model.frontier import FrontierEntry

T = TypeVar("T")
Step: TypeAlias = Coroutine[Any, Any, T]

BATCH_PAGES = 200
BATCH_SECONDS = 2.0
TRIAL_PAGES = 10
FIRST_BATCH_SECONDS = 0.25  # doubled with each batch: a process that is soon killed must have committed something


class Batch:
    """Results of visits that wait to be committed together."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._started_at = clock()
        self._seconds = min(FIRST_BATCH_SECONDS, BATCH_SECONDS)
        self._results: list[VisitResult] = []
        self.visits_per_second: float | None = None  # of the last batch that was taken

    def __len__(self) -> int:
        return len(self._results)

    @property
    def is_full(self) -> bool:
        return len(self._results) >= BATCH_PAGES

    @property
    def seconds_left(self) -> float:
        """Seconds until the batch is due, however small it is."""
        return max(0.0, self._started_at + self._seconds - self._clock())

    def start(self) -> None:
        """Start to count the seconds of the first batch."""
        self._started_at = self._clock()

    def add(self, results: Sequence[VisitResult]) -> None:
        self._results += results

    def take(self) -> list[VisitResult]:
        """Remove and return the oldest results, at most BATCH_PAGES, and start the next batch."""
        taken, self._results = self._results[:BATCH_PAGES], self._results[BATCH_PAGES:]
        now = self._clock()
        self.visits_per_second = len(taken) / max(now - self._started_at, 0.001)
        self._started_at = now
        self._seconds = min(2 * self._seconds, BATCH_SECONDS)
        return taken


class Pipeline:
    """Runs the three steps of a crawl beside each other: at most one lease and one commit, and many visits.

    The caller calls ``start`` and ``wait`` in turn. Leaving the context cancels whatever is under way.
    """

    def __init__(
        self,
        *,
        lease: Callable[[], Step[list[FrontierEntry]]],
        visit: Callable[[FrontierEntry], Step[VisitResult]],
        commit: Callable[[list[VisitResult]], Step[None]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._lease = lease
        self._visit = visit
        self._commit = commit
        self._batch = Batch(clock)
        self._entries: deque[FrontierEntry] = deque()
        self._visits: set[asyncio.Task[VisitResult]] = set()
        self._leasing: asyncio.Task[list[FrontierEntry]] | None = None
        self._committing: asyncio.Task[None] | None = None
        self._lease_size = 0
        self._has_committed = False
        self.is_on_trial = (
            False  # the database interrupted an earlier run: few pages are visited before the first commit
        )
        self._may_have_more = True  # the frontier may have open entries that are not leased
        # Set by every task that ends: asyncio.wait would look at all of them each time.
        self._progress = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._batch.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await _cancel([*self._visits, *(task for task in (self._leasing, self._committing) if task)])

    @property
    def visits_per_second(self) -> float | None:
        """The speed of the last batch; None before the first one."""
        return self._batch.visits_per_second

    @property
    def has_uncommitted(self) -> bool:
        """Whether results of visits are not committed yet."""
        return bool(self._batch or self._committing)

    @property
    def is_idle(self) -> bool:
        """Whether no entry is left to visit or to commit."""
        return not self._entries and not self._visits and not self.has_uncommitted

    def start(self, *, concurrency: int, lease_size: int, is_stopping: bool = False) -> None:
        """Start what can run now: visits up to ``concurrency``, the next lease, and the commit of a batch that is due.

        When stopping, only what was visited is committed. ``lease_size`` is how many entries a lease asks for.
        """
        # Until one commit has succeeded, it is not known whether the database takes what is fetched.
        if not is_stopping and (self._has_committed or not self._committing):
            if self.is_on_trial and not self._has_committed:
                concurrency = min(concurrency, max(0, TRIAL_PAGES - len(self._batch)))
            while self._entries and len(self._visits) < concurrency:
                self._visits.add(self._start(self._visit(self._entries.popleft())))
            if concurrency and not self._leasing and self._needs_entries(lease_size):
                self._lease_size = lease_size
                self._leasing = self._start(self._lease())
        if self._batch and not self._committing and (is_stopping or self._is_batch_due(concurrency)):
            self._committing = self._start(self._commit(self._batch.take()))

    async def wait(self, idle_seconds: float) -> bool:
        """Wait for a step to end, for the batch to be due, or for ``idle_seconds``, and collect what has ended.

        Returns True if a lease has ended and there is nothing to do: the frontier has no entry for this worker now.
        Raises what a step raised.
        """
        timeout = self._batch.seconds_left if self._batch and not self._committing else idle_seconds
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._progress.wait()
        self._progress.clear()  # before the tasks are looked at: one that ends after that sets it again
        done = [task for task in self._visits if task.done()]
        self._batch.add([task.result() for task in done])
        self._visits.difference_update(done)
        if self._committing and self._committing.done():
            self._committing.result()
            self._committing, self._may_have_more = None, True  # it may have discovered URLs
            self._has_committed = True
        if not self._leasing or not self._leasing.done():
            return False
        leased = self._leasing.result()
        self._leasing = None
        self._entries.extend(leased)
        self._may_have_more = self._may_have_more and len(leased) >= self._lease_size
        return self.is_idle

    def wake(self) -> None:
        """End the current wait, so that the caller looks at its state again."""
        self._progress.set()

    async def drop_entries(self) -> bool:
        """Cancel all visits and forget all entries that are not visited. Returns whether there were any."""
        had_entries = bool(self._entries or self._visits)
        await _cancel(self._visits)
        self._visits.clear()
        self._entries.clear()
        return had_entries

    def _needs_entries(self, lease_size: int) -> bool:
        if self._batch.is_full:  # the database is slower than the site: visits wait for it
            return False
        return len(self._entries) <= lease_size // 2 if self._may_have_more else self.is_idle

    def _is_batch_due(self, concurrency: int) -> bool:
        if self._batch.is_full or not self._batch.seconds_left:
            return True
        # The frontier has nothing more before the batch is committed. It is committed early, while some entries are
        # still to be visited, and in small batches, so that little is left to commit when all of them are visited.
        left = len(self._entries) + len(self._visits)
        is_running_dry = left * 2 <= concurrency or len(self._batch) >= 2 * concurrency
        return not self._may_have_more and not self._leasing and is_running_dry

    def _start(self, step: Step[T]) -> asyncio.Task[T]:
        task = asyncio.create_task(step)
        task.add_done_callback(lambda _: self._progress.set())
        return task


async def _cancel(tasks: Sequence["asyncio.Task[Any]"] | set["asyncio.Task[VisitResult]"]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
