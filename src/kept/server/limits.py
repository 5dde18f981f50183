"""How much at once, how large and how long. What is beyond is refused at once, so that the rest is answered."""

import asyncio
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.errors import KeptError
from kept.server.problems import error_response, problem_response
from kept.settings import ServeSettings

MAX_BODY_BYTES = 1024 * 1024
UPLOADS_PATH = "/api/v1/uploads"
FORM_OVERHEAD_BYTES = 1024 * 1024
MAX_DRAINED_BYTES = 8 * 1024 * 1024  # bytes, of a body that is too large
DRAIN_TIMEOUT_SECONDS = 2.0
MIN_UPLOAD_BYTES_PER_SECOND = 8 * 1024  # bytes a second, of a body that is waited for


class _TooManyStreams(Exception):
    """No more streams."""


class RequestLimitMiddleware:
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
            return await _busy_response()(scope, receive, send)
        one = _LimitedRequest(self, scope, receive, send)
        self._requests += 1
        try:
            return await one.run(self._app)
        finally:
            one.finish()

    def convert_to_stream(self) -> Callable[[], None]:
        """One request less, one stream more; how it ends."""
        if self._settings.streams and self._streams >= self._settings.streams:
            raise _TooManyStreams
        self._requests -= 1
        self._streams += 1
        return self.end_stream

    def end_request(self) -> None:
        self._requests -= 1

    def end_stream(self) -> None:
        self._streams -= 1

    @property
    def timeout_seconds(self) -> float | None:
        return self._settings.seconds or None

    def max_body_bytes(self, path: str) -> int:
        return self._settings.upload_mb * 1024 * 1024 + FORM_OVERHEAD_BYTES if path == UPLOADS_PATH else MAX_BODY_BYTES


class _LimitedRequest:
    """One request under way."""

    def __init__(self, limits: RequestLimitMiddleware, scope: Scope, receive: Receive, send: Send) -> None:
        self._limits = limits
        self._scope, self._receive, self._send = scope, receive, send
        self._bytes_left = limits.max_body_bytes(scope["path"])
        self._started_at, self._received = asyncio.get_running_loop().time(), 0
        self._response_started = False
        self._deadline: asyncio.Timeout | None = None
        self.finish = limits.end_request

    async def run(self, app: ASGIApp) -> None:
        length = Headers(scope=self._scope).get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._bytes_left:
            return await self._respond(*_TOO_LARGE)
        try:
            async with asyncio.timeout(self._limits.timeout_seconds) as self._deadline:
                return await app(self._scope, self.receive, self.send)
        except TimeoutError:
            return await self._respond(503, "This took too long. Try again later, or ask for less.")
        except _TooManyStreams:
            return await _busy_response()(self._scope, self._receive, self._send)
        except HTTPException as error:
            return await self._respond(error.status_code, str(error.detail))
        except KeptError as error:
            if self._response_started:
                raise
            return await error_response(error)(self._scope, self._receive, self._send)

    async def receive(self) -> Message:
        message = await self._receive()
        if message["type"] == "http.request":
            length = len(message.get("body", b""))
            self._bytes_left, self._received = self._bytes_left - length, self._received + length
            if self._bytes_left < 0:
                raise HTTPException(*_TOO_LARGE)
            self._extend_deadline()
        return message

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            if Headers(raw=message.get("headers", [])).get("content-type", "").startswith("text/event-stream"):
                self.finish = self._limits.convert_to_stream()
            self._response_started = True
            if self._deadline:
                self._deadline.reschedule(None)
        await self._send(message)

    def _extend_deadline(self) -> None:
        """Somebody who goes on sending is waited for, but not byte by byte: others want in."""
        seconds = self._limits.timeout_seconds
        if seconds and self._deadline and not self._response_started and not self._deadline.expired():
            in_time = self._started_at + self._received / MIN_UPLOAD_BYTES_PER_SECOND
            self._deadline.reschedule(min(asyncio.get_running_loop().time(), in_time) + seconds)

    async def _drain(self) -> None:
        """Most who send listen only when they are done, so a little more is taken, and thrown away."""
        left = MAX_DRAINED_BYTES
        with suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_TIMEOUT_SECONDS):
                while left > 0:
                    message = await self._receive()
                    left -= len(message.get("body", b""))
                    if not message.get("more_body"):
                        return

    async def _respond(self, status: int, detail: str) -> None:
        if not self._response_started:
            if status == 413:
                await self._drain()
            headers = {"Retry-After": "5"} if status == 503 else {"Connection": "close"}
            await problem_response(status, detail, headers)(self._scope, self._receive, self._send)


_TOO_LARGE = (413, "This is larger than the server takes.")


def _busy_response() -> ASGIApp:
    return problem_response(503, "The server has its hands full.", {"Retry-After": "1"})
