"""A web server on loopback that does everything wrong: faults 11, 13 and 14, one path each.

    async with hostile() as site:
        await origin.visit(entry(site.url("/truncated")), conditional=False)

It writes raw bytes, because an HTTP library would not send invalid responses. Requests are in ``site.requests``.
"""

import asyncio
import gzip
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from functools import cache

import brotli

from kept.origins.web.http.decoding import zstd  # wherever this Python has it

PAGE = b"<!doctype html><title>A page</title><h1>A page</h1><p>It says enough to be worth keeping.</p>"
MODIFIED = "Sun, 01 Nov 2026 10:00:00 GMT"
GIB = 1 << 30
_PIECE = bytes(1 << 16)


@dataclass
class Request:
    path: str
    headers: dict[str, str]


@dataclass
class HostileSite:
    port: int
    requests: list[Request] = field(default_factory=list)
    robots: bytes | None = None  # a whole answer; None: there is no robots.txt
    drips: asyncio.Queue[str] = field(default_factory=asyncio.Queue)  # of /drips/, as they begin

    @property
    def origin(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def url(self, path: str) -> str:
        return self.origin + path

    def count_requests(self, path: str) -> int:
        return sum(request.path == path for request in self.requests)


class Reply:
    """The connection of a handler, and how fast it sends."""

    def __init__(self, writer: asyncio.StreamWriter, request: Request, site: HostileSite) -> None:
        self.writer = writer
        self.request = request
        self.site = site

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def page(self, status: str = "200 OK", *headers: str, body: bytes = PAGE, type: str = "text/html") -> None:
        lines = [f"HTTP/1.1 {status}", f"Content-Length: {len(body)}", *headers]
        if type:
            lines.append(f"Content-Type: {type}")
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)

    async def drip(self, data: bytes, *, every: float = 0.05) -> None:
        for byte in data:
            await self.send(bytes([byte]))
            await asyncio.sleep(every)

    def reset(self) -> None:
        sock = self.writer.get_extra_info("socket")
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Handler = Callable[[Reply], Awaitable[None]]
PATHS: dict[str, Handler] = {}


def at(path: str) -> Callable[[Handler], Handler]:
    def put(handler: Handler) -> Handler:
        PATHS[path] = handler
        return handler

    return put


def answers(path: str, status: str, *headers: str, **more: object) -> None:
    async def handler(reply: Reply) -> None:
        await reply.page(status, *headers, **more)  # type: ignore[arg-type]

    PATHS[path] = handler


# Plain answers ---------------------------------------------------------------------------------------------------

answers("/good", "200 OK")
answers("/strong", "200 OK", 'ETag: "strong"')
answers("/weak", "200 OK", 'ETag: W/"weak"')
answers("/dated", "200 OK", f"Last-Modified: {MODIFIED}")
answers("/204", "204 No Content", body=b"")
answers("/404", "404 Not Found", body=b"nothing here" * 100)
answers("/410", "410 Gone")
answers("/401", "401 Unauthorized", "WWW-Authenticate: Basic")
answers("/403", "403 Forbidden")
answers("/418", "418 I'm a teapot")
answers("/299", "299 Whatever")
answers("/500", "500 Internal Server Error", body=b"x" * 100_000)
answers("/503", "503 Service Unavailable", "Retry-After: 7")
answers("/503-much-later", "503 Service Unavailable", "Retry-After: 86400")
answers("/429-much-later", "429 Too Many Requests", "Retry-After: 86400")
answers("/429", "429 Too Many Requests", "Retry-After: 2")
answers("/429-nonsense", "429 Too Many Requests", "Retry-After: soon")
answers("/304", "304 Not Modified", body=b"")
answers("/image", "200 OK", type="image/png", body=b"\x89PNG" * 1000)
answers("/no-type", "200 OK", type="")
answers("/no-type-binary", "200 OK", type="", body=bytes(range(256)) * 10)
answers("/octets", "200 OK", type="application/octet-stream", body=b"%PDF-1.7 and so on")
answers("/empty", "200 OK", body=b"")
answers("/noindex", "200 OK", "X-Robots-Tag: noindex, nofollow")
answers("/noindex-for-others", "200 OK", "X-Robots-Tag: otherbot: noindex")
answers("/large", "200 OK", body=bytes(3_000_000))


@at("/latin-1")
async def _(reply: Reply) -> None:
    head = f'HTTP/1.1 200 OK\r\nContent-Length: {len(PAGE)}\r\nETag: "é"\r\nContent-Type: text/html; charset=é\r\n\r\n'
    await reply.send(head.encode("latin-1") + PAGE)


@at("/301-latin-1")
async def _(reply: Reply) -> None:
    head = "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nLocation: /café\r\n\r\n"
    await reply.send(head.encode("latin-1"))


@at("/claims-large")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 99999999999\r\n\r\n" + PAGE)


@at("/429-date")
async def _(reply: Reply) -> None:
    when = format_datetime(datetime.now(UTC) + timedelta(seconds=90), usegmt=True)
    await reply.page("429 Too Many Requests", f"Retry-After: {when}")


@at("/validated")
async def _(reply: Reply) -> None:
    headers = reply.request.headers
    if headers.get("if-none-match") == 'W/"v1"' or headers.get("if-modified-since") == MODIFIED:
        await reply.page("304 Not Modified", 'ETag: W/"v1"', body=b"")
    else:
        await reply.page("200 OK", 'ETag: W/"v1"', f"Last-Modified: {MODIFIED}")


@at("/echo")
async def _(reply: Reply) -> None:
    await reply.page(type="text/plain", body=repr(sorted(reply.request.headers.items())).encode())


# Connections that end badly --------------------------------------------------------------------------------------


@at("/reset")
async def _(reply: Reply) -> None:
    reply.reset()


@at("/reset-midway")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500000\r\n\r\n" + PAGE * 100)
    await asyncio.sleep(0.05)
    reply.reset()


@at("/closed")
async def _(reply: Reply) -> None:
    reply.writer.close()


@at("/truncated")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5000\r\n\r\n" + PAGE)
    reply.writer.close()


@at("/longer-than-it-says")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 20\r\n\r\n" + PAGE)


@at("/chunks-cut")
async def _(reply: Reply) -> None:
    await reply.send(_CHUNKED + b"5f\r\n" + PAGE[:50])
    reply.writer.close()


@at("/chunks-without-end")
async def _(reply: Reply) -> None:
    await reply.send(_CHUNKED + b"%x\r\n%s\r\n" % (len(PAGE), PAGE))
    reply.writer.close()


@at("/chunks-bad")
async def _(reply: Reply) -> None:
    await reply.send(_CHUNKED + b"zzz\r\n" + PAGE + b"\r\n0\r\n\r\n")


@at("/two-lengths")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 50\r\n\r\n" + PAGE)


@at("/not-http")
async def _(reply: Reply) -> None:
    await reply.send(b"SSH-2.0-OpenSSH_9.2\r\n" + PAGE)


_CHUNKED = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n"

# Slow ones -------------------------------------------------------------------------------------------------------


@at("/hang")
async def _(reply: Reply) -> None:
    await asyncio.sleep(3600)


@at("/hang-midway")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500\r\n\r\n" + PAGE)
    await asyncio.sleep(3600)


@at("/drip-headers")
async def _(reply: Reply) -> None:
    await reply.drip(b"HTTP/1.1 200 OK\r\nX-Slow: " + b"a" * 100_000)


@at("/drip-body")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n")
    await reply.drip(PAGE * 1000)


@at("/drips/")
async def _(reply: Reply) -> None:
    links = "".join(f'<a href="{number}">page {number}</a> ' for number in range(40))
    await reply.page(body=b"<h1>Forty pages</h1><p>They come one byte a second.</p>" + links.encode())


@at("/continue-for-ever")
async def _(reply: Reply) -> None:
    while True:
        await reply.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 100)
        await asyncio.sleep(0.01)


# Endless ones ----------------------------------------------------------------------------------------------------


@at("/endless")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n\r\n")
    while True:
        await reply.send(b"<p>more</p>" * 5000)


@at("/endless-chunks")
async def _(reply: Reply) -> None:
    await reply.send(_CHUNKED)
    while True:
        await reply.send(b"10000\r\n" + _PIECE + b"\r\n")


@at("/endless-header")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\nX-Long: ")
    for _ in range(1024):  # 64 MB
        await reply.send(b"a" * (1 << 16))


@at("/endless-headers")
async def _(reply: Reply) -> None:
    await reply.send(b"HTTP/1.1 200 OK\r\n")
    for number in range(1_000_000):
        await reply.send(b"X-Header-%d: value\r\n" % number * 100)


@at("/endless-extension")
async def _(reply: Reply) -> None:
    await reply.send(_CHUNKED + b"5;")
    while True:
        await reply.send(b"x=" * 10_000)


# Redirects -------------------------------------------------------------------------------------------------------

for code in (301, 302, 303, 307, 308):
    answers(f"/{code}", f"{code} Elsewhere", "Location: /good")
    answers(f"/{code}-out", f"{code} Elsewhere", "Location: https://elsewhere.test/page?token=1#top")
    answers(f"/{code}-itself", f"{code} Elsewhere", f"Location: /{code}-itself#again")
    answers(f"/{code}-nowhere", f"{code} Elsewhere")
    answers(f"/{code}-script", f"{code} Elsewhere", "Location: javascript:alert(1)")
    answers(f"/{code}-inside", f"{code} Elsewhere", "Location: http://169.254.169.254/latest/meta-data/")
answers("/circle-a", "302 Found", "Location: /circle-b")
answers("/circle-b", "302 Found", "Location: /circle-a")
answers("/then-moved", "302 Found", "Location: /301")
answers("/then-404", "302 Found", "Location: /404")
answers("/then-forbidden", "302 Found", "Location: /forbidden")
answers("/forbidden", "200 OK")
for step in range(30):
    answers(f"/steps/{step}", "302 Found", f"Location: /steps/{step + 1}")


# Packed ones -----------------------------------------------------------------------------------------------------


@cache
def gzip_bomb() -> bytes:
    """Return one gibibyte of zeros in one megabyte. Its checksum is wrong, which no test reaches."""
    squeeze = zlib.compressobj(9, zlib.DEFLATED, -15)
    block = squeeze.compress(bytes(1 << 22)) + squeeze.flush(zlib.Z_FULL_FLUSH)
    return b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + block * (GIB >> 22) + b"\x03\0" + bytes(8)


@cache
def brotli_bomb() -> bytes:
    squeeze = brotli.Compressor(quality=1, lgwin=24)
    return b"".join(squeeze.process(bytes(1 << 20)) for _ in range(128)) + squeeze.finish()


@cache
def zstd_bomb() -> bytes:
    return zstd.compress(bytes(1 << 23)) * 128


def packed(path: str, encoding: str, body: Callable[[], bytes]) -> None:
    async def handler(reply: Reply) -> None:
        await reply.page("200 OK", f"Content-Encoding: {encoding}", body=body())

    PATHS[path] = handler


packed("/gzip", "gzip", lambda: gzip.compress(PAGE))
packed("/x-gzip", "X-GZIP", lambda: gzip.compress(PAGE))
packed("/deflate", "deflate", lambda: zlib.compress(PAGE))
packed("/deflate-bare", "deflate", lambda: zlib.compress(PAGE)[2:-4])
packed("/br", "br", lambda: brotli.compress(PAGE))
packed("/zstd", "zstd", lambda: zstd.compress(PAGE))
packed("/gzip-cut", "gzip", lambda: gzip.compress(PAGE)[:-12])
packed("/gzip-damaged", "gzip", lambda: gzip.compress(PAGE * 10)[:40] + b"\xff" * 40)
packed("/gzip-not", "gzip", lambda: PAGE)
packed("/unknown-encoding", "middle-out", lambda: PAGE)
packed("/twice", "gzip, gzip", lambda: gzip.compress(gzip.compress(PAGE)))
packed("/bomb-gzip", "gzip", gzip_bomb)
packed("/bomb-twice", "gzip, gzip", lambda: gzip.compress(gzip_bomb()))
packed("/bomb-inside", "gzip", lambda: gzip.compress(gzip_bomb()))
packed("/bomb-br", "br", brotli_bomb)
packed("/bomb-zstd", "zstd", zstd_bomb)
packed("/bomb-deflate", "deflate", lambda: gzip_bomb()[10:])
packed("/bomb-members", "gzip", lambda: gzip.compress(b"") * 50_000)


# Serving ---------------------------------------------------------------------------------------------------------


async def _any_path(reply: Reply) -> None:
    path = reply.request.path
    if path == "/robots.txt" and reply.site.robots is not None:
        await reply.send(reply.site.robots)
    elif path.removeprefix("/drips/").isdigit():
        await reply.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 100000\r\n\r\n")
        reply.site.drips.put_nowait(path)
        await reply.drip(PAGE * 1000, every=1)
    elif path.startswith("/calendar/"):
        year, month = map(int, path.strip("/").split("/")[1:])
        after = f"/calendar/{year + month // 12}/{month % 12 + 1:02}/"
        await reply.page(body=f'<a href="{after}">next month</a>'.encode())
    else:
        await reply.page("404 Not Found", body=b"nothing here")


@asynccontextmanager
async def hostile() -> AsyncIterator[HostileSite]:
    site = HostileSite(0)
    tasks: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
                while not writer.is_closing():
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                    request = _parse(head)
                    site.requests.append(request)
                    await PATHS.get(request.path, _any_path)(Reply(writer, request, site))
                    if request.headers.get("connection") == "close":
                        break
        except asyncio.CancelledError:
            pass  # the test is over
        finally:
            tasks.discard(task)
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    site.port = server.sockets[0].getsockname()[1]
    try:
        yield site
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def _parse(head: str) -> Request:
    line, *rest = head.split("\r\n")
    pairs: Iterator[tuple[str, str, str]] = (header.partition(":") for header in rest if header)
    return Request(line.split(" ")[1], {name.lower(): value.strip() for name, _, value in pairs})


def robots(text: str = "", *, status: str = "200 OK", headers: str = "") -> bytes:
    """Return a complete response to a request for robots.txt."""
    return f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(text.encode())}\r\n\r\n{text}".encode()
