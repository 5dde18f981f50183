"""Send many concurrent requests from one process, over connections that stay open.

``offer`` sends at a fixed rate, whether or not the last response has arrived, and counts the time of a query from its
scheduled moment: a slow server is not flattered. ``flood`` sends as fast as responses arrive.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

import aiohttp

SECONDS = 30  # for an answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """A response; status 0 means that none came."""

    status: int
    seconds: float
    retry_after: str | None = None


@asynccontextmanager
async def connected(url: str, number: int, headers: Mapping[str, str]) -> AsyncIterator[list[aiohttp.ClientSession]]:
    """Open a number of connections, each in a session of its own."""
    async with AsyncExitStack() as stack:
        sessions = []
        for _ in range(number):
            connector = aiohttp.TCPConnector(limit=1, keepalive_timeout=3600)
            timeout = aiohttp.ClientTimeout(total=SECONDS)
            session = aiohttp.ClientSession(url, connector=connector, headers=headers, timeout=timeout)
            sessions.append(await stack.enter_async_context(session))
            await _request(session, "/healthz", time.perf_counter())
        yield sessions


async def offer(
    url: str, paths: Sequence[str], stop: asyncio.Event, *, connections: int, a_second: float, **headers: str
) -> list[Answer]:
    """Send queries at a fixed rate, in turn over all connections, until ``stop`` is set."""
    answers: list[Answer] = []
    async with connected(url, connections, headers) as sessions, asyncio.TaskGroup() as tasks:
        began = time.perf_counter()
        number = 0
        while not stop.is_set():
            due = began + number / a_second
            await asyncio.sleep(max(0.0, due - time.perf_counter()))
            session, path = sessions[number % connections], paths[number % len(paths)]
            tasks.create_task(_add(answers, session, path, due))
            number += 1
    return answers


async def flood(url: str, paths: Sequence[str], *, connections: int, each: int, **headers: str) -> list[Answer]:
    """Send ``each`` requests over every connection, one after the other."""
    answers: list[Answer] = []

    async def request_all(first: int, session: aiohttp.ClientSession) -> None:
        for number in range(first, first + each):
            await _add(answers, session, paths[number % len(paths)], time.perf_counter())

    async with connected(url, connections, headers) as sessions, asyncio.TaskGroup() as tasks:
        for number, session in enumerate(sessions):
            tasks.create_task(request_all(number * each, session))
    return answers


async def _add(answers: list[Answer], session: aiohttp.ClientSession, path: str, due: float) -> None:
    answers.append(await _request(session, path, due))


async def _request(session: aiohttp.ClientSession, path: str, due: float) -> Answer:
    try:
        async with session.get(path) as response:
            await response.read()
            status, retry_after = response.status, response.headers.get("Retry-After")
    except (aiohttp.ClientError, TimeoutError):
        status, retry_after = 0, None
    return Answer(status=status, seconds=time.perf_counter() - due, retry_after=retry_after)
