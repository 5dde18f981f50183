"""HTTP connections: complete and incomplete responses, reuse of connections, the bytes of requests, proxies."""

import asyncio
import gzip
import ssl
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from kept.origins.web.gate_proxy import GateProxy
from kept.origins.web.http import connection
from kept.origins.web.http.address_policy import parse_endpoint
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, FailureKind, Headers, HttpResponse, SecretHeaders, Timeouts
from kept.origins.web.http.upstream_proxy import parse_upstream_proxy
from tests.unit.test_http_client import certificate, here, serving  # noqa: F401 - a fixture

GOOD = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
PATIENCE = Timeouts(connect=2, read=2, total=5)


class Server:
    """Sends scripted responses, connection by connection. ``heads`` has the heads of the requests."""

    def __init__(self) -> None:
        self.port = 0
        self.connections = 0
        self.heads: list[str] = []

    def url(self, path: str = "/") -> str:
        return f"http://127.0.0.1:{self.port}{path}"

    def client(self, **more: Any) -> HttpClient:
        return HttpClient(allowed={("127.0.0.1", self.port): {"loopback"}}, **{"timeouts": PATIENCE, **more})


Talk = Callable[[Server, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def open_server(talk: Talk, **more: Any) -> AsyncIterator[Server]:
    made, tasks = Server(), set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        tasks.add(asyncio.current_task())
        made.connections += 1
        with suppress(OSError, EOFError, asyncio.CancelledError):
            await talk(made, reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, **more)
    made.port = server.sockets[0].getsockname()[1]
    try:
        yield made
    finally:
        server.close()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def respond_with(*pieces: bytes, then: str = "listen", pause: float = 0.0) -> Talk:
    """Send the same pieces to every request; ``then`` listen again, close, or wait."""

    async def talk(made: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            made.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            for piece in pieces:
                writer.write(piece)
                await writer.drain()
                await asyncio.sleep(pause)
            if then == "close" or "Connection: close" in made.heads[-1]:
                return
            if then == "wait":
                await asyncio.sleep(3600)

    return talk


def send_requests(
    talk: Talk, times: int = 1, most: int = 100_000, **more: Any
) -> tuple[list[HttpResponse | FailedRequest], Server]:
    """Send requests one after the other, and return the responses and the server."""

    async def scenario() -> tuple[list[HttpResponse | FailedRequest], Server]:
        async with open_server(talk) as server:
            client = server.client()
            answers = [await client.request(server.url(), max_bytes=most, **more) for _ in range(times)]
            await client.close()
            return answers, server

    return asyncio.run(scenario())


def body_of(answer: HttpResponse | FailedRequest) -> bytes:
    assert isinstance(answer, HttpResponse), answer
    return answer.body


def reason_of(answer: HttpResponse | FailedRequest) -> str:
    assert isinstance(answer, FailedRequest), answer
    return answer.reason


# ── What is whole ────────────────────────────────────────────────────────────────────────────────────────────────────

WHOLE = {
    "a length": (GOOD, "listen"),
    "chunks": (CHUNKED + b"2\r\nhe\r\n3;why=not\r\nllo\r\n0\r\nTrailer: x\r\n\r\n", "listen"),
    "the end of the connection": (b"HTTP/1.1 200 OK\r\nConnection: keep-alive\r\n\r\nhello", "close"),
    "an old server": (b"HTTP/1.0 200 OK\r\n\r\nhello", "close"),
    "bare line feeds": (b"HTTP/1.1 200 OK\nContent-Length: 5\n\nhello", "listen"),
    "no reason": (b"HTTP/1.1 200\r\nContent-Length: 5\r\n\r\nhello", "listen"),
    "interim answers": (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + GOOD,
        "listen",
    ),
    "packed": (b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello", mtime=0), "close"),
}


@pytest.mark.parametrize("name", WHOLE)
@pytest.mark.parametrize("at_once", [True, False])
def test_the_end_of_a_body_is_found_in_each_framing(name: str, at_once: bool) -> None:
    sent, then = WHOLE[name]
    pieces = [sent] if at_once else [sent[start : start + 1] for start in range(len(sent))]
    (answer,), _ = send_requests(respond_with(*pieces, then=then))
    assert body_of(answer) == b"hello"
    assert isinstance(answer, HttpResponse)
    assert "link" not in answer.headers, "an interim answer's"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
def test_some_statuses_have_no_body_whatever_the_headers_say(status: bytes) -> None:
    answers, server = send_requests(respond_with(b"HTTP/1.1 " + status + b"\r\nContent-Length: 50\r\n\r\n"), times=3)
    assert [body_of(answer) for answer in answers] == [b""] * 3
    assert server.connections == 1


@pytest.mark.parametrize(
    ("sent", "reason"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nhello", "the answer was cut short"),
        (b"HTTP/1.1 200 OK\r\nContent-Length : 6\r\n\r\nhello", "the answer was cut short"),
        (CHUNKED + b"6\r\nhello", "the answer was cut short"),
        (CHUNKED + b"5\r\nhello\r\n", "the answer was cut short"),
        (CHUNKED + b"5\r\nhello\r\n0\r\n", "the answer was cut short"),
        (CHUNKED.replace(b"Encoding:", b"Encoding :") + b"5\r\nhello\r\n", "the answer was cut short"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked, gzip\r\n\r\nhello", "the answer was cut short"),
        (
            b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n" + gzip.compress(b"hello", mtime=0)[:-9],
            "cannot be unpacked",
        ),
        (b"HTTP/1.1 200 OK\r\nContent-Le", "the connection was closed before an answer came"),
        (b"HTTP/1.1 100 Continue\r\n\r\n", "the connection was closed before an answer came"),
        (b"", "the connection was closed before an answer came"),
        (CHUNKED + b"5\r\nhello!\r\n0\r\n\r\n", "not a valid HTTP answer"),
        (CHUNKED.replace(b"\r\n\r\n", b"\r\nContent-Length: 5\r\n\r\n") + b"5\r\nhello", "not a valid HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nContent-Length: 4\r\n\r\nhello", "not a valid HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\nhello", "not a valid HTTP answer"),
        (b"HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 5\r\n\r\nhello", "not a valid HTTP answer"),
        (b"HTTP/1.1 101 Go\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\nhello", "not a valid HTTP answer"),
        (b"HTTP/2 200\r\n\r\nhello", "not a valid HTTP answer"),
        (b"HTTP/1.1 103 Hints\r\n\r\n" * 30 + GOOD, "the server sent nothing but interim answers"),
    ],
)
def test_a_truncated_or_invalid_response_is_a_failure(sent: bytes, reason: str) -> None:
    (answer,), _ = send_requests(respond_with(sent, then="close"))
    assert isinstance(answer, FailedRequest), answer
    assert answer.kind is FailureKind.TEMPORARY
    assert answer.reason.startswith(reason)


@pytest.mark.parametrize(
    "begins",
    [
        b"HTTP/1.1 200 ",
        b"HTTP/1.1 200 OK\r\nX: ",
        CHUNKED + b"5;",
        CHUNKED + b"5\r\nhello\r\n0\r\nTrailer: ",
        b"HTTP/1.1 103 Hints\r\nX: ",
    ],
)
def test_endless_data_without_content_is_a_failure(begins: bytes) -> None:
    answer = send_requests(respond_with(begins, *[b"a" * 65_536] * 200))[0][0]
    assert reason_of(answer) == "its headers are too long"


@pytest.mark.parametrize(("longest", "lines"), [(connection.MAX_HEADER_BYTES, 1), (1, connection.MAX_HEADERS + 1)])
def test_headers_are_bounded_line_by_line(longest: int, lines: int) -> None:
    header = b"\r\n".join([b"X: " + b"a" * longest] * lines)
    answer = send_requests(respond_with(b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n", then="wait"))[0][0]
    assert reason_of(answer) == "its headers are too long"


# ── Which connection is used again ───────────────────────────────────────────────────────────────────────────────────


def test_a_connection_that_was_closed_while_idle_is_replaced() -> None:
    async def one_each(made: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Respond once; close at the second request, like a server whose keep-alive has just timed out."""
        made.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(GOOD)
        made.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())

    answers, server = send_requests(one_each, times=3)
    assert [body_of(answer) for answer in answers] == [b"hello"] * 3
    assert (server.connections, len(server.heads)) == (3, 5)
    answers, server = send_requests(one_each, times=2, body=b"x")
    assert body_of(answers[0]) == b"hello"
    assert reason_of(answers[1]) == "the connection was closed before an answer came"
    assert server.connections == 1, "it may have been acted upon"


def test_a_request_is_not_repeated_after_half_a_response() -> None:
    async def talk(made: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for sent in (GOOD, GOOD[:8]):
            made.heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
            writer.write(sent)

    answers, server = send_requests(talk, times=2)
    assert reason_of(answers[1]) == "the connection was closed before an answer came"
    assert server.connections == 1


def test_an_idle_connection_expires(monkeypatch: pytest.MonkeyPatch) -> None:
    from kept.origins.web.http import pool

    assert send_requests(respond_with(GOOD), times=3)[1].connections == 1
    monkeypatch.setattr(pool, "MAX_IDLE_SECONDS", 0.0)
    assert send_requests(respond_with(GOOD), times=3)[1].connections == 3


@pytest.mark.parametrize("more", [b"and more", b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nlies", b"HTTP/1.1 2"])
@pytest.mark.parametrize("at_once", [True, False])
def test_unrequested_data_is_never_taken_for_a_response(more: bytes, at_once: bool) -> None:
    async def scenario() -> None:
        pieces = [GOOD + more] if at_once else [GOOD, more]
        async with open_server(respond_with(*pieces, pause=0.02)) as server:
            client = server.client()
            for _ in range(3):
                assert body_of(await client.request(server.url(), max_bytes=100)) == b"hello"
                await asyncio.sleep(0.1)
            assert server.connections == 3
            await client.close()

    asyncio.run(scenario())


def test_a_cancelled_request_closes_its_connection_and_no_other() -> None:
    async def scenario() -> None:
        async with open_server(respond_with(GOOD[:9], GOOD[9:], pause=0.2)) as server:
            client = server.client()
            tasks = [asyncio.create_task(client.request(server.url(f"/{n}"), max_bytes=100)) for n in range(20)]
            await asyncio.sleep(0.1)
            for task in tasks[::2]:
                task.cancel()
            done = await asyncio.gather(*tasks, return_exceptions=True)
            assert [isinstance(one, asyncio.CancelledError) for one in done] == [True, False] * 10
            assert all(body_of(one) == b"hello" for one in done[1::2])  # type: ignore[arg-type]
            assert [pool.connection_count for pool in client._host_pools.values()] == [10]
            await client.close()

    asyncio.run(scenario())


def test_closing_the_client_ends_requests_in_flight() -> None:
    async def scenario() -> None:
        async with open_server(respond_with(then="wait")) as server:
            client = server.client()
            task = asyncio.create_task(client.request(server.url(), max_bytes=100))
            await asyncio.sleep(0.05)
            await client.close()
            assert reason_of(await task) == "the connection was closed before an answer came"

    asyncio.run(scenario())


# ── What is not wanted ───────────────────────────────────────────────────────────────────────────────────────────────


UNWANTED = {
    "short": (b"HTTP/1.1 404 No\r\nContent-Length: 5\r\n\r\nhello", "listen", 1),
    "long": (b"HTTP/1.1 404 No\r\nContent-Length: 99999\r\n\r\nhello", "wait", 3),
    "long, in chunks": (CHUNKED.replace(b"200 OK", b"404 No") + b"20000\r\n" + bytes(0x20000), "wait", 3),
    "cut short": (b"HTTP/1.1 404 No\r\nContent-Length: 500\r\n\r\nhello", "close", 3),
    "no chunks": (CHUNKED.replace(b"200 OK", b"404 No") + b"nonsense", "wait", 3),
    "until the end": (b"HTTP/1.1 404 No\r\n\r\nhello", "close", 3),
}


@pytest.mark.parametrize("name", UNWANTED)
def test_an_unwanted_body_is_drained_only_if_it_is_small(name: str) -> None:
    sent, then, connections = UNWANTED[name]
    began = time.monotonic()
    answers, server = send_requests(respond_with(sent, then=then), times=3)
    assert [(body_of(answer), answer.status) for answer in answers] == [(b"", 404)] * 3
    assert server.connections == connections
    assert time.monotonic() - began < connection.DRAIN_SECONDS


def test_an_unwanted_body_that_is_slow_is_not_drained() -> None:
    began = time.monotonic()
    (answer,), _ = send_requests(respond_with(b"HTTP/1.1 404 No\r\nContent-Length: 500\r\n\r\nhello", then="wait"))
    assert (body_of(answer), answer.status) == (b"", 404)
    assert time.monotonic() - began < connection.DRAIN_SECONDS + 0.5


# ── What a request says, and what headers are ────────────────────────────────────────────────────────────────────────


def test_the_bytes_of_a_request() -> None:
    async def scenario() -> None:
        async with open_server(respond_with(GOOD)) as server:
            secrets = SecretHeaders(
                parse_endpoint(server.url()), (("X-Key", "one"), ("X-Key", "two"), ("accept", "text/x-own"))
            )
            client = server.client(user_agent="Kept/1", secret_headers=secrets)
            await client.request(server.url("/a?b=c"), max_bytes=100)
            await client.request(
                server.url("/"), max_bytes=100, headers={"If-None-Match": '"é"', "ACCEPT": "text/plain"}
            )
            await client.request(
                server.url("/"), max_bytes=100, body=b"{}", headers={"content-type": "application/json"}
            )
            for wrong in ("a\r\nX: y", "a\nb", "a\0b"):
                answer = await client.request(server.url("/"), max_bytes=100, headers={"X": wrong})
                assert reason_of(answer) == "no valid answer (ValueError)"
            await client.close()
            first, second, third = (head.split("\r\n") for head in server.heads)
            host = f"Host: 127.0.0.1:{server.port}"
            keys = ["X-Key: one", "X-Key: two"]
            own = [host, "User-Agent: Kept/1", "Accept-Encoding: gzip, deflate", *keys]
            assert first == ["GET /a?b=c HTTP/1.1", *own, "accept: text/x-own", "", ""]
            assert second == ["GET / HTTP/1.1", *own, 'If-None-Match: "é"', "ACCEPT: text/plain", "", ""]
            posted = ["accept: text/x-own", "content-type: application/json", "Content-Length: 2"]
            assert third == ["POST / HTTP/1.1", *own, *posted, "", ""]

    asyncio.run(scenario())


def test_headers_are_case_insensitive_and_repeated_ones_are_all_available() -> None:
    headers = Headers([(b"X-Robots-Tag", b"noindex "), (b"ETag", b'"\xe9"'), (b"x-robots-tag", b"nofollow")])
    assert headers["x-ROBOTS-tag"] == headers.get("X-Robots-Tag") == "noindex"
    assert headers.get_all("X-robots-tag") == ["noindex", "nofollow"]
    assert headers["etag"] == '"\udce9"'
    assert "etag" in headers
    assert headers.get("Retry-After", "") == ""
    assert "Retry-After" not in headers
    assert headers.get_all("Retry-After") == []
    assert len(headers) == len(list(headers)) == 2
    assert [name for name, _ in headers.pairs()] == ["X-Robots-Tag", "ETag", "x-robots-tag"]


@pytest.mark.parametrize("host", ["127.1", "0x7f.1", "2130706433", "0x7f000001", "017700000001", "127.0.0.1.", "0x"])
def test_a_numeric_host_is_not_resolved(host: str) -> None:
    async def scenario() -> None:
        async def never(host: str, port: int) -> Sequence[str]:
            raise AssertionError("it was resolved")

        for client in (HttpClient(resolver=never), HttpClient(resolver=never, proxy="http://127.0.0.1:1")):
            answer = await client.request(f"http://{host}/", max_bytes=10)
            assert isinstance(answer, FailedRequest)
            assert answer.kind is FailureKind.FORBIDDEN

    asyncio.run(scenario())


def test_no_certificates_are_loaded_for_http(monkeypatch: pytest.MonkeyPatch) -> None:
    def never(*_: object) -> ssl.SSLContext:
        raise AssertionError("they were")

    monkeypatch.setattr(ssl, "create_default_context", never)
    assert body_of(send_requests(respond_with(GOOD))[0][0]) == b"hello"


# ── Through a proxy, and by TLS ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "found"),
    [
        ("http://proxy.test:3128", ("proxy.test", 3128, False, None)),
        ("https://proxy.test", ("proxy.test", 443, True, None)),
        ("HTTP://Proxy.test/", ("proxy.test", 80, False, None)),
        ("http://me:p%40ss@[::1]:8080/", ("::1", 8080, False, "Basic bWU6cEBzcw==")),
        ("http://me@10.0.0.1", ("10.0.0.1", 80, False, "Basic bWU6")),
        ("http://bücher.test:80", ("xn--bcher-kva.test", 80, False, None)),
    ],
)
def test_the_url_of_a_proxy_is_parsed(url: str, found: tuple[object, ...]) -> None:
    proxy = parse_upstream_proxy(url)
    assert (proxy.host, proxy.port, proxy.is_tls, proxy.authorization) == found


@pytest.mark.parametrize("secure_proxy", [False, True])
@pytest.mark.parametrize("secure_site", [False, True])
def test_requests_go_through_the_proxy_and_its_connections_are_reused(
    certificate: Path,  # noqa: F811
    secure_proxy: bool,
    secure_site: bool,
) -> None:
    async def scenario() -> None:
        tls = {"ssl": serving(certificate)}
        async with open_server(respond_with(GOOD), **(tls if secure_site else {})) as site:
            allowed = {("docs.test", site.port): {"loopback"}}
            outer = HttpClient(allowed=allowed, resolver=here)
            async with GateProxy(outer) as upstream:
                listening = await asyncio.start_server(
                    upstream._handle_client, "127.0.0.1", 0, **(tls if secure_proxy else {})
                )
                port = listening.sockets[0].getsockname()[1]
                scheme = "https" if secure_proxy else "http"
                where = f"{scheme}://{upstream.username}:{upstream.password}@docs.test:{port}"
                client = HttpClient(allowed=allowed, resolver=here, proxy=where, ca_file=str(certificate))
                url = f"{'https' if secure_site else 'http'}://docs.test:{site.port}/"
                for _ in range(3):
                    assert body_of(await client.request(url, max_bytes=100)) == b"hello"
                if secure_site:
                    assert site.connections == 1
                    assert "Proxy-Authorization" not in site.heads[0], "the tunnel's business"
                wrong = HttpClient(
                    allowed=allowed, resolver=here, proxy=where.replace("kept:", "who:"), ca_file=str(certificate)
                )
                refused = await wrong.request(url, max_bytes=100)
                if secure_site:
                    assert reason_of(refused) == "the proxy answered 407"
                else:
                    assert isinstance(refused, HttpResponse)
                    assert refused.status == 407
                for one in (client, wrong):
                    await one.close()
                listening.close()
                await asyncio.sleep(0.05)
            gone = HttpClient(allowed=allowed, resolver=here, proxy=where, ca_file=str(certificate))
            assert reason_of(await gone.request(url, max_bytes=100)) == "the proxy cannot be reached"

    asyncio.run(scenario())


def test_a_site_without_tls_and_one_that_closes_without_a_response(certificate: Path) -> None:  # noqa: F811
    async def ends(made: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 50\r\n\r\nhello")
        await writer.drain()
        writer.transport.abort()

    async def plainly(made: Server, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(GOOD)

    async def scenario() -> None:
        async with open_server(plainly) as plain, open_server(ends, ssl=serving(certificate)) as site:
            for server, reason in ((plain, "no secure connection could be made"), (site, "the answer was cut short")):
                client = HttpClient(
                    allowed={("docs.test", server.port): {"loopback"}}, resolver=here, ca_file=str(certificate)
                )
                answer = await client.request(f"https://docs.test:{server.port}/", max_bytes=100)
                assert reason_of(answer) == reason
                await client.close()

    asyncio.run(scenario())
