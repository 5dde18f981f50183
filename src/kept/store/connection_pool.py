"""A pool of PostgreSQL connections, opened when they are needed.

The task that needs a connection opens it (decision 28): a server that is down is an error at once, and one that is back
is used at once. An idle connection that was lost is replaced without an error. While others are in use, a caller waits
a moment for one of them before it opens another: a server allows a limited number, and there are many workers. A server
that says nothing at all is an error as soon as the watch has noticed (``server_watch``).
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import psycopg
from psycopg.pq import TransactionStatus

from kept.store.server_watch import ServerWatch, shut_down

PooledConnection = psycopg.AsyncConnection[dict[str, Any]]

MAX_IDLE_SECONDS = 60.0  # then it is closed
RETURN_WAIT_SECONDS = 0.05  # most are returned sooner


class ConnectionPool:
    """At most ``max_size`` connections; further callers wait."""

    def __init__(
        self,
        connect: Callable[[], Awaitable[PooledConnection]],
        prepare: Callable[[PooledConnection], Awaitable[object]],
        *,
        max_size: int,
        timeout: float,
        patience_seconds: float,
    ) -> None:
        """``prepare`` is called for each new connection; a server that is silent for ``patience_seconds`` is away."""
        self._connect = connect
        self._prepare = prepare
        self.watch = ServerWatch(connect, patience_seconds)
        self._slots = asyncio.Semaphore(max_size)
        self._timeout = timeout
        self._idle: list[tuple[float, PooledConnection]] = []  # since when; the last one used is the next one used
        self._busy = 0
        self._returned = asyncio.Event()
        self._closed = False

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[PooledConnection]:
        """Take a connection that answers. Raises ConnectionTimeout if none is free in time, or the server hangs."""
        async with _time_limit(self._timeout):
            await self._slots.acquire()
        try:
            await self._wait_for_return()
            self._busy += 1
            try:
                connection = await self._take_idle() or await self._open()
                try:
                    with self.watch.guard(lambda: shut_down(connection)):
                        yield connection
                finally:
                    await self._return_to_pool(connection)
            finally:
                self._busy -= 1
                self._returned.set()
        finally:
            self._slots.release()

    async def close(self) -> None:
        self._closed = True
        await self.watch.close()
        while self._idle:
            await self._idle.pop()[1].close()

    async def _wait_for_return(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(RETURN_WAIT_SECONDS):
                while self._busy and not self._idle:
                    self._returned.clear()
                    await self._returned.wait()

    async def _open(self) -> PooledConnection:
        limit = asyncio.timeout(None)
        with self.watch.guard(lambda: limit.reschedule(0)):
            try:
                async with limit:
                    connection = await self._connect()
            except TimeoutError:
                raise self.watch.error() from None
        try:
            with self.watch.guard(lambda: shut_down(connection)):
                await self._prepare(connection)
        except BaseException:
            await connection.close()
            raise
        return connection

    async def _take_idle(self) -> PooledConnection | None:
        while self._idle:
            _, connection = self._idle.pop()
            try:
                with self.watch.guard(partial(shut_down, connection)):
                    async with _time_limit(self._timeout):
                        await connection.execute("")
                return connection
            except BaseException as error:
                await connection.close()
                is_lost = isinstance(error, psycopg.OperationalError)
                if not is_lost or isinstance(error, psycopg.errors.ConnectionTimeout):
                    raise
        return None

    async def _return_to_pool(self, connection: PooledConnection) -> None:
        if self._closed or connection.info.transaction_status is not TransactionStatus.IDLE:
            await connection.close()
            return
        now = time.monotonic()
        self._idle.append((now, connection))
        while now - self._idle[0][0] > MAX_IDLE_SECONDS:
            await self._idle.pop(0)[1].close()


@asynccontextmanager
async def _time_limit(seconds: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(seconds):
            yield
    except TimeoutError:
        raise psycopg.errors.ConnectionTimeout(f"no session answered within {seconds:.0f} s") from None
