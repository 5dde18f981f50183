"""Middleware that limits concurrent requests, their size and their time, and refuses at once what exceeds them."""

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
MAX_DRAINED_BYTES = 8 * 1024 * 1024  # of a body that is too large
DRAIN_TIMEOUT_SECONDS = 2.0
MIN_UPLOAD_BYTES_PER_SECOND = 8 * 1024


class _TooManyStreams(Exception):
    """The limit of open streams is reached."""


class RequestLimitMiddleware:
    """Enforces the limits, and turns errors of inner middleware into responses."""

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
        request = _LimitedRequest(self, scope, receive, send)
        self._requests += 1
        try:
            return await request.run(self._app)
        finally:
            request.finish()

    def convert_to_stream(self) -> Callable[[], None]:
        """Count a request as a stream from now on. Returns the function to call at its end."""
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
    """One request in progress."""

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
            return await self._respond(503, "The request took too long. Try again later, or ask for less.")
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
        """Give a client that keeps sending more time, unless it sends too slowly."""
        seconds = self._limits.timeout_seconds
        if seconds and self._deadline and not self._response_started and not self._deadline.expired():
            earned = self._started_at + self._received / MIN_UPLOAD_BYTES_PER_SECOND
            self._deadline.reschedule(min(asyncio.get_running_loop().time(), earned) + seconds)

    async def _drain(self) -> None:
        """Read and drop more of the body: most clients read the response only after they have sent everything."""
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


_TOO_LARGE = (413, "The request is larger than the server accepts.")


def _busy_response() -> ASGIApp:
    return problem_response(503, "The server is busy: too many requests at once.", {"Retry-After": "1"})
