"""How much at once, how large and how long. What is beyond is refused at once, so that the rest is answered."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.errors import KeptError
from kept.serve.problems import problem, translated
from kept.settings import ServeSettings

LARGEST_BODY = 1024 * 1024
UPLOADS = "/api/v1/uploads"
ROOM_FOR_FIELDS = 1024 * 1024
DRAINED = 8 * 1024 * 1024  # bytes, of a body that is too large
DRAIN_SECONDS = 2.0
SLOWEST = 8 * 1024  # bytes a second, of a body that is waited for


class _Full(Exception):
    """No more streams."""


class Bounded:
    """Keeps requests within bounds, and answers for those behind it that fail."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app = app
        self._settings = settings
        self._requests = 0
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        if self._settings.at_once and self._requests >= self._settings.at_once:
            return await _busy()(scope, receive, send)
        one = _Request(self, scope, receive, send)
        self._requests += 1
        try:
            return await one.run(self._app)
        finally:
            one.leave()

    def become_stream(self) -> Callable[[], None]:
        """One request less, one stream more; how it ends."""
        if self._settings.streams and self._streams >= self._settings.streams:
            raise _Full
        self._requests -= 1
        self._streams += 1
        return self.end_stream

    def end_request(self) -> None:
        self._requests -= 1

    def end_stream(self) -> None:
        self._streams -= 1

    @property
    def seconds(self) -> float | None:
        return self._settings.seconds or None

    def largest(self, path: str) -> int:
        return self._settings.upload_mb * 1024 * 1024 + ROOM_FOR_FIELDS if path == UPLOADS else LARGEST_BODY


class _Request:
    """One request under way."""

    def __init__(self, bounds: Bounded, scope: Scope, receive: Receive, send: Send) -> None:
        self._bounds = bounds
        self._scope, self._receive, self._send = scope, receive, send
        self._left = bounds.largest(scope["path"])
        self._began, self._received = asyncio.get_running_loop().time(), 0
        self._started = False
        self._deadline: asyncio.Timeout | None = None
        self.leave = bounds.end_request

    async def run(self, app: ASGIApp) -> None:
        length = Headers(scope=self._scope).get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._left:
            return await self._answer(*_TOO_LARGE)
        try:
            async with asyncio.timeout(self._bounds.seconds) as self._deadline:
                return await app(self._scope, self.receive, self.send)
        except TimeoutError:
            return await self._answer(503, "This took too long. Try again later, or ask for less.")
        except _Full:
            return await _busy()(self._scope, self._receive, self._send)
        except HTTPException as error:
            return await self._answer(error.status_code, str(error.detail))
        except KeptError as error:
            if self._started:
                raise
            return await translated(error)(self._scope, self._receive, self._send)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            length = len(message.get("body", b""))
            self._left, self._received = self._left - length, self._received + length
            if self._left < 0:
                raise HTTPException(*_TOO_LARGE)
            self._put_off()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if Headers(raw=message.get("headers", [])).get("content-type", "").startswith("text/event-stream"):
                self.leave = self._bounds.become_stream()
            self._started = True
            if self._deadline:
                self._deadline.reschedule(None)
        await self._send(message)

    def _put_off(self) -> None:
        """Somebody who goes on sending is waited for, but not byte by byte: others want in."""
        seconds = self._bounds.seconds
        if seconds and self._deadline and not self._started and not self._deadline.expired():
            in_time = self._began + self._received / SLOWEST
            self._deadline.reschedule(min(asyncio.get_running_loop().time(), in_time) + seconds)

    async def _drain(self) -> None:
        """Most who send listen only when they are done, so a little more is taken, and thrown away."""
        left = DRAINED
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_SECONDS):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return

    async def _answer(self, status: int, detail: str) -> None:
        if not self._started:
            if status == 413:
                await self._drain()
            headers = {"Retry-After": "5"} if status == 503 else {"Connection": "close"}
            await problem(status, detail, headers)(self._scope, self._receive, self._send)


_TOO_LARGE = (413, "This is larger than the server takes.")


def _busy() -> ASGIApp:
    return problem(503, "The server has its hands full.", {"Retry-After": "1"})
