"""Server-sent events: one loop that waits for changes and writes what is new."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from fastapi import Request, Response
from starlette.responses import StreamingResponse

from kept.errors import KeptError, StoreError
from kept.server.responses import to_json
from kept.service import events
from kept.service.context import Services

POLL_SECONDS = 0.5
RECONNECT_MILLISECONDS = 1000


class ChangePoller:
    """Polls the database for changes: once for all open streams, and only while there are any."""

    def __init__(self, services: Services, shutting_down: asyncio.Event) -> None:
        self._services = services
        self._shutting_down = shutting_down
        self._listeners = 0
        self._last_token = ""
        self._changed = asyncio.Event()
        self._poll_task: asyncio.Task[None] | None = None
        self.sequence = 0  # grows with every change

    @property
    def is_shutting_down(self) -> bool:
        return self._shutting_down.is_set()

    async def wait_for_change(self, sequence: int, timeout: float) -> None:
        """Return when something has changed since ``sequence``, when the server shuts down, or after the timeout."""
        self._listeners += 1
        try:
            if self._poll_task is None or self._poll_task.done():
                self._poll_task = asyncio.create_task(self._poll())
            if self.sequence == sequence:
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await self._changed.wait()
        finally:
            self._listeners -= 1

    async def _poll(self) -> None:
        while self._listeners:
            with suppress(StoreError):  # the streams' own reads report it
                token = await events.change_token(self._services.db)
                if token != self._last_token or self._shutting_down.is_set():
                    self._last_token, self.sequence = token, self.sequence + 1
                    self._changed.set()
                    self._changed = asyncio.Event()
            await asyncio.sleep(POLL_SECONDS)


@dataclass(frozen=True, slots=True, kw_only=True)
class SseEvent:
    """One event; a client that reconnects sends the id of the last one it got."""

    kind: str
    data: Any
    id: str | None = None

    def encode(self) -> bytes:
        head = f"id: {self.id}\n" if self.id is not None else ""
        return f"{head}event: {self.kind}\ndata: ".encode() + to_json(self.data) + b"\n\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class SseBatch:
    """Events that are sent together, and whether to wait for a change before the next batch is read."""

    events: Sequence[SseEvent]
    wait: bool


def event_stream_response(
    request: Request,
    batches: AsyncIterator[SseBatch],
    *,
    wait_seconds: float,
    headers: Mapping[str, str] | None = None,
) -> Response:
    """Send batches of events until there are no more, the server shuts down, or reading one fails: then the client
    reconnects. No wait between two batches is longer than ``wait_seconds``."""
    return StreamingResponse(
        _stream(request.app.state.change_poller, batches, wait_seconds),
        media_type="text/event-stream",
        headers={"Cache-Control": "no-store", "X-Accel-Buffering": "no", **(headers or {})},
    )


async def _stream(poller: ChangePoller, batches: AsyncIterator[SseBatch], wait_seconds: float) -> AsyncIterator[bytes]:
    yield f"retry: {RECONNECT_MILLISECONDS}\n\n".encode()
    while not poller.is_shutting_down:
        sequence = poller.sequence  # taken before the read, so that a change during the read is not missed
        try:
            batch = await anext(batches)
        except (StopAsyncIteration, KeptError):
            return
        for event in batch.events:
            yield event.encode()
        if batch.wait:
            await poller.wait_for_change(sequence, wait_seconds)
            yield b": still here\n\n"
