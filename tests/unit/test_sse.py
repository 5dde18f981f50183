"""The loop of server-sent events, without a server."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

from kept.errors import StoreError
from kept.server import sse
from kept.server.sse import ChangePoller, SseBatch, SseEvent

RETRY = b"retry: 1000\n\n"
KEEPALIVE = b": still here\n\n"


class Poller(ChangePoller):
    """Counts waits instead of waiting; shuts down after a number of them."""

    def __init__(self, waits: int = 100) -> None:
        super().__init__(services=None, shutting_down=asyncio.Event())  # type: ignore[arg-type]
        self.waited_since: list[int] = []
        self._waits = waits

    async def wait_for_change(self, sequence: int, timeout: float) -> None:
        self.waited_since.append(sequence)
        if len(self.waited_since) == self._waits:
            self._shutting_down.set()


def event(number: int) -> SseEvent:
    return SseEvent(kind="page", data={"number": number}, id=str(number))


def stream(poller: Poller, batches: AsyncIterator[SseBatch]) -> list[bytes]:
    async def run() -> list[bytes]:
        return [chunk async for chunk in sse._stream(poller, batches, 1.0)]

    return asyncio.run(run())


def test_events_are_written_in_order_and_the_stream_ends_with_its_batches() -> None:
    async def batches() -> AsyncIterator[SseBatch]:
        yield SseBatch(events=[event(1), event(2)], wait=False)
        yield SseBatch(events=[], wait=True)
        yield SseBatch(events=[SseEvent(kind="job", data="é\n")], wait=False)

    poller = Poller()
    assert stream(poller, batches()) == [
        RETRY,
        b'id: 1\nevent: page\ndata: {"number":1}\n\n',
        b'id: 2\nevent: page\ndata: {"number":2}\n\n',
        KEEPALIVE,
        'event: job\ndata: "é\\n"\n\n'.encode(),
    ]
    assert len(poller.waited_since) == 1


def test_a_change_during_a_read_ends_the_wait_after_it() -> None:
    poller = Poller()

    async def batches() -> AsyncIterator[SseBatch]:
        poller.sequence += 1  # something changes while the first batch is read
        yield SseBatch(events=[], wait=True)

    stream(poller, batches())
    assert poller.waited_since == [0], "the wait is for a change since the time before the read"


def test_a_read_that_fails_ends_the_stream_so_that_the_client_reconnects() -> None:
    async def batches() -> AsyncIterator[SseBatch]:
        yield SseBatch(events=[event(1)], wait=False)
        raise StoreError("The database is gone.")

    assert stream(Poller(), batches()) == [RETRY, event(1).encode()]


def test_the_stream_ends_when_the_server_shuts_down() -> None:
    async def batches() -> AsyncIterator[SseBatch]:
        while True:
            yield SseBatch(events=[], wait=True)

    assert stream(Poller(waits=3), batches()) == [RETRY, KEEPALIVE, KEEPALIVE, KEEPALIVE]


def test_streams_share_one_poll_that_ends_with_them(monkeypatch: Any) -> None:
    polls = 0

    async def change_token(db: object) -> str:
        nonlocal polls
        polls += 1
        return str(polls)

    class Services:
        db = None

    async def run() -> tuple[int, bool]:
        monkeypatch.setattr(sse.events, "change_token", change_token)
        monkeypatch.setattr(sse, "POLL_SECONDS", 0.01)
        poller = ChangePoller(Services(), asyncio.Event())  # type: ignore[arg-type]
        await asyncio.gather(*(poller.wait_for_change(poller.sequence, 30) for _ in range(50)))
        seen = polls
        assert poller._poll_task is not None
        await asyncio.wait_for(poller._poll_task, 5)
        return seen, poller.sequence > 0

    seen, has_changed = asyncio.run(run())
    assert (seen, has_changed) == (1, True)
