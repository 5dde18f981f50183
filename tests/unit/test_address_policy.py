"""No address that is not public is ever dialled, however it is spelled and wherever it comes from (fault 15).

Nothing here leaves this machine. Names are resolved by a table; every connection that the code under test tries to make
is recorded, and redirected to a server on loopback if it is for the one public address of the table, else refused.
"""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address, IPv6Address, IPv6Network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import SourceUnavailable
from kept.model.frontier import Fetched, FrontierEntry, ListedUrl, ListingFailure, Refused, Unreachable
from kept.model.source import Access, Scope, SourceSettings
from kept.model.url import canonicalize_url, resolve_link
from kept.origins.web import WebOrigin, make_web_origin
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, FailureKind
from kept.origins.web.http.public_addresses import why_not_public
from kept.origins.web.rate_limiter import RateLimiters

PUBLIC = "93.184.216.34"
SITE = "http://docs.test"

SPELLED_OUT = ("10.0.0.1", "127.0.0.1", "169.254.169.254", "192.168.1.1")
CLOSED_IPV4 = (
    "0.0.0.0", "100.64.0.1", "100.100.100.200", "127.8.8.8", "168.63.129.16", "172.16.0.1", "172.31.255.255",
    "192.0.0.192", "192.0.2.1", "198.18.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255",
)  # fmt: skip
CLOSED_IPV6 = (
    "::", "::1", "0:0:0:0:0:0:0:1", "0000:0000:0000:0000:0000:0000:0000:0001", "::2", "100::1", "64:ff9b:1::1",
    "fc00::1", "fd00:ec2::254", "fd20:ce::254", "fe80::1", "fec0::1", "ff02::1", "2001:2::1", "2001:10::1",
    "2001:20::1", "2001:db8::1", "3fff::1", "5f00::1", "4000::1",
)  # fmt: skip
FULL_WIDTH = str.maketrans("0123456789.", "０１２３４５６７８９．")
CIRCLED = str.maketrans("123456789", "①②③④⑤⑥⑦⑧⑨")


def spellings(address: str) -> list[str]:
    """Return the spellings of a host that mean, or may mean, an IPv4 address."""
    a, b, c, d = map(int, address.split("."))
    number = int(IPv4Address(address))
    high, low = number >> 16, number & 0xFFFF
    flipped = number ^ 0xFFFF_FFFF
    return [
        address, f"{address}.", str(number), hex(number), hex(number).upper(), f"0{number:o}",
        f"{a}.{number & 0xFFFFFF}", f"{a}.{b}.{low}", f"{a:#x}.{b:#x}.{c:#x}.{d:#x}", f"0{a:o}.0{b:o}.0{c:o}.0{d:o}",
        f"{a:#x}.{b}.0{c:o}.{d}", f"0{a:03o}.0{b:03o}.0{c:03o}.0{d:03o}", address.translate(FULL_WIDTH),
        address.translate(CIRCLED), address.replace(".", "。"), address.replace(".", "%2e"),
        f"%3{str(a)[0]}{str(a)[1:]}.{b}.{c}.{d}", f"user:password@{address}", f"docs.test@{address}", f"{address}:80",
        f"{address}\\@docs.test", f"{address}#@docs.test",
        f"[::ffff:{address}]", f"[::ffff:{high:x}:{low:x}]", f"[0:0:0:0:0:ffff:{high:x}:{low:x}]", f"[::{address}]",
        f"[::ffff:0:{address}]", f"[64:ff9b::{address}]", f"[64:ff9b::{high:x}:{low:x}]", f"[64:ff9b:1::{address}]",
        f"[2002:{high:x}:{low:x}::1]", f"[2001:0:5db8:d822::{flipped >> 16:x}:{flipped & 0xFFFF:x}]",
        f"[2001:0:{high:x}:{low:x}::a247:27dd]", f"[2001:470::5efe:{address}]", f"[2001:470::200:5efe:{address}]",
    ]  # fmt: skip


HOSTS = sorted(
    {spelled for address in SPELLED_OUT for spelled in spellings(address)}
    | {
        spelled
        for address in CLOSED_IPV4
        for spelled in (address, str(int(IPv4Address(address))), f"[::ffff:{address}]")
    }
    | {f"[{address}]" for address in CLOSED_IPV6}
    | {f"[{address}%25eth0]" for address in ("::1", "fe80::1")}
    | {"localhost", "LOCALHOST", "localhost.", "ⓛocalhost", "metadata.google.internal", "rebound.test", "mixed.test"}
)
NAMES: dict[str, Sequence[str]] = {
    "docs.test": [PUBLIC],
    "localhost": ["127.0.0.1", "::1"],
    "metadata.google.internal": ["169.254.169.254"],
    "rebound.test": ["127.0.0.1"],
    "mixed.test": [PUBLIC, "10.0.0.1"],
}


def test_there_are_enough_spellings() -> None:
    assert len(HOSTS) >= 160


# ── The world of these tests ─────────────────────────────────────────────────────────────────────────────────────────


class World:
    """A table of names, a server behind the public address, and a list of all dialled addresses."""

    def __init__(self) -> None:
        self.names = dict(NAMES)
        self.dialled: list[str] = []
        self.answers: dict[str, str] = {}  # path -> the rest of an answer after "HTTP/1.1 "
        self._port = 0

    async def resolve(self, host: str, port: int) -> Sequence[str]:
        if host not in self.names:
            raise OSError(f"{host} is not in the table")
        return self.names[host]

    def open_socket(self, info: Any) -> socket.socket:
        self.dialled.append(info[4][0])
        if info[4][0] != PUBLIC:
            raise OSError("not in this test")
        return _Led(self._port)

    def origin(self, root: str = f"{SITE}/", **settings: Any) -> WebOrigin:
        return make_web_origin(
            root,
            SourceSettings(**settings),
            resolver=self.resolve,
            open_socket=self.open_socket,
            rate_limiters=RateLimiters(),
        )

    def client(self) -> HttpClient:
        return HttpClient(resolver=self.resolve, open_socket=self.open_socket)

    @property
    def strays(self) -> list[str]:
        return [address for address in self.dialled if address != PUBLIC]

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while line := (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")[0]:
                answer = self.answers.get(line.split(" ")[1], "404 Not Found\r\nContent-Length: 0\r\n\r\n")
                writer.write(f"HTTP/1.1 {answer}".encode())  # non-ASCII hosts come as they are, in UTF-8
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            writer.close()


class _Led(socket.socket):
    """A socket redirected to loopback that reports the public address."""

    def __init__(self, port: int) -> None:
        super().__init__(socket.AF_INET, socket.SOCK_STREAM)
        self._to = ("127.0.0.1", port)

    def connect(self, address: Any) -> None:
        super().connect(self._to)


@asynccontextmanager
async def open_world() -> AsyncIterator[World]:
    world = World()
    server = await asyncio.start_server(world.serve, "127.0.0.1", 0)
    world._port = server.sockets[0].getsockname()[1]
    try:
        yield world
    finally:
        server.close()


def body(text: str) -> str:
    return f"200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(text.encode())}\r\n\r\n{text}"


def redirect(to: str) -> str:
    return f"302 Found\r\nLocation: {to}\r\nContent-Length: 0\r\n\r\n"


def entry(url: str) -> FrontierEntry:
    return FrontierEntry(url=url, depth=0, attempts=0, reached=True, base_version=None)


# ── Every spelling, by every way in ──────────────────────────────────────────────────────────────────────────────────


async def as_root(world: World, host: str) -> None:
    root = canonicalize_url(f"http://{host}/")
    if root is None or root.startswith(f"{SITE}/"):
        return
    origin = world.origin(root)
    with pytest.raises(SourceUnavailable):
        await origin.open()
    assert not [one async for one in origin.list() if isinstance(one, ListedUrl) and one.url != root]
    assert not isinstance(await origin.visit(entry(root), conditional=False), Fetched)
    await origin.close()


async def as_link(world: World, host: str) -> None:
    """Link to the address from a page, within the scope of the source."""
    link = resolve_link(f"http://{host}/page", f"{SITE}/")
    if link is None or link.startswith(f"{SITE}/"):
        return
    origin = world.origin(scope=Scope(within=("host", link)), access=Access(ignore_robots=True))
    assert origin.admits(link)
    assert isinstance(await origin.visit(entry(link), conditional=False), Refused)
    await origin.close()


async def as_base(world: World, host: str) -> None:
    """Use the address as the base URL of a page."""
    link = resolve_link("page", f"http://{host}/")
    if link is None or link.startswith(f"{SITE}/"):
        return
    client = world.client()
    answer = await client.request(link, max_bytes=1000)
    assert isinstance(answer, FailedRequest)
    assert answer.kind is FailureKind.FORBIDDEN
    await client.close()


async def as_redirect(world: World, host: str) -> None:
    world.answers["/here"] = redirect(f"http://{host}/page")
    world.answers["/page"] = body("only if the spelling was this site's own")
    origin = world.origin(scope=Scope(within=("host", "http://[::1]/", "http://127.0.0.1/", "http://10.0.0.1/")))
    found = await origin.visit(entry(f"{SITE}/here"), conditional=False)
    assert isinstance(found, Refused | Unreachable) or (isinstance(found, Fetched) and b"own" in found.body)
    await origin.close()
    client = world.client()
    await client.get_following_redirects(f"{SITE}/here", max_bytes=1000)
    await client.close()


async def as_robots(world: World, host: str) -> None:
    world.answers["/robots.txt"] = redirect(f"http://{host}/robots.txt")
    origin = world.origin()
    await origin.visit(entry(f"{SITE}/here"), conditional=False)
    await origin.close()


async def as_sitemap(world: World, host: str) -> None:
    """Use the address in robots.txt, a sitemap index, a sitemap and llms.txt."""
    there = f"http://{host}/x".replace("&", "&amp;").replace("<", "&lt;")
    world.answers["/robots.txt"] = body(f"Sitemap: http://{host}/sitemap.xml\nSitemap: {SITE}/index.xml")
    world.answers["/index.xml"] = body(
        f"<sitemapindex><sitemap><loc>{there}</loc></sitemap><sitemap><loc>{SITE}/pages.xml</loc></sitemap></sitemapindex>"
    )
    world.answers["/pages.xml"] = body(f"<urlset><url><loc>{there}</loc></url></urlset>")
    world.answers["/llms.txt"] = body(f"[x]({there})").replace("text/html", "text/plain")
    origin = world.origin()
    listed = [one async for one in origin.list()]
    assert all(one.url.startswith(SITE) for one in listed if isinstance(one, ListedUrl))
    assert any(isinstance(one, ListingFailure) for one in listed) or resolve_link(f"http://{host}/", SITE) in (
        None,
        f"{SITE}/",
    )
    await origin.close()


async def as_name(world: World, host: str) -> None:
    """Let a harmless name resolve to the address: at once, or only the second time (rebinding)."""
    target = resolve_link("/", f"http://{host}/")
    address = (target or "").removeprefix("http://").strip("/[]")
    if why_not_public(address) in (None, "not an address"):
        return
    world.names["pages.test"] = [PUBLIC]
    origin = world.origin("http://pages.test/", access=Access(ignore_robots=True))
    await origin.open()
    for addresses in ([address], [PUBLIC, address], [address, PUBLIC]):
        world.names["pages.test"] = addresses
        assert isinstance(await origin.visit(entry("http://pages.test/"), conditional=False), Refused)
    await origin.close()


WAYS = (as_root, as_link, as_base, as_redirect, as_robots, as_sitemap, as_name)


@pytest.mark.parametrize("way", WAYS)
def test_no_address_that_is_not_public_is_dialled(way: Any) -> None:
    async def scenario() -> None:
        async with open_world() as world:
            for host in HOSTS:
                await way(world, host)
                assert world.strays == [], host

    asyncio.run(scenario())


# ── The gate itself ──────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_public_host_is_dialled_at_exactly_the_checked_address() -> None:
    async def scenario() -> None:
        async with open_world() as world:
            world.answers["/page"] = body("hello")
            client = world.client()
            answer = await client.request(f"{SITE}/page", max_bytes=1000)
            assert not isinstance(answer, FailedRequest)
            assert answer.body == b"hello"
            assert world.dialled == [PUBLIC]
            await client.close()

    asyncio.run(scenario())


def test_an_allowed_pair_permits_that_host_and_port_only() -> None:
    async def scenario() -> None:
        world = World()
        world.names["other.test"] = ["127.0.0.1"]
        allowed = {("localhost", 8000): {"loopback"}}
        client = HttpClient(allowed=allowed, resolver=world.resolve, open_socket=world.open_socket)
        await client.request("http://localhost:8000/", max_bytes=10)
        assert set(world.dialled) == {"127.0.0.1", "::1"}
        world.dialled.clear()
        for url in (
            "http://localhost/", "http://localhost:8001/", "http://127.0.0.1:8000/", "http://[::1]:8000/",
            "http://other.test:8000/", "https://localhost/", "http://127.0.0.2:8000/",
        ):  # fmt: skip
            answer = await client.request(url, max_bytes=10)
            assert isinstance(answer, FailedRequest), url
            assert answer.kind is FailureKind.FORBIDDEN, url
        assert world.dialled == []
        await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "url",
    ["file:///etc/passwd", "ftp://docs.test/", "gopher://docs.test/", "http:/docs.test/", "http://docs.test",
     "//docs.test/", "http://docs.test:0/", "http://docs.test:99999/", "http://user@docs.test/", "http://docs.test\\@127.0.0.1/",
     "http://docs.test/\r\nHost: x", "http://docs.test/ü", "http://DOCS.test/", "http://docs.test/#x", "http:///x", ""],
)  # fmt: skip
def test_a_url_that_is_not_canonical_is_not_requested(url: str) -> None:
    async def scenario() -> None:
        world = World()
        client = world.client()
        answer = await client.request(url, max_bytes=10)
        assert isinstance(answer, FailedRequest)
        assert answer.kind is FailureKind.FORBIDDEN
        assert world.dialled == []
        await client.close()

    asyncio.run(scenario())


def test_the_check_at_the_socket_holds_by_itself() -> None:
    client = World().client()
    for address in ("127.0.0.1", "::1", "169.254.169.254", "::ffff:10.0.0.1"):
        with pytest.raises(OSError, match="not a public address"):
            client._new_socket((socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80)))


def test_behind_a_proxy_private_hosts_are_forbidden_as_well() -> None:
    async def scenario() -> None:
        world = World()
        world.names["proxy.test"] = ["10.1.1.1"]
        client = HttpClient(proxy="http://proxy.test:3128", resolver=world.resolve, open_socket=world.open_socket)
        for url in ("http://127.0.0.1/", "http://rebound.test/", "http://proxy.test:3128/", "https://localhost/"):
            answer = await client.request(url, max_bytes=10)
            assert isinstance(answer, FailedRequest)
            assert answer.kind is FailureKind.FORBIDDEN
        assert world.dialled == []
        await client.request(f"{SITE}/", max_bytes=10)
        assert world.dialled == ["10.1.1.1"], "the proxy, which the owner named"
        await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "address",
    ["93.184.216.34", "8.8.8.8", "192.0.1.1", "2606:4700::1111", "2a00::1", "::ffff:8.8.8.8", "64:ff9b::808:808",
     "2002:808:808::1"],
)  # fmt: skip
def test_public_addresses_are_allowed(address: str) -> None:
    assert why_not_public(address) is None


@given(st.ip_addresses(v=4))
def test_addresses_that_python_calls_private_are_forbidden(address: IPv4Address) -> None:
    if address.is_private or address.is_multicast or address.is_reserved or not address.is_global:
        assert why_not_public(str(address))
        assert why_not_public(f"::ffff:{address}")
        assert why_not_public(f"64:ff9b::{address}")


@given(st.ip_addresses(v=6))
def test_ipv6_is_allowed_only_in_allocated_ranges(address: IPv6Address) -> None:
    if why_not_public(str(address)) is None:
        assert address in IPv6Network("2000::/3") or address in IPv6Network("64:ff9b::/96") or address.ipv4_mapped


@given(st.text(max_size=30))
def test_text_that_is_not_an_address_is_forbidden(text: str) -> None:
    if not any(character in text for character in ".:"):
        assert why_not_public(text)
