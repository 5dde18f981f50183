"""Limits on connections, which uvicorn does not have: how many, how long a request may take to arrive, and how large.

A connection whose request is not whole owes the server something: it said nothing yet, sent half a header or a part of
a body, or is idle between two requests. When there are too many connections, those that have owed longest are closed,
so that a new one always finds a place; a request that is being answered is never cut off for another (decision 32).
"""

import asyncio
import ipaddress
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from enum import Enum, auto
from typing import Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

MAX_HEADER_BYTES = 32 * 1024  # request line and headers
MAX_HEADERS = 100
HEADER_SECONDS = 10.0  # from the connection, or from the first byte of a further request
BODY_SECONDS = 10.0  # and as long as the body arrives at this rate:
MIN_BODY_BYTES_PER_SECOND = 8 * 1024
KEEP_ALIVE_SECONDS = 75.0  # of an idle connection; longer than most clients and proxies keep theirs
UNREAD_SECONDS = 30.0  # in which a client has to read UNREAD_BYTES of its response
UNREAD_BYTES = 32 * 1024
MAX_HELD_BYTES = 16 * 1024 * 1024  # of all requests that are not whole
MAX_HELD_BODY_BYTES = 1024 * 1024  # of one: the rest of an upload is on disk
MAX_PIPELINED = 16  # requests of one connection that wait for the answer to an earlier one
SWEEP_SECONDS = 1.0
EVICTED_SHARE = 16  # one in so many is closed at a time: looking for them costs more than closing them


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections are open at once. 0: no limit."""

    total: int
    per_address: int
    is_proxy: Callable[[str], bool]  # connections of a proxy belong to many clients


class ConnectionTable:
    """The open connections of the server, and how much is held for requests that are not whole."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._connections: set[LimitedHttpProtocol] = set()
        self._by_address: Counter[str] = Counter()
        self.held_bytes = 0

    def is_proxy(self, address: str) -> bool:
        return self._limits.is_proxy(address)

    def add(self, connection: "LimitedHttpProtocol") -> bool:
        """Count a new connection. Returns False if it has to be refused: all others are being answered."""
        address = connection.address
        self._connections.add(connection)
        self._by_address[address] += 1
        limit = self._limits.per_address
        if limit and self._by_address[address] > limit and not connection.is_from_proxy:
            others = [one for one in self._connections if one.address == address and one is not connection]
            if not self._evict(others, limit):
                return False
        if self._limits.total and len(self._connections) > self._limits.total:
            return self._evict((one for one in self._connections if one is not connection), self._limits.total)
        return True

    def remove(self, connection: "LimitedHttpProtocol") -> None:
        if connection in self._connections:
            self._connections.discard(connection)
            self._by_address -= Counter([connection.address])

    def hold(self, size: int) -> None:
        """Count bytes of a request that is not whole (negative: no longer), and close others if it is too much."""
        self.held_bytes += size
        if size > 0 and self.held_bytes > MAX_HELD_BYTES:
            self._evict([one for one in self._connections if one.held_bytes], len(self._connections))

    async def sweep_forever(self) -> None:
        """Close connections whose time is over, again and again."""
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(SWEEP_SECONDS)
            now = loop.time()
            for connection in list(self._connections):
                connection.close_if_overdue(now)

    def _evict(self, connections: Iterable["LimitedHttpProtocol"], limit: int) -> bool:
        """Close those that have owed something longest. Returns False if none does."""
        owing = sorted((one for one in connections if one.owes_request), key=LimitedHttpProtocol.owing_since)
        for connection in owing[: max(1, limit // EVICTED_SHARE)]:
            connection.give_up("408 Request Timeout")
        return bool(owing)


class _Phase(Enum):
    SILENT = auto()  # a connection that has said nothing yet
    HEADER = auto()
    BODY = auto()
    WHOLE = auto()


class LimitedHttpProtocol(HttpToolsProtocol):
    """One connection, with deadlines and limits for what the client sends and reads."""

    def __init__(self, table: ConnectionTable, **parts: Any) -> None:
        super().__init__(**parts)
        self._table = table
        self._phase = _Phase.SILENT
        self._since = self.loop.time()  # when the phase began
        self._received = 0  # bytes of the body
        self._header_bytes = 0  # as they came, of a header that is not whole
        self._parsed_bytes = 0
        self._refusal = "400 Bad Request"
        self._unread: tuple[int, float] | None = None  # bytes of the response that were left, and when
        self.address = ""
        self.is_from_proxy = False
        self.held_bytes = 0

    # What the table asks

    @property
    def owes_request(self) -> bool:
        """Whether the server waits for the client, rather than the client for the server."""
        if self.transport.is_closing():
            return False
        if self._phase is _Phase.WHOLE:
            return self._is_answered and not self.transport.get_write_buffer_size()
        return not self.flow.read_paused

    def owing_since(self) -> float:
        """Return since when; a body that arrives at a good rate counts as a later one."""
        return self._since + (self._received / MIN_BODY_BYTES_PER_SECOND if self._phase is _Phase.BODY else 0)

    def give_up(self, status: str) -> None:
        """Close the connection. A client that is in the middle of a request is told why, if it has no answer yet."""
        if self._phase in (_Phase.HEADER, _Phase.BODY) and (self.cycle is None or not self.cycle.response_started):
            head = f"HTTP/1.1 {status}\r\nconnection: close\r\ncontent-length: 0\r\nretry-after: 1\r\n\r\n"
            self.transport.write(head.encode())
        self.transport.close()
        self._table.remove(self)

    def close_if_overdue(self, now: float) -> None:
        if self._is_unread(now):
            self.transport.abort()
        elif self._phase is _Phase.WHOLE:
            if self._is_answered and now - self._since > KEEP_ALIVE_SECONDS:
                self.transport.close()
        elif self._phase is not _Phase.BODY:
            if now - self._since > HEADER_SECONDS:
                self.give_up("408 Request Timeout")
        elif self.flow.read_paused:  # the server does not read: the client is not to blame
            self._since += SWEEP_SECONDS
        elif now - self.owing_since() > BODY_SECONDS:
            self.give_up("408 Request Timeout")

    # The protocol

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        peer = self.client[0] if self.client else ""
        self.address, self.is_from_proxy = address_block(peer), self._table.is_proxy(peer)
        if not self._table.add(self):
            self._phase = _Phase.HEADER
            self.give_up("503 Service Unavailable")

    def connection_lost(self, exc: Exception | None) -> None:
        self._table.remove(self)
        self._release()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        super().data_received(data)
        if self._phase is _Phase.HEADER and not self.transport.is_closing():
            # The parser reports a header when it is whole; one that never ends is counted here.
            self._header_bytes += len(data)
            self._hold(len(data))
            if self._header_bytes > MAX_HEADER_BYTES:
                self.give_up("431 Request Header Fields Too Large")

    def on_message_begin(self) -> None:
        super().on_message_begin()
        self._phase, self._since = _Phase.HEADER, self.loop.time()
        self._header_bytes = self._parsed_bytes = self._received = 0

    def on_url(self, url: bytes) -> None:
        super().on_url(url)
        self._count_header(len(url))

    def on_header(self, name: bytes, value: bytes) -> None:
        super().on_header(name, value)
        self._count_header(len(name) + len(value))

    def on_headers_complete(self) -> None:
        self._release()
        if len(self.pipeline) >= MAX_PIPELINED:
            raise _RequestRefused
        self._phase, self._since = _Phase.BODY, self.loop.time()
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._received += len(body)
        self._hold(min(len(body), MAX_HELD_BODY_BYTES - self.held_bytes))
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._release()
        self._phase, self._since = _Phase.WHOLE, self.loop.time()
        super().on_message_complete()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        if self._phase is _Phase.WHOLE:
            self._since = self.loop.time()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._unread = None

    def send_400_response(self, msg: str) -> None:
        """Refuse a request that is invalid or too large."""
        self._phase = _Phase.HEADER
        self.give_up(self._refusal)

    # Parts

    @property
    def _is_answered(self) -> bool:
        return self.cycle is None or (self.cycle.response_complete and not self.pipeline)

    def _count_header(self, size: int) -> None:
        self._parsed_bytes += size
        if self._parsed_bytes > MAX_HEADER_BYTES or len(self.headers) > MAX_HEADERS:
            self._refusal = "431 Request Header Fields Too Large"
            raise _RequestRefused

    def _hold(self, size: int) -> None:
        if size > 0:
            self.held_bytes += size
            self._table.hold(size)

    def _release(self) -> None:
        self._table.hold(-self.held_bytes)
        self.held_bytes = 0

    def _is_unread(self, now: float) -> bool:
        left = self.transport.get_write_buffer_size()
        if not left:
            self._unread = None
        elif self._unread is None or left <= self._unread[0] - UNREAD_BYTES:
            self._unread = (left, now)
        return self._unread is not None and now - self._unread[1] > UNREAD_SECONDS


class _RequestRefused(Exception):
    """Ends the parsing of a request."""


def address_block(address: str) -> str:
    """Return what one client has: an IPv4 address, or the /64 network of an IPv6 address."""
    try:
        parsed = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(parsed, ipaddress.IPv6Address):
        if parsed.ipv4_mapped:
            return str(parsed.ipv4_mapped)
        return str(ipaddress.ip_network((parsed, 64), strict=False))
    return str(parsed)
