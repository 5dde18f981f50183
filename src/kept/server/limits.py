"""Middleware that limits concurrent requests, their size and their time, and refuses at once what exceeds them.

A request counts from the moment it is whole: clients that send their bodies slowly take no place of others. What they
take meanwhile, ``connections`` limits. Health checks are never counted.
"""

import asyncio
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.errors import KeptError
from kept.server.connections import MIN_BODY_BYTES_PER_SECOND, address_block
from kept.server.problems import error_response, problem_response
from kept.server.proxies import TrustedProxies
from kept.settings import ServeSettings

MAX_BODY_BYTES = 1024 * 1024
UPLOADS_PATH = "/api/v1/uploads"
FORM_OVERHEAD_BYTES = 1024 * 1024
MAX_DRAINED_BYTES = 8 * 1024 * 1024  # of a body that is too large
DRAIN_TIMEOUT_SECONDS = 2.0
MAX_ARRIVING_UPLOADS = 16
HEALTH_PATHS = ("/healthz", "/readyz")


class _TooManyRequests(Exception):
    """A limit of requests or of open streams is reached."""


class RequestLimitMiddleware:
    """Enforces the limits, and turns errors of inner middleware into responses."""

    def __init__(self, app: ASGIApp, settings: ServeSettings) -> None:
        self._app = app
        self._settings = settings
        self._proxies = TrustedProxies.from_settings(settings.proxies)
        self._requests = 0
        self._streams = 0
        self._uploads = 0  # that are arriving
        self._by_address: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            return await self._app(scope, receive, send)
        address = self._proxies.client_address(scope)
        client = address_block(address) if address and scope["path"] not in HEALTH_PATHS else ""
        if client and self._settings.per_address and self._by_address[client] >= self._settings.per_address:
            return await _busy_response()(scope, receive, send)
        request = _LimitedRequest(self, scope, receive, send)
        self._by_address[client] += 1
        try:
            return await request.run(self._app)
        finally:
            request.finish()
            self._by_address[client] -= 1
            if not self._by_address[client]:
                del self._by_address[client]

    def begin_upload(self) -> Callable[[], None]:
        """Count an upload that is arriving. Returns the function to call at its end."""
        if self._settings.at_once and self._uploads >= MAX_ARRIVING_UPLOADS:
            raise _TooManyRequests
        self._uploads += 1
        return self.end_upload

    def begin_request(self) -> Callable[[], None]:
        """Count a request that is whole. Returns the function to call at its end."""
        if self._settings.at_once and self._requests >= self._settings.at_once:
            raise _TooManyRequests
        self._requests += 1
        return self._end_request

    def begin_stream(self) -> Callable[[], None]:
        """Count a stream. Returns the function to call at its end."""
        if self._settings.streams and self._streams >= self._settings.streams:
            raise _TooManyRequests
        self._streams += 1
        return self._end_stream

    def end_upload(self) -> None:
        self._uploads -= 1

    def _end_request(self) -> None:
        self._requests -= 1

    def _end_stream(self) -> None:
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
        self._body: bytes | None = None  # of a request that is whole, until the app has read it
        self.finish: Callable[[], None] = lambda: None

    async def run(self, app: ASGIApp) -> None:
        length = Headers(scope=self._scope).get("content-length", "")
        if length.isdigit() and int(length[:20]) > self._bytes_left:
            return await self._respond(*_TOO_LARGE)
        try:
            async with asyncio.timeout(self._limits.timeout_seconds) as self._deadline:
                if not await self._wait_until_whole():
                    return None
                return await app(self._scope, self.receive, self.send)
        except TimeoutError:
            return await self._respond(503, "The request took too long. Try again later, or ask for less.")
        except _TooManyRequests:
            return await _busy_response()(self._scope, self._receive, self._send)
        except HTTPException as error:
            return await self._respond(error.status_code, str(error.detail))
        except KeptError as error:
            if self._response_started:
                raise
            return await error_response(error)(self._scope, self._receive, self._send)

    async def _wait_until_whole(self) -> bool:
        """Read the body, and count the request. Returns False if the client left. An upload is read by the app."""
        if self._scope["path"] in HEALTH_PATHS:
            return True
        if not _has_body(self._scope):
            self._count_as(self._limits.begin_request)
        elif self._scope["path"] == UPLOADS_PATH:
            self._count_as(self._limits.begin_upload)
        else:
            body, has_more = bytearray(), True
            while has_more:
                message = await self._receive_limited()
                if message["type"] == "http.disconnect":
                    return False
                body += message.get("body", b"")
                has_more = message.get("more_body", False)
            self._body = bytes(body)
            self._count_as(self._limits.begin_request)
        return True

    def _count_as(self, begin: Callable[[], Callable[[], None]]) -> None:
        self.finish, end = begin(), self.finish
        end()

    async def receive(self) -> Message:
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        message = await self._receive_limited()
        is_whole_upload = self.finish == self._limits.end_upload and not message.get("more_body")
        if message["type"] == "http.request" and is_whole_upload:
            self._count_as(self._limits.begin_request)
        return message

    async def _receive_limited(self) -> Message:
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
                self._count_as(self._limits.begin_stream)
            self._response_started = True
            if self._deadline:
                self._deadline.reschedule(None)
        await self._send(message)

    def _extend_deadline(self) -> None:
        """Give a client that keeps sending more time, unless it sends too slowly."""
        seconds = self._limits.timeout_seconds
        if seconds and self._deadline and not self._response_started and not self._deadline.expired():
            earned = self._started_at + self._received / MIN_BODY_BYTES_PER_SECOND
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


def _has_body(scope: Scope) -> bool:
    headers = Headers(scope=scope)
    return headers.get("content-length", "0") != "0" or "transfer-encoding" in headers


def _busy_response() -> ASGIApp:
    return problem_response(503, "The server is busy: too many requests at once.", {"Retry-After": "1"})
