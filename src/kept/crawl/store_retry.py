"""Retries of a crawl's database operations, so that a database in trouble costs the site nothing.

What was fetched is kept in memory while its commit is tried again, with growing delays; no page is requested meanwhile.
Only when every retry has failed the run ends, and its job waits in the queue (``jobs.queue.requeue_interrupted``).
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TypeVar

from kept.errors import StoreUnreachable
from kept.log import Log

log = Log(__name__)

T = TypeVar("T")

MAX_RETRIES = 6  # in a row: about eleven seconds
FIRST_DELAY_SECONDS = 0.2
MAX_DELAY_SECONDS = 5.0


class StoreRetry:
    """Retries the operations of one run until it is stopped."""

    def __init__(self, job_id: str, stopping: asyncio.Event) -> None:
        self._job_id = job_id
        self._stopping = stopping
        self._failing = 0

    @property
    def is_failing(self) -> bool:
        """Whether an operation has failed and not succeeded since."""
        return self._failing > 0

    async def run(self, operation: Callable[[bool], Awaitable[T]]) -> T:
        """Return the result of an operation, which is told whether it is a retry. Raises its last error.

        An error does not say whether the transaction was committed: the connection may have broken after that. So a
        retry has to look first. A full disk or a damaged file is not retried: waiting does not mend it.
        """
        try:
            return await operation(False)
        except StoreUnreachable as error:
            first_error = error
        self._failing += 1
        try:
            return await self._retry(operation, first_error)
        finally:
            self._failing -= 1

    async def _retry(self, operation: Callable[[bool], Awaitable[T]], error: StoreUnreachable) -> T:
        for retries in range(MAX_RETRIES):
            if self._stopping.is_set():
                break
            delay = backoff_seconds(retries, first=FIRST_DELAY_SECONDS, longest=MAX_DELAY_SECONDS)
            log.warning("database in trouble", job=self._job_id, retry_seconds=round(delay, 1), reason=str(error))
            with suppress(TimeoutError):
                await asyncio.wait_for(self._stopping.wait(), delay)
            try:
                return await operation(True)
            except StoreUnreachable as again:
                error = again
        raise error


def backoff_seconds(failures: int, *, first: float, longest: float) -> float:
    """Return a delay that doubles with each failure. It is jittered: workers must not come back all at once."""
    return min(longest, first * 2.0**failures) * random.uniform(0.75, 1.25)
