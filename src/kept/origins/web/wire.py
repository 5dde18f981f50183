"""One connection that speaks HTTP/1.1: asked one thing at a time, and what comes is unpacked as it arrives.

    Broken                 nothing that could be read came of it
    ├── Unread             a body that is too large, a bomb, or cannot be unpacked
    ├── Dropped            the connection ended before the headers did
    ├── CutShort           it ended before the body did
    ├── Garbled            it is no HTTP
    ├── HeadTooLong        headers, or what stands between the pieces of a body, without end
    └── OnlyInterim        "100 Continue", and again, and again

A body that was asked for is whole, or there is none. What goes on after its end was asked for by nobody: such a
connection is not used again. A crawl asks thousands of times a second, hence no streams, no timers, one future each.
"""

import asyncio
from time import monotonic
from typing import NamedTuple, Protocol, cast

from httptools import HttpParserCallbackError, HttpParserError, HttpParserUpgrade, HttpResponseParser

from kept.origins.web.deadlines import Limit
from kept.origins.web.decoding import Bomb, Decoder, TooLarge, Undecodable
from kept.origins.web.exchange import Answer, Headers, Wanted

LONGEST_LINE = 16 * 1024  # of a header
MOST_HEADERS = 200
MOST_HEAD = 256 * 1024  # all headers; also what may come between two pieces of a body
MOST_INTERIM = 20
DRAINED = 64 * 1024  # of a body nobody wants: reading it is cheaper than another connection
DRAINED_WITHIN = 1.0


class Broken(Exception):
    """Nothing that could be read came of a request."""


class Unread(Broken):
    def __init__(self, why: Bomb | TooLarge | Undecodable, status: int, took: float) -> None:
        self.why = why
        self.status = status
        self.took = took


class Dropped(Broken):
    def __init__(self, *, silent: bool) -> None:
        self.silent = silent  # not a byte came


class CutShort(Broken):
    pass


class Garbled(Broken):
    pass


class HeadTooLong(Broken):
    pass


class OnlyInterim(Broken):
    pass


class Asked(NamedTuple):
    """One request, and what of its answer is wanted."""

    url: str
    request: bytes
    most: int
    wanted: Wanted
    cut: bool
    limit: Limit
    began: float


class Home(Protocol):
    """Whom a wire belongs to."""

    buffer: memoryview  # everything is read into it, and out of it before the next is

    def add(self, wire: "Wire") -> None: ...

    def put_back(self, wire: "Wire") -> None: ...

    def forget(self, wire: "Wire") -> None: ...


class Wire(asyncio.BufferedProtocol):
    __slots__ = (
        "_asked", "_decoder", "_drained", "_headers", "_home", "_interim", "_is_hurried", "_keeps", "_outcome",
        "_pairs", "_parser", "_status", "_took", "_transport", "_unsaid", "_waiting", "below", "idle_since",
    )  # fmt: skip

    def __init__(self, home: Home) -> None:
        self.idle_since = 0.0
        self.below: object = None  # what it goes through, if that has to live as long
        self._home = home
        self._asked: Asked | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._parser = HttpResponseParser(self)
        # As servers are: with bare line feeds, and with bytes in headers that should not be there.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_optional_cr_before_lf=True, lenient_spaces_after_chunk_size=True
        )

    @property
    def is_open(self) -> bool:
        return not self._transport.is_closing()

    async def ask(self, asked: Asked) -> Answer:
        """What comes of it. Raises Broken; whoever gives up waiting gives up the connection."""
        if not self.is_open:
            raise Dropped(silent=True)
        self._asked = asked
        self._pairs: list[tuple[bytes, bytes]] = []
        self._headers: Headers | None = None
        self._decoder: Decoder | None = None
        self._outcome: Answer | Unread | None = None
        self._keeps = self._is_hurried = False
        self._unsaid = self._drained = self._interim = 0
        waiting: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting = waiting
        self._transport.write(asked.request)
        try:
            return await waiting
        except BaseException:
            if self._waiting is waiting:  # else it is another's already
                self.close()
            raise

    def close(self) -> None:
        waiting, self._waiting, self._asked = self._waiting, None, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(Dropped(silent=False))
        self._transport.abort()

    # What the network does ---------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._home.add(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._home.buffer

    def buffer_updated(self, nbytes: int) -> None:
        if self._asked is None:
            self.close()
            return
        self._asked.limit.heard()
        self._unsaid += nbytes
        try:
            self._parser.feed_data(self._home.buffer[:nbytes])
        except HttpParserCallbackError as error:
            self._break(cast(Exception, error.__context__))
        except (HttpParserError, HttpParserUpgrade):
            self._break(Garbled())
        else:
            if self._outcome is not None:
                self._settle(self._outcome)
            elif self._unsaid > MOST_HEAD:
                self._break(HeadTooLong())
            elif self._is_draining and not self._is_hurried:
                self._is_hurried = True
                asyncio.get_running_loop().call_later(DRAINED_WITHIN, self._hurry, self._waiting)

    def eof_received(self) -> None:
        if self._asked is not None and self._headers is not None and _ends_with_connection(self._headers):
            self._settle(self._answered())

    def connection_lost(self, exc: Exception | None) -> None:
        self._home.forget(self)
        if self._asked is not None:
            self._break(Dropped(silent=not self._unsaid) if self._headers is None else CutShort())
        self.below = None
        del self._parser  # it holds on to us

    # What the parser finds ---------------------------------------------------------------------------------------

    def on_message_begin(self) -> None:
        if self._outcome is not None:
            raise Garbled  # and what it was asked for is settled all the same

    def on_header(self, name: bytes, value: bytes) -> None:
        pairs = self._pairs
        if len(name) + len(value) > LONGEST_LINE or len(pairs) >= MOST_HEADERS:
            raise HeadTooLong
        if b"\0" in value:
            raise Garbled
        pairs.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            return
        asked = self._asked
        assert asked is not None, "nobody else is listened to"
        self._took = monotonic() - asked.began
        self._status = status
        self._headers = headers = Headers(self._pairs)
        self._pairs = []  # trailers are counted, and nothing else
        length = int(headers.get("Content-Length", "0"))
        if not asked.wanted(status, headers):
            if length > DRAINED:
                self._outcome = self._answered()
            return
        try:
            self._decoder = Decoder(headers.get("Content-Encoding", ""), asked.most)
            if length > asked.most and not asked.cut:
                raise TooLarge
        except (Bomb, TooLarge, Undecodable) as error:
            self._outcome = self._refused(error)

    def on_body(self, body: bytes) -> None:
        if self._headers is None:
            raise Garbled  # an interim answer has none
        if self._outcome is not None:
            return
        self._unsaid = 0
        if self._decoder is None:
            self._drained += len(body)
            if self._drained > DRAINED:
                self._outcome = self._answered()
            return
        try:
            self._decoder.feed(body)
        except (Bomb, TooLarge, Undecodable) as error:
            self._outcome = self._refused(error)

    def on_message_complete(self) -> None:
        if self._headers is not None:
            self._keeps = self._parser.should_keep_alive()
            if self._outcome is None:
                self._outcome = self._answered()
            return
        self._pairs = []
        self._interim += 1
        if self._interim > MOST_INTERIM:
            raise OnlyInterim

    # How it ends -------------------------------------------------------------------------------------------------

    @property
    def _is_draining(self) -> bool:
        return self._headers is not None and self._decoder is None

    def _answered(self) -> Answer | Unread:
        try:
            return self._with(self._decoder.body() if self._decoder is not None else b"")
        except Undecodable as error:
            return self._refused(error)

    def _refused(self, error: Bomb | TooLarge | Undecodable) -> Answer | Unread:
        """A body that came, and cannot be had; unless the beginning of it will do."""
        if isinstance(error, TooLarge) and self._asked and self._asked.cut and self._decoder is not None:
            return self._with(self._decoder.so_far())
        return Unread(error, self._status, self._took)

    def _with(self, body: bytes) -> Answer:
        assert self._asked is not None, "nobody else is listened to"
        assert self._headers is not None, "there is no body before them"
        return Answer(self._asked.url, self._status, self._headers, body, self._took)

    def _break(self, error: Exception) -> None:
        """It goes no further. What was answered before is; and what nobody wants to read need not be whole."""
        self._keeps = False
        if self._outcome is None and self._is_draining:
            self._outcome = self._answered()
        self._settle(self._outcome or error)

    def _hurry(self, waiting: asyncio.Future[Answer] | None) -> None:
        if waiting is not None and self._waiting is waiting:
            self._break(CutShort())

    def _settle(self, outcome: Answer | Exception) -> None:
        waiting, self._waiting, self._asked = self._waiting, None, None
        if waiting is not None and not waiting.done():
            if isinstance(outcome, Exception):
                waiting.set_exception(outcome)
            else:
                waiting.set_result(outcome)
        if self._keeps:
            self._home.put_back(self)
        else:
            self.close()


def _ends_with_connection(headers: Headers) -> bool:
    """Whether the end of the connection is how the end of the body is told."""
    return "Content-Length" not in headers and "chunked" not in ",".join(headers.every("Transfer-Encoding")).lower()
