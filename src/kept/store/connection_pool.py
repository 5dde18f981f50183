"""The sessions of one PostgreSQL server, used again and again, and made as they are needed.

A session that was lost while nobody used it costs nothing: the next is tried at once, or a new one is made. A server
that is down is known to be down at once, and the moment it is back it is used: nobody waits for a timer. While others
are in use, a moment is waited for one of them before another is made: a server has room for some, and many workers.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

PooledConnection = psycopg.AsyncConnection[dict[str, Any]]

MAX_IDLE_SECONDS = 60.0  # what nobody needed for so long is closed
RETURN_WAIT_SECONDS = 0.05  # seconds: most are put back sooner


class ConnectionPool:
    """At most so many at once; whoever comes then waits."""

    def __init__(self, connect: Callable[[], Awaitable[PooledConnection]], *, max_size: int, timeout: float) -> None:
        self._connect = connect
        self._slots = asyncio.Semaphore(max_size)
        self._timeout = timeout
        self._idle: list[tuple[float, PooledConnection]] = []  # since when; the one that was used last is used next
        self._busy = 0
        self._returned = asyncio.Event()
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PooledConnection]:
        """A session that answers. ConnectionTimeout where none is free for too long, or the server hangs."""
        async with _time_limit(self._timeout):
            await self._slots.acquire()
        try:
            await self._wait_for_return()
            self._busy += 1
            try:
                session = await self._take_idle() or await self._connect()
                try:
                    yield session
                finally:
                    await self._return_to_pool(session)
            finally:
                self._busy -= 1
                self._returned.set()
        finally:
            self._slots.release()

    async def close(self) -> None:
        self._closed = True
        while self._idle:
            await self._idle.pop()[1].close()

    async def _wait_for_return(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(RETURN_WAIT_SECONDS):
                while self._busy and not self._idle:
                    self._returned.clear()
                    await self._returned.wait()

    async def _take_idle(self) -> PooledConnection | None:
        while self._idle:
            _, session = self._idle.pop()
            try:
                async with _time_limit(self._timeout):
                    await session.execute("")
                return session
            except BaseException as error:
                await session.close()
                is_lost = isinstance(error, psycopg.OperationalError)
                if not is_lost or isinstance(error, psycopg.errors.ConnectionTimeout):
                    raise
        return None

    async def _return_to_pool(self, session: PooledConnection) -> None:
        if self._closed or session.info.transaction_status is not TransactionStatus.IDLE:
            await session.close()
            return
        now = time.monotonic()
        self._idle.append((now, session))
        while now - self._idle[0][0] > MAX_IDLE_SECONDS:
            await self._idle.pop(0)[1].close()


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise psycopg.errors.ConnectionTimeout(f"no session answered within {seconds:.0f} s") from None
