"""Notices a database server that is there and says nothing: frozen, or behind a network that drops everything.

No timeout of the server can end such a session, and unix sockets have no keepalive. While sessions wait, a session of
the watch's own asks the server for a sign of life. If there is none, the sockets of all waiting sessions are shut down:
each waiter gets an error at once. A slow query on a server that answers others goes on.
"""

import asyncio
import os
import socket
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg

CHECK_AFTER_SECONDS = 0.25  # most sessions have their answer by then
SLICES = 8  # of the time in which the server has to answer

Interrupt = Callable[[], None]


class ServerWatch:
    """Interrupts everything that waits for a server that has said nothing for ``patience_seconds``."""

    def __init__(self, connect: Callable[[], Awaitable[psycopg.AsyncConnection[Any]]], patience_seconds: float) -> None:
        self._connect = connect
        self.patience_seconds = patience_seconds
        self._waiting: dict[object, tuple[float, Interrupt]] = {}  # since when, and how it is interrupted
        self._session: psycopg.AsyncConnection[Any] | None = None
        self._task: asyncio.Task[None] | None = None
        self._is_silent = False

    @contextmanager
    def guard(self, interrupt: Interrupt) -> Iterator[None]:
        """Call ``interrupt`` if the server falls silent while the block runs. Raises ConnectionTimeout if it is."""
        if self._is_silent:
            raise self.error()
        key = object()
        self._waiting[key] = (asyncio.get_running_loop().time(), interrupt)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._watch())
        try:
            yield
        finally:
            del self._waiting[key]

    def error(self) -> psycopg.errors.ConnectionTimeout:
        return psycopg.errors.ConnectionTimeout(f"the server has said nothing for {self.patience_seconds:g} s")

    async def close(self) -> None:
        if self._session:
            shut_down(self._session)
        if self._task:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _watch(self) -> None:
        """Check the server for as long as something waits for it, or it is silent."""
        loop = asyncio.get_running_loop()
        try:
            while self._waiting or self._is_silent:
                oldest = min((since for since, _ in self._waiting.values()), default=loop.time())
                await asyncio.sleep(max(0.0, oldest + CHECK_AFTER_SECONDS - loop.time()))
                if not self._is_silent and not any(
                    since <= loop.time() - CHECK_AFTER_SECONDS for since, _ in self._waiting.values()
                ):
                    continue
                self._is_silent = not await self._answers()
                if self._is_silent:
                    for _, interrupt in list(self._waiting.values()):
                        interrupt()
                await asyncio.sleep(CHECK_AFTER_SECONDS)
        finally:
            self._is_silent = False
            if self._session:
                shut_down(self._session)
                await self._session.close()
                self._session = None

    async def _answers(self) -> bool:
        """Return whether the server says anything, be it an error, within the time it has."""
        asking = asyncio.create_task(self._ask())
        for _ in range(SLICES):  # a single wait would blame the server if this process had stood still
            await asyncio.wait({asking}, timeout=self.patience_seconds / SLICES)
            if asking.done():
                return True
        if self._session:  # psycopg would answer a cancellation by asking the server, and wait for it again
            shut_down(self._session)
        else:
            asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)
        return False

    async def _ask(self) -> None:
        try:
            if self._session is None:
                self._session = await self._connect()
            await self._session.execute("")
        except psycopg.Error:
            session, self._session = self._session, None
            if session:
                await session.close()


def shut_down(connection: psycopg.AsyncConnection[Any]) -> None:
    """End the connection's socket, from either side of which nothing may be expected any more."""
    with suppress(OSError, psycopg.Error), socket.socket(fileno=os.dup(connection.fileno())) as shared:
        shared.shutdown(socket.SHUT_RDWR)
