"""One HTTP/1.1 connection: one request at a time, bodies decompressed as they arrive.

    ResponseError                  no usable response
    ├── BodyRejected               a body that is too large, a bomb, or cannot be decompressed
    ├── ConnectionDropped          closed before the end of the headers
    ├── TruncatedBody              closed before the end of the body
    ├── InvalidResponse            not HTTP
    ├── HeadersTooLarge            headers, or data between the chunks of a body, without end
    └── TooManyInterimResponses    "100 Continue" again and again

A body is complete or an error. A connection that sends more than its response is not used again. A crawl makes
thousands of requests a second, hence no streams, no timers, one future per request.
"""

import asyncio
from time import monotonic
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from kept.origins.web.http.decoding import BodyDecoder, BodyTooLarge, DecompressionBomb, UndecodableBody
from kept.origins.web.http.messages import Headers, HttpResponse, WantsBody
from kept.origins.web.http.timeouts import RequestDeadline

MAX_HEADER_BYTES = 16 * 1024  # of one header
MAX_HEADERS = 200
MAX_HEAD_BYTES = 256 * 1024  # of all headers; also of data between two pieces of a body
MAX_INTERIM_RESPONSES = 20
MAX_DRAINED_BYTES = 64 * 1024  # of an unwanted body: reading it is cheaper than another connection
DRAIN_SECONDS = 1.0


class ResponseError(Exception):
    """There is no usable response."""


class BodyRejected(ResponseError):
    def __init__(self, cause: DecompressionBomb | BodyTooLarge | UndecodableBody, status: int, elapsed: float) -> None:
        self.cause = cause
        self.status = status
        self.elapsed = elapsed


class ConnectionDropped(ResponseError):
    def __init__(self, *, nothing_received: bool) -> None:
        self.nothing_received = nothing_received


class TruncatedBody(ResponseError):
    pass


class InvalidResponse(ResponseError):
    pass


class HeadersTooLarge(ResponseError):
    pass


class TooManyInterimResponses(ResponseError):
    pass


class HttpRequest(NamedTuple):
    """One request, and which part of the body to read."""

    url: str
    raw: bytes
    max_bytes: int
    wants_body: WantsBody
    truncate: bool
    deadline: RequestDeadline
    started_at: float


class ConnectionOwner(Protocol):
    """The pool that a connection belongs to."""

    read_buffer: memoryview  # shared by all connections; its content is consumed before the next read

    def add(self, connection: "HttpConnection") -> None: ...

    def return_to_pool(self, connection: "HttpConnection") -> None: ...

    def remove(self, connection: "HttpConnection") -> None: ...


class HttpConnection(asyncio.BufferedProtocol):
    __slots__ = (
        "_bytes_since_body",
        "_decoder",
        "_drained_bytes",
        "_elapsed",
        "_header_pairs",
        "_headers",
        "_interim_count",
        "_is_drain_timed",
        "_keep_alive",
        "_outcome",
        "_owner",
        "_parser",
        "_request",
        "_response_future",
        "_status",
        "_transport",
        "idle_since",
        "tunnel",
    )

    def __init__(self, owner: ConnectionOwner) -> None:
        self.idle_since = 0.0
        self.tunnel: object = None  # kept alive as long as the connection through it
        self._owner = owner
        self._request: HttpRequest | None = None
        self._response_future: asyncio.Future[HttpResponse] | None = None
        self._parser = HttpResponseParser(self)
        # Real servers send bare line feeds, and invalid bytes in headers.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    async def send(self, request: HttpRequest) -> HttpResponse:
        """Send a request and return the response. Raises ResponseError. Cancelling it closes the connection."""
        if not self.is_open:
            raise ConnectionDropped(nothing_received=True)
        self._request = request
        self._header_pairs: list[tuple[bytes, bytes]] = []
        self._headers: Headers | None = None
        self._decoder: BodyDecoder | None = None
        self._outcome: HttpResponse | BodyRejected | None = None
        self._keep_alive = self._is_drain_timed = False
        self._bytes_since_body = self._drained_bytes = self._interim_count = 0
        waiting: asyncio.Future[HttpResponse] = asyncio.get_running_loop().create_future()
        self._response_future = waiting
        self._transport.write(request.raw)
        try:
            return await waiting
        except BaseException:
            if self._response_future is waiting:  # otherwise the connection serves another request already
                self.close()
            raise

    def close(self) -> None:
        waiting, self._response_future, self._request = self._response_future, None, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(ConnectionDropped(nothing_received=False))
        self._transport.abort()

    # Called by the event loop ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._owner.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._owner.read_buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._request is None:
            self.close()
            return
        self._request.deadline.reset_read_timeout()
        self._bytes_since_body += nbytes
        try:
            self._parser.feed_data(self._owner.read_buffer[:nbytes])
        except HttpParserCallbackError as error:
            self._fail(cast(Exception, error.__context__))
        except (HttpParserError, HttpParserUpgrade):
            self._fail(InvalidResponse())
        else:
            if self._outcome is not None:
                self._finish(self._outcome)
            elif self._bytes_since_body > MAX_HEAD_BYTES:
                self._fail(HeadersTooLarge())
            elif self._is_draining and not self._is_drain_timed:
                self._is_drain_timed = True
                asyncio.get_running_loop().call_later(DRAIN_SECONDS, self._stop_draining, self._response_future)

    def eof_received(self) -> None:
        if self._request is not None and self._headers is not None and _ends_with_connection(self._headers):
            self._finish(self._complete_response())

    def connection_lost(self, exc: Exception | None) -> None:
        self._owner.remove(self)
        if self._request is not None:
            self._fail(
                ConnectionDropped(nothing_received=not self._bytes_since_body)
                if self._headers is None
                else TruncatedBody()
            )
        self.tunnel = None
        del self._parser  # a reference cycle

    # Called by the parser ----------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._outcome is not None:
            raise InvalidResponse  # a second response; the first one is complete already

    def on_header(self, name: bytes, value: bytes) -> None:
        pairs = self._header_pairs
        if len(name) + len(value) > MAX_HEADER_BYTES or len(pairs) >= MAX_HEADERS:
            raise HeadersTooLarge
        if b"\0" in value:
            raise InvalidResponse
        pairs.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        request = self._request
        assert request is not None, "data without a request closes the connection"
        self._elapsed = monotonic() - request.started_at
        self._status = status
        self._headers = headers = Headers(self._header_pairs)
        self._header_pairs = []  # trailers are only counted
        length = int(headers.get("Content-Length", "0"))
        if not request.wants_body(status, headers):
            if length > MAX_DRAINED_BYTES:
                self._outcome = self._complete_response()
            return
        try:
            self._decoder = BodyDecoder(headers.get("Content-Encoding", ""), request.max_bytes)
            if length > request.max_bytes and not request.truncate:
                raise BodyTooLarge
        except (DecompressionBomb, BodyTooLarge, UndecodableBody) as error:
            self._outcome = self._reject_body(error)

    def on_body(self, body: bytes) -> None:
        if self._headers is None:
            raise InvalidResponse  # an interim response has no body
        if self._outcome is not None:
            return
        self._bytes_since_body = 0
        if self._decoder is None:
            self._drained_bytes += len(body)
            if self._drained_bytes > MAX_DRAINED_BYTES:
                self._outcome = self._complete_response()
            return
        try:
            self._decoder.feed(body)
        except (DecompressionBomb, BodyTooLarge, UndecodableBody) as error:
            self._outcome = self._reject_body(error)

    def on_message_complete(self) -> None:
        if self._headers is not None:
            self._keep_alive = self._parser.should_keep_alive()
            if self._outcome is None:
                self._outcome = self._complete_response()
            return
        self._header_pairs = []
        self._interim_count += 1
        if self._interim_count > MAX_INTERIM_RESPONSES:
            raise TooManyInterimResponses

    # End of a response -------------------------------------------------------------------------------------------

    @property
    def _is_draining(self) -> bool:
        return self._headers is not None and self._decoder is None

    def _complete_response(self) -> HttpResponse | BodyRejected:
        try:
            return self._response_with(self._decoder.body() if self._decoder is not None else b"")
        except UndecodableBody as error:
            return self._reject_body(error)

    def _reject_body(self, error: DecompressionBomb | BodyTooLarge | UndecodableBody) -> HttpResponse | BodyRejected:
        """Return the rejection of a body, or the response with its beginning where truncation is allowed."""
        if isinstance(error, BodyTooLarge) and self._request and self._request.truncate and self._decoder is not None:
            return self._response_with(self._decoder.partial_body())
        return BodyRejected(error, self._status, self._elapsed)

    def _response_with(self, body: bytes) -> HttpResponse:
        assert self._request is not None, "data without a request closes the connection"
        assert self._headers is not None, "headers precede the body"
        return HttpResponse(self._request.url, self._status, self._headers, body, self._elapsed)

    def _fail(self, error: Exception) -> None:
        """End the connection. A response that was complete before counts, and a drained body need not be."""
        self._keep_alive = False
        if self._outcome is None and self._is_draining:
            self._outcome = self._complete_response()
        self._finish(self._outcome or error)

    def _stop_draining(self, waiting: asyncio.Future[HttpResponse] | None) -> None:
        if waiting is not None and self._response_future is waiting:
            self._fail(TruncatedBody())

    def _finish(self, outcome: HttpResponse | Exception) -> None:
        waiting, self._response_future, self._request = self._response_future, None, None
        if waiting is not None and not waiting.done():
            if isinstance(outcome, Exception):
                waiting.set_exception(outcome)
            else:
                waiting.set_result(outcome)
        if self._keep_alive:
            self._owner.return_to_pool(self)
        else:
            self.close()


def _ends_with_connection(headers: Headers) -> bool:
    """Return whether the body ends with the connection."""
    return "Content-Length" not in headers and "chunked" not in ",".join(headers.get_all("Transfer-Encoding")).lower()
