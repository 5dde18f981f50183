"""An HTTP proxy on loopback that applies the address policy to programs with their own HTTP client (git).

    CONNECT host:port              a tunnel, for https
    GET http://host:port/path      a plain request, one per connection

Both connect through the source's ``HttpClient``. The proxy requires a random password: another program on this machine
must not reach what a source's owner has allowed.
"""

import asyncio
import base64
import hmac
import re
import secrets
from contextlib import suppress

from kept.origins.web.http.address_policy import AddressForbidden
from kept.origins.web.http.client import HttpClient

_MAX_HEAD_BYTES = 64 * 1024
_IDLE_SECONDS = 60.0  # without data in one direction
_MAX_RELAYED_BYTES = 512 * 1024 * 1024  # of one connection, in each direction
_CHUNK_BYTES = 64 * 1024
_USER = "kept"

_CONNECT = re.compile(r"CONNECT ([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\]):([0-9]{1,5}) HTTP/1\.[01]")
_PLAIN_REQUEST = re.compile(
    r"([A-Z]+) http://([A-Za-z0-9._-]+|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(/[!-~]*)? HTTP/1\.[01]"
)


class GateProxy:
    """``async with GateProxy(client) as proxy``: give ``proxy.url``, ``username`` and ``password`` to a program."""

    username = _USER

    def __init__(self, client: HttpClient) -> None:
        self.password = secrets.token_urlsafe(24)
        self._client = client
        self._expected_authorization = b"Basic " + base64.b64encode(f"{_USER}:{self.password}".encode())
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()

    @property
    def url(self) -> str:
        assert self._server is not None, "the proxy is running"
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def __repr__(self) -> str:
        return "GateProxy()"

    async def __aenter__(self) -> "GateProxy":
        self._server = await asyncio.start_server(self._handle_client, "127.0.0.1", 0, limit=_MAX_HEAD_BYTES)
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None, "the proxy is running"
        self._server.close()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _handle_client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None, "a server's callback is a task"
        self._tasks.add(task)
        try:
            with suppress(OSError, EOFError, asyncio.LimitOverrunError):
                async with asyncio.timeout(_IDLE_SECONDS):
                    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
                await self._handle_request(head, reader, writer)
        except asyncio.CancelledError:
            pass  # the proxy is closed
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _handle_request(self, head: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        line, *headers = head.rstrip("\r\n").split("\r\n")
        if not hmac.compare_digest(
            _header_value(headers, "proxy-authorization").encode("latin-1"), self._expected_authorization
        ):
            writer.write(_error_response("407 Proxy Authentication Required", 'Proxy-Authenticate: Basic realm="kept"'))
        elif match := _CONNECT.fullmatch(line):
            if upstream := await self._dial(match[1], int(match[2]), writer):
                writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
                await _relay(reader, writer, *upstream, max_sent=None)
        elif match := _PLAIN_REQUEST.fullmatch(line):
            if upstream := await self._dial(match[2], int(match[3] or 80), writer):
                upstream[1].write(_forwarded_request(match, headers))
                # Only this request: the next one might be for another host.
                length = _header_value(headers, "content-length")
                await _relay(reader, writer, *upstream, max_sent=int(length) if length.isdigit() else 0)
        else:
            writer.write(_error_response("400 Bad Request"))
        await writer.drain()

    async def _dial(
        self, host: str, port: int, writer: asyncio.StreamWriter
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        """Connect to an allowed host. Returns None after an error response."""
        host = host.strip("[]").lower()
        try:
            async with asyncio.timeout(self._client.timeouts.connect):
                return await self._client.connect(host, port)
        except AddressForbidden as error:
            writer.write(_error_response("403 Forbidden", f"X-Kept-Reason: {error}"))
        except TimeoutError:
            writer.write(_error_response("504 Gateway Timeout"))
        except OSError:
            writer.write(_error_response("502 Bad Gateway"))
        return None


def _header_value(headers: list[str], name: str) -> str:
    return next(
        (value.strip() for key, _, value in (line.partition(":") for line in headers) if key.lower() == name), ""
    )


def _error_response(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "Content-Length: 0", "Connection: close", "", ""]).encode()


def _forwarded_request(match: re.Match[str], headers: list[str]) -> bytes:
    """Return the request for the server, with the dialled host in place of the client's Host header."""
    replaced = (
        "host",
        "connection",
        "proxy-authorization",
        "proxy-connection",
        "keep-alive",
        "upgrade",
        "transfer-encoding",
    )
    forwarded = [header for header in headers if header.partition(":")[0].strip().lower() not in replaced]
    host = f"{match[2]}:{match[3]}" if match[3] else match[2]
    lines = [f"{match[1]} {match[4] or '/'} HTTP/1.1", f"Host: {host}", *forwarded, "Connection: close", "", ""]
    return "\r\n".join(lines).encode("latin-1")


async def _relay(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    upstream_reader: asyncio.StreamReader,
    upstream_writer: asyncio.StreamWriter,
    *,
    max_sent: int | None,
) -> None:
    """Relay data in both directions until the server closes, is idle or has sent too much.

    ``max_sent``: bytes to relay from the client; None for a tunnel.
    """
    sending = asyncio.create_task(
        _pump(reader, upstream_writer, _MAX_RELAYED_BYTES if max_sent is None else max_sent, send_eof=max_sent is None)
    )
    try:
        await _pump(upstream_reader, writer, _MAX_RELAYED_BYTES, send_eof=True)
    finally:
        sending.cancel()
        await asyncio.gather(sending, return_exceptions=True)
        upstream_writer.close()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, max_bytes: int, *, send_eof: bool) -> None:
    with suppress(OSError):
        while max_bytes > 0:
            async with asyncio.timeout(_IDLE_SECONDS):
                data = await reader.read(min(_CHUNK_BYTES, max_bytes))
            if not data:
                break
            max_bytes -= len(data)
            writer.write(data)
            await writer.drain()
        if send_eof and writer.can_write_eof():
            writer.write_eof()
