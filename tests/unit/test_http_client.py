"""The HTTP client: decompression within limits, deadlines, secrets, TLS by name; and the gate proxy."""

import asyncio
import base64
import gzip
import shutil
import ssl
import subprocess
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

import aiohttp
import brotli
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept.errors import InvalidInput
from kept.model.source import Access, Header, Limits, Scope, SourceSettings, host_and_port
from kept.origins.web.client_factory import default_user_agent, make_http_client, parse_host_port
from kept.origins.web.gate_proxy import GateProxy
from kept.origins.web.http import decoding
from kept.origins.web.http.address_policy import Endpoint, parse_endpoint
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.decoding import BodyDecoder, BodyTooLarge, DecompressionBomb, UndecodableBody, zstd
from kept.origins.web.http.messages import FailedRequest, FailureKind, HttpResponse, SecretHeaders, Timeouts
from kept.origins.web.http.timeouts import Deadlines, RequestTimedOut
from tests.sites.hostile import PAGE, HostileSite, hostile


def bare_deflate(data: bytes) -> bytes:
    squeeze = zlib.compressobj(6, zlib.DEFLATED, -15)
    return squeeze.compress(data) + squeeze.flush()


PACKERS = {
    "": bytes,
    "identity": bytes,
    "gzip": gzip.compress,
    "x-gzip": lambda data: gzip.compress(data[:10]) + gzip.compress(data[10:]),
    "deflate": zlib.compress,
    "Deflate ": bare_deflate,
    "br": brotli.compress,
    "zstd": zstd.compress,
    " ZSTD": lambda data: zstd.compress(data[:10]) + zstd.compress(data[10:]),
}


# ── Unpacking ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("encoding", PACKERS)
@settings(max_examples=30)
@given(
    data=st.binary(max_size=200) | st.builds(bytes.__mul__, st.binary(max_size=20), st.integers(0, 100)),
    sizes=st.lists(st.integers(1, 500), min_size=1, max_size=5),
    piece=st.integers(1, 300),
)
def test_a_compressed_body_is_decompressed_however_it_is_split(
    encoding: str, data: bytes, sizes: list[int], piece: int
) -> None:
    packed = PACKERS[encoding](data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "CHUNK_BYTES", piece)  # so that it comes to an end at every possible place
        decoder = BodyDecoder(encoding, 1 << 20)
        start = 0
        while start < len(packed):
            size = sizes[start % len(sizes)]
            decoder.feed(packed[start : start + size])
            start += size
        assert decoder.body() == data


@pytest.mark.parametrize("encoding", ["gzip", "deflate", "Deflate ", "br", "zstd"])
def test_a_body_that_ends_too_early_or_is_damaged_is_undecodable(encoding: str) -> None:
    packed = PACKERS[encoding](PAGE * 10)
    for damaged in (packed[:-3], packed[: len(packed) // 2], PAGE, b"\xff" * 100, packed[:20] + b"\xff" * 50):
        decoder = BodyDecoder(encoding, 1 << 20)
        with pytest.raises(UndecodableBody):  # noqa: PT012 - where it is noticed is its own affair
            decoder.feed(damaged)
            decoder.body()


@pytest.mark.parametrize("encoding", PACKERS)
def test_the_limit_holds_to_the_byte(encoding: str) -> None:
    packed = PACKERS[encoding](PAGE)
    exact = BodyDecoder(encoding, len(PAGE))
    exact.feed(packed)
    assert exact.body() == PAGE
    short = BodyDecoder(encoding, len(PAGE) - 1)
    with pytest.raises(BodyTooLarge):
        short.feed(packed)
    assert short.partial_body() == PAGE[:-1]


def test_zeros_after_the_end_are_padding() -> None:
    decoder = BodyDecoder("gzip", 1000)
    decoder.feed(gzip.compress(PAGE) + bytes(512))
    assert decoder.body() == PAGE


def test_a_highly_compressible_page_is_not_a_bomb_and_a_bomb_is() -> None:
    table = b"".join(b"<tr><td>%d</td><td>0.000000</td><td>0.000000</td></tr>\n" % row for row in range(100_000))
    honest = BodyDecoder("gzip", 1 << 25)
    packed = gzip.compress(table, 1)
    for start in range(0, len(packed), 1000):
        honest.feed(packed[start : start + 1000])
    assert honest.body() == table
    with pytest.raises(DecompressionBomb, match="200 times"):
        _feed(BodyDecoder("gzip", 1 << 30), gzip.compress(bytes(1 << 25), 1))
    with pytest.raises(DecompressionBomb, match="more than once"):
        BodyDecoder("gzip, br", 1 << 20)
    with pytest.raises(DecompressionBomb, match="parts"):
        BodyDecoder("gzip", 1 << 20).feed(gzip.compress(b"") * 2000)


def _feed(decoder: BodyDecoder, packed: bytes) -> None:
    for start in range(0, len(packed), 1000):
        decoder.feed(packed[start : start + 1000])


# ── Deadlines ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_the_read_and_the_total_timeout_end_a_task_and_nothing_else_does() -> None:
    async def scenario() -> None:
        deadlines = Deadlines(total=0.3, read=0.1)
        with pytest.raises(RequestTimedOut, match=r"nothing came for 0\.1 s"), deadlines.track():
            await asyncio.sleep(10)
        began = time.monotonic()
        with pytest.raises(RequestTimedOut, match=r"took longer than 0\.3 s"), deadlines.track() as limit:  # noqa: PT012
            while True:
                await asyncio.sleep(0.02)
                limit.reset_read_timeout()
        assert 0.25 < time.monotonic() - began < 0.8
        with deadlines.track(), pytest.raises(KeyError):
            raise KeyError
        current = asyncio.current_task()
        assert current is not None
        assert current.cancelling() == 0
        with deadlines.track():
            await asyncio.sleep(0.05)
        await asyncio.sleep(0.2)  # no timeout is left that could cancel anything

    asyncio.run(scenario())


def test_a_cancellation_from_outside_stays_one() -> None:
    async def scenario() -> None:
        deadlines = Deadlines(total=5, read=5)

        async def work() -> None:
            with deadlines.track():
                await asyncio.sleep(10)

        task = asyncio.create_task(work())
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())


# ── Targets, secrets, settings ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("https://docs.test/", Endpoint("https", "docs.test", 443)),
        ("http://docs.test:8080/a?b", Endpoint("http", "docs.test", 8080)),
        ("http://[::1]:8080/", Endpoint("http", "::1", 8080)),
        ("https://10.0.0.1/", Endpoint("https", "10.0.0.1", 443)),
        ("ftp://docs.test/", None),
        ("https://docs.test", None),
    ],
)
def test_the_endpoint_of_a_url(url: str, target: Endpoint | None) -> None:
    assert parse_endpoint(url) == target


def test_secrets_are_redacted_from_text() -> None:
    secrets = SecretHeaders(parse_endpoint("https://docs.test/"), (("Authorization", "Bearer abcdefgh"), ("X", "ab")))
    assert secrets.redact("tried abcdefgh and Bearer abcdefgh, ab") == "tried *** and ***, ab"
    assert "abcdefgh" not in repr(secrets)
    login = f"Basic {base64.b64encode(b'tern:fish and chips').decode()}"
    assert SecretHeaders(None, (("Authorization", login),)).redact("tern has fish and chips") == "tern has ***"
    assert SecretHeaders(None, (("Authorization", "Basic é"),)).redact("Basic é, or so") == "***, or so"
    assert SecretHeaders(parse_endpoint("https://docs.test/"), (("X", ""), ("Y", " "))).redact("as it is") == "as it is"


def test_a_client_is_built_from_the_settings_of_a_source() -> None:
    source_settings = SourceSettings(
        access=Access(
            headers=(Header(name="Authorization", value="env:T"),), proxy="secret:p", allowed=("localhost:80",)
        )
    )
    values = {"env:T": "Bearer abcdefgh", "secret:p": "http://u:p@127.0.0.1:3128"}
    client = make_http_client("https://docs.test/", source_settings, look_up=values.__getitem__)
    assert client.redact("abcdefgh") == "***"
    assert "3128" not in repr(client)
    for wrong in (
        Access(allowed=("localhost",)),
        Access(allowed=("localhost:²",)),
        Access(proxy="env:NONE"),
        Access(ca_file=__file__),
    ):
        with pytest.raises(InvalidInput):
            make_http_client("https://docs.test/", SourceSettings(access=wrong))
    for root, pair in {
        "http://localhost:8000/a": ("localhost", 8000),
        "http://localhost/": ("localhost", 80),
        "https://docs.test/a:1": ("docs.test", 443),
        "http://[::1]:8000/": ("::1", 8000),
        "https://[fd00::12]/": ("fd00::12", 443),
    }.items():
        assert parse_host_port(host_and_port(root)) == pair
        target = parse_endpoint(root)
        assert target is not None
        assert target.host_port == pair
    assert default_user_agent("https://example.org/why").startswith("Kept/")
    assert "+https://example.org/why" in default_user_agent("https://example.org/why")


def test_settings_survive_serialization_and_older_ones_still_load() -> None:
    import json

    full = SourceSettings(
        scope=Scope(include=("a",), exclude=("b",), within=("host", "https://x.test/")),
        limits=Limits(max_pages=3),
        access=Access(
            user_agent="Mine/1", headers=(Header(name="A", value="env:B"),), proxy="env:P", ca_file="ca.pem",
            ignore_robots=True, concurrency=2, delay=0.5, allowed=("localhost:8000",),
        ),
    )  # fmt: skip
    assert SourceSettings.from_json(json.loads(json.dumps(full.as_json()))) == full
    assert SourceSettings.from_json({}) == SourceSettings()
    old = {"scope": {"include": ["a"], "exclude": []}, "limits": {"max_pages": 3}}
    assert SourceSettings.from_json(old) == SourceSettings(scope=Scope(include=("a",)), limits=Limits(max_pages=3))
    assert "env:B" not in repr(full)


# ── Asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def client_for(site: HostileSite, **more: object) -> HttpClient:
    return HttpClient(allowed={("127.0.0.1", site.port): {"loopback"}}, **more)  # type: ignore[arg-type]


def test_a_body_that_is_not_wanted_is_not_read_and_its_connection_is_used_again() -> None:
    async def scenario() -> None:
        async with hostile() as site:
            client = client_for(site)
            for path in ("/404", "/410", "/403", "/302", "/good") * 5:
                answer = await client.request(site.url(path), max_bytes=10_000)
                assert isinstance(answer, HttpResponse)
                assert answer.body == (PAGE if path == "/good" else b"")
            assert [way.connection_count for way in client._host_pools.values()] == [1]
            await client.close()

    asyncio.run(scenario())


def test_a_truncated_body_ends_at_the_limit() -> None:
    async def scenario() -> None:
        async with hostile() as site:
            client = client_for(site)
            for path in ("/large", "/endless", "/endless-chunks", "/bomb-gzip"):
                answer = await client.request(site.url(path), max_bytes=5000, truncate=True)
                assert isinstance(answer, HttpResponse), path
                assert len(answer.body) == 5000
            await client.close()

    asyncio.run(scenario())


def test_failures_have_readable_reasons() -> None:
    async def scenario() -> None:
        async with hostile() as site:
            client = client_for(site, timeouts=Timeouts(connect=1, read=0.2, total=0.5))
            wrong = {
                "/reset": "the connection was closed before an answer came",
                "/closed": "the connection was closed before an answer came",
                "/truncated": "the answer was cut short",
                "/chunks-bad": "not a valid HTTP answer",
                "/not-http": "not a valid HTTP answer",
                "/endless-header": "its headers are too long",
                "/endless-headers": "its headers are too long",
                "/hang": "nothing came for 0.2 s",
                "/gzip-cut": "cannot be unpacked: ends too early",
            }
            for path, reason in wrong.items():
                answer = await client.request(site.url(path), max_bytes=10_000)
                assert isinstance(answer, FailedRequest), path
                assert (path, answer.reason, answer.kind) == (path, reason, FailureKind.TEMPORARY)
            port = site.port
            await client.close()
        client = HttpClient(allowed={("127.0.0.1", port): {"loopback"}})
        answer = await client.request(f"http://127.0.0.1:{port}/", max_bytes=10)
        assert isinstance(answer, FailedRequest)
        assert "refused" in answer.reason.lower()
        await client.close()

    asyncio.run(scenario())


def test_a_host_name_that_does_not_resolve() -> None:
    async def scenario() -> None:
        async def resolve_nothing(host: str, port: int) -> Sequence[str]:
            raise OSError("no such name")

        client = HttpClient(resolver=resolve_nothing)
        answer = await client.request("https://docs.test/", max_bytes=10)
        assert isinstance(answer, FailedRequest)
        assert (answer.kind, answer.reason) == (FailureKind.TEMPORARY, "its host name cannot be resolved")
        await client.close()

    asyncio.run(scenario())


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a certificate of docs.test, in one file with its key."""
    if not shutil.which("openssl"):
        pytest.skip("there is no openssl to make a certificate with")
    file = tmp_path_factory.mktemp("tls") / "certificate.pem"
    made = subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
         "-subj", "/CN=docs.test", "-addext", "subjectAltName=DNS:docs.test", "-keyout", "-", "-out", "-"],
        check=True, capture_output=True,
    )  # fmt: skip
    file.write_bytes(made.stdout)
    return file


def serving(certificate: Path) -> ssl.SSLContext:
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(certificate)
    return tls


async def here(host: str, port: int) -> Sequence[str]:
    return ["127.0.0.1"]


def test_tls_checks_the_host_name_though_the_address_is_pinned(certificate: Path) -> None:
    names: list[str | None] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        names.append(next(line for line in head.split("\r\n") if line.startswith("Host: ")))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\nConnection: close\r\n\r\nhello")
        writer.close()

    async def scenario() -> None:
        tls = serving(certificate)
        tls.sni_callback = lambda _, name, __: names.append(name)
        server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
        port = server.sockets[0].getsockname()[1]
        allowed = {("docs.test", port): {"loopback"}, ("other.test", port): {"loopback"}}
        trusting = HttpClient(allowed=allowed, resolver=here, ca_file=str(certificate))
        answer = await trusting.request(f"https://docs.test:{port}/", max_bytes=10)
        assert isinstance(answer, HttpResponse)
        assert answer.body == b"hello"
        assert names == ["docs.test", f"Host: docs.test:{port}"]
        for client, host in ((trusting, "other.test"), (HttpClient(allowed=allowed, resolver=here), "docs.test")):
            refused = await client.request(f"https://{host}:{port}/", max_bytes=10)
            assert isinstance(refused, FailedRequest)
            assert refused.kind is FailureKind.PERMANENT
            assert refused.reason.startswith("its certificate is not trusted")
            await client.close()
        server.close()

    asyncio.run(scenario())


# ── The gate as a proxy ──────────────────────────────────────────────────────────────────────────────────────────────


async def send_to_proxy(proxy: GateProxy, request: str, *, password: str | None = None) -> bytes:
    """Send a request to the proxy and return everything it sends until it closes the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
    login = base64.b64encode(f"{proxy.username}:{password or proxy.password}".encode()).decode()
    writer.write(f"{request}\r\nProxy-Authorization: Basic {login}\r\n\r\n".encode())
    try:
        return await asyncio.wait_for(reader.read(), 5)
    finally:
        writer.close()


def test_the_gate_proxy_forwards_to_allowed_hosts_only() -> None:
    async def scenario() -> None:
        async with hostile() as site, hostile() as other:
            client = client_for(site)
            async with GateProxy(client) as proxy:
                assert proxy.url.startswith("http://127.0.0.1:")
                page = await send_to_proxy(
                    proxy, f"GET {site.url('/good')} HTTP/1.1\r\nHost: liar.test\r\nConnection: keep-alive"
                )
                assert page.startswith(b"HTTP/1.1 200")
                assert PAGE in page
                assert site.requests[-1].headers["host"] == f"127.0.0.1:{site.port}"
                assert "proxy-authorization" not in site.requests[-1].headers
                for request, status in {
                    f"GET {other.url('/good')} HTTP/1.1": b"403",
                    f"CONNECT 127.0.0.1:{other.port} HTTP/1.1": b"403",
                    "CONNECT 10.0.0.1:443 HTTP/1.1": b"403",
                    "CONNECT [::ffff:169.254.169.254]:80 HTTP/1.1": b"403",
                    "GET /good HTTP/1.1": b"400",
                    "GET ftp://docs.test/ HTTP/1.1": b"400",
                    "nonsense": b"400",
                }.items():
                    assert (await send_to_proxy(proxy, request)).split(b" ")[1] == status, request
                wrong = await send_to_proxy(proxy, f"GET {site.url('/good')} HTTP/1.1", password="guess")
                assert wrong.startswith(b"HTTP/1.1 407")
                assert proxy.password not in repr(proxy)
                assert not other.requests
            await client.close()

    asyncio.run(scenario())


def test_another_http_client_can_use_the_tunnel() -> None:
    async def scenario() -> None:
        async with hostile() as site:
            client = client_for(site)
            async with GateProxy(client) as proxy:
                reader, writer = await asyncio.open_connection("127.0.0.1", int(proxy.url.rpartition(":")[2]))
                login = base64.b64encode(f"kept:{proxy.password}".encode()).decode()
                writer.write(
                    f"CONNECT 127.0.0.1:{site.port} HTTP/1.1\r\nProxy-Authorization: Basic {login}\r\n\r\n".encode()
                )
                assert (await reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 200")
                for _ in range(3):
                    writer.write(b"GET /good HTTP/1.1\r\nHost: x\r\n\r\n")
                    assert (await reader.readuntil(PAGE)).startswith(b"HTTP/1.1 200")
                writer.close()
                headers = {"Proxy-Authorization": f"Basic {login}"}
                async with (
                    aiohttp.ClientSession() as session,
                    session.get(site.url("/good"), proxy=proxy.url, proxy_headers=headers, headers=headers) as answer,
                ):
                    assert await answer.read() == PAGE
            await client.close()

    asyncio.run(scenario())


def test_one_gate_proxy_behind_another() -> None:
    """The proxy of a source is used for subprocesses as well."""

    async def scenario() -> None:
        async with hostile() as site:
            outer = client_for(site)
            async with GateProxy(outer) as upstream:
                where = upstream.url.replace("http://", f"http://{upstream.username}:{upstream.password}@")
                inner = HttpClient(allowed={("127.0.0.1", site.port): {"loopback"}}, proxy=where)
                answer = await inner.request(site.url("/good"), max_bytes=1000)
                assert isinstance(answer, HttpResponse)
                assert answer.body == PAGE
                async with GateProxy(inner) as proxy:
                    assert PAGE in await send_to_proxy(proxy, f"GET {site.url('/good')} HTTP/1.1")
                await inner.close()
            await outer.close()

    asyncio.run(scenario())


def test_the_gate_proxy_works_behind_a_proxy_with_tls(certificate: Path) -> None:
    async def scenario() -> None:
        async with hostile() as site:
            outer = client_for(site)
            async with GateProxy(outer) as upstream:
                secured = await asyncio.start_server(upstream._handle_client, "127.0.0.1", 0, ssl=serving(certificate))
                port = secured.sockets[0].getsockname()[1]
                where = f"https://{upstream.username}:{upstream.password}@docs.test:{port}"
                for trusted, status in ((str(certificate), b"200"), (None, b"502")):
                    inner = HttpClient(
                        allowed={("127.0.0.1", site.port): {"loopback"}}, proxy=where, ca_file=trusted, resolver=here
                    )
                    async with GateProxy(inner) as proxy:
                        answer = await send_to_proxy(proxy, f"GET {site.url('/good')} HTTP/1.1")
                        assert answer.split(b" ")[1] == status
                    await inner.close()
                secured.close()
            await outer.close()

    asyncio.run(scenario())


def test_a_proxy_that_hangs_up_instead_of_answering_is_a_bad_gateway() -> None:
    async def scenario() -> None:
        gone = asyncio.Event()

        async def hang_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write_eof()
            await reader.read()  # until our side has closed its end as well
            gone.set()
            writer.close()

        server = await asyncio.start_server(hang_up, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        client = HttpClient(allowed={("127.0.0.1", 9): {"loopback"}}, proxy=f"http://127.0.0.1:{port}")
        async with GateProxy(client) as proxy:
            assert (await send_to_proxy(proxy, "CONNECT 127.0.0.1:9 HTTP/1.1")).startswith(b"HTTP/1.1 502")
            await asyncio.wait_for(gone.wait(), 5)
        await client.close()
        server.close()

    asyncio.run(scenario())
