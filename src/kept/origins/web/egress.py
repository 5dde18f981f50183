"""The one gate to the network. Every request of a web origin goes through it, of whatever kind and at every hop.

    1. parse      http and https only, one spelling, no credentials
    2. resolve    the host's addresses, by a resolver that tests replace
    3. check      every one of them, with what it may carry inside: one that is not public refuses the host
    4. connect    to exactly those addresses (TLS and Host by name); the socket is checked once more as it is made
    5. read       within limits of time, of headers, of unpacked bytes, of the ratio between packed and unpacked

Addresses that are not public are reached only as one of the ``allowed`` pairs of host and port. Secrets go to their
own origin and nowhere else. What goes wrong is a value with a reason; nothing here follows a redirect unasked.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import cache
from time import monotonic
from typing import TypeAlias

from kept.errors import WrongCall
from kept.origins.web import reasons
from kept.origins.web.addresses import is_literal
from kept.origins.web.deadlines import Deadlines, TimedOut
from kept.origins.web.decoding import ACCEPTED
from kept.origins.web.exchange import Answer, NoAnswer, Patience, Secrets, Trouble, Wanted, is_good
from kept.origins.web.gate import (
    AddressInfo,
    Closed,
    Gate,
    Pair,
    Resolve,
    Target,
    Unresolved,
    resolve_by_system,
    target_of,
)
from kept.origins.web.upstream import ProxyAway, Upstream, parse_upstream
from kept.origins.web.way import Way, merged
from kept.origins.web.wire import Asked, Broken, Dropped, Unread, Wire

ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/json;q=0.7,*/*;q=0.5"
REDIRECTS = 5
_BUFFER = 256 * 1024

OpenSocket: TypeAlias = Callable[[AddressInfo], socket.socket]
Streams: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Egress:
    """The way out for one source. Two sources never share one: what one may reach, another may not."""

    def __init__(
        self,
        *,
        allowed: frozenset[Pair] = frozenset(),
        user_agent: str = "Kept",
        secrets: Secrets | None = None,
        patience: Patience | None = None,
        proxy: str | None = None,
        ca_file: str | None = None,
        resolve: Resolve = resolve_by_system,
        open_socket: OpenSocket | None = None,
    ) -> None:
        self.gate = Gate(allowed, resolve)
        self.patience = patience or Patience()
        self.turn: Callable[[str], AbstractAsyncContextManager[None]] = lambda url: nullcontext()
        self._secrets = secrets or Secrets()
        self._in_pages = self._secrets.in_pages()
        self._told = [("User-Agent", user_agent), ("Accept", ACCEPT), ("Accept-Encoding", ACCEPTED)]
        self._proxy = parse_upstream(proxy) if proxy else None
        self._own_trust = _trusting(ca_file) if ca_file else None
        # Behind a proxy the only thing we dial is the proxy, which the owner named.
        self._dialled = self._proxy.gate(resolve) if self._proxy else self.gate
        self._open_socket = open_socket
        self._ways: dict[Target, Way] = {}
        self._buffer: memoryview | None = None
        self._deadlines = Deadlines(whole=self.patience.whole, silence=self.patience.first_byte)

    def __repr__(self) -> str:
        return "Egress()"  # no address of a proxy, no header: they may hold secrets

    async def ask(
        self,
        url: str,
        *,
        most: int,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        wanted: Wanted = is_good,
        cut: bool = False,
        seconds: float | None = None,
    ) -> Answer | NoAnswer:
        """One GET of a canonical URL (with a ``body``: one POST), no redirects.

        Bodies are read where ``wanted``, up to ``most`` unpacked bytes; with ``cut`` the rest is left out instead
        of refusing it. ``seconds``: what is left of the time for the whole.
        """
        began = monotonic()
        try:
            if (target := target_of(url)) is None:
                raise Closed("not a web address that can be asked")
            way = self._ways.get(target) or self._way(target)
            request = way.request(url, headers, body)
            with self._deadlines.limit(seconds) as limit:
                if self._proxy is not None:
                    await self._clear(target)
                asked = Asked(url, request, most, wanted, cut, limit, began)
                if wire := way.take():
                    try:
                        return await wire.ask(asked)
                    except Dropped as error:
                        # A server may end what is idle just as we ask. What it may act upon is not said twice.
                        if not error.silent or body is not None:
                            raise
                return await (await self._connected(way)).ask(asked)
        except Closed as error:
            return NoAnswer(url=url, trouble=Trouble.CLOSED, reason=self._secrets.redact(str(error)))
        except Unread as error:
            trouble, reason = reasons.of_unpacking(error.why, most)
            return NoAnswer(url=url, trouble=trouble, reason=reason, status=error.status, took=error.took)
        except (TimedOut, Broken, OSError, ValueError) as error:
            trouble, reason = reasons.of_asking(error, self.patience)
            return NoAnswer(url=url, trouble=trouble, reason=self._secrets.redact(reason), took=monotonic() - began)

    async def follow(
        self, url: str, *, most: int, wanted: Wanted = is_good, cut: bool = False, redirects: int = REDIRECTS
    ) -> Answer | NoAnswer:
        """The answer at the end of at most so many redirects, wherever they lead; each hop passes the gate.

        Whoever asks so has no turn at the host yet: it is waited for here.
        """
        async with self.turn(url):
            return await self._follow(url, most=most, wanted=wanted, cut=cut, redirects=redirects)

    async def _follow(self, url: str, *, most: int, wanted: Wanted, cut: bool, redirects: int) -> Answer | NoAnswer:
        ends = monotonic() + self.patience.whole
        for _ in range(redirects + 1):
            answer = await self.ask(url, most=most, wanted=wanted, cut=cut, seconds=max(0.001, ends - monotonic()))
            if isinstance(answer, NoAnswer) or answer.status not in (301, 302, 303, 307, 308):
                return answer
            if (to := answer.location) is None:
                return NoAnswer(url=url, trouble=Trouble.NEVER, reason="redirects to nowhere", status=answer.status)
            url = to
        return NoAnswer(url=url, trouble=Trouble.NEVER, reason="redirects too often", status=answer.status)

    async def connect(self, host: str, port: int) -> Streams:
        """A connection to a checked address, for programs that speak for themselves. Raises Closed or OSError."""
        if self._proxy is None:
            return await asyncio.open_connection(sock=await self._dial(self.gate, host, port))
        await self._clear(Target("", host, port))
        return await self._tunnel(self._proxy, host, port)

    async def check(self, url: str) -> None:
        """Raises Closed if this URL could never be asked for. A host that cannot be resolved now may be one day."""
        if (target := target_of(url)) is None:
            raise Closed("not a web address that can be asked")
        with suppress(OSError):
            await self.gate.addresses(target.host, target.port)

    def redact(self, text: str) -> str:
        """The text without any secret of this source."""
        return self._secrets.redact(text)

    def redact_page(self, page: bytes) -> bytes:
        """The body of a page, or its URL, without any secret of this source."""
        for part in self._in_pages:
            page = page.replace(part, b"***")
        return page

    async def knock(self, url: str, seconds: float) -> None:
        """OSError if there is nobody to connect to, or no proxy: refused, or a name nobody has. A slow host passes."""
        if target := target_of(url):
            with suppress(TimeoutError, Closed):
                async with asyncio.timeout(seconds):
                    made = await self._dial(self._dialled, *(self._proxy.pair if self._proxy else target.pair))
                    made.close()

    async def close(self) -> None:
        for way in self._ways.values():
            way.close()
        self._ways.clear()
        await asyncio.sleep(0)  # then their sockets are closed

    async def _clear(self, target: Target) -> None:
        """Checks what only the proxy will dial."""
        if is_literal(target.host):
            self.gate.check(target.host, target.port, target.host)
        else:
            with suppress(OSError):  # a name that only the proxy can resolve is the proxy's business
                await self.gate.addresses(target.host, target.port)

    def _way(self, target: Target) -> Way:
        told = merged(self._told, self._secrets.headers) if self._secrets.target == target else self._told
        proxy = self._proxy if target.scheme == "http" else None  # of https it sees nothing
        if proxy and proxy.login:
            told = merged(told, [("Proxy-Authorization", proxy.login)])
        if self._buffer is None:
            self._buffer = memoryview(bytearray(_BUFFER))
        way = self._ways[target] = Way(target, told, self._buffer, by_proxy=proxy is not None)
        return way

    async def _connected(self, way: Way) -> Wire:
        """A new connection, made within the time for it."""
        loop, wire, (scheme, host, port) = asyncio.get_running_loop(), Wire(way), way.target
        name = host.rstrip(".") if scheme == "https" else None
        for other in self._ways.values():
            other.tidy()
        async with asyncio.timeout(self.patience.connect):
            if self._proxy and name:
                _, below = await self._tunnel(self._proxy, host, port)
                secured = await loop.start_tls(below.transport, wire, self._trust(), server_hostname=name)
                assert secured is not None, "the tunnel was open"
                wire.connection_made(secured)
                wire.below = below  # which would close the tunnel if it went before the wire
                return wire
            if self._proxy:
                made, name = await self._dial_proxy(self._proxy), self._proxy.tls_name
            else:
                made = await self._dial(self.gate, host, port)
            tls = self._trust() if name else None
            await loop.create_connection(lambda: wire, sock=made, ssl=tls, server_hostname=name)
            return wire

    async def _tunnel(self, proxy: Upstream, host: str, port: int) -> Streams:
        name, made = proxy.tls_name, await self._dial_proxy(proxy)
        tls = self._trust() if name else None
        reader, writer = await asyncio.open_connection(sock=made, ssl=tls, server_hostname=name)
        try:
            await proxy.tunnel(reader, writer, host, port)
        except BaseException:  # also who lost patience
            writer.close()
            raise
        return reader, writer

    async def _dial_proxy(self, proxy: Upstream) -> socket.socket:
        try:
            return await self._dial(self._dialled, *proxy.pair)
        except Unresolved:
            raise
        except OSError as error:
            raise ProxyAway(*error.args) from None

    async def _dial(self, gate: Gate, host: str, port: int) -> socket.socket:
        """Connected to the first of the checked addresses that lets itself be connected to."""
        loop, failed = asyncio.get_running_loop(), OSError("the host has no address")
        for address in await gate.addresses(host, port):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                made = self._new_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)))
            except OSError as error:
                failed = error
                continue
            try:
                made.setblocking(False)
                await loop.sock_connect(made, (address, port))
            except OSError as error:
                made.close()
                failed = error
            except BaseException:
                made.close()
                raise
            else:
                return made
        raise failed

    def _trust(self) -> ssl.SSLContext:
        return self._own_trust or _trust_of_the_system()

    def _new_socket(self, info: AddressInfo) -> socket.socket:
        checked = self._dialled.open_socket(info)
        if self._open_socket is None:
            return checked
        checked.close()
        return self._open_socket(info)


@cache
def _trust_of_the_system() -> ssl.SSLContext:
    """Made when it is needed, and once: reading all those certificates takes longer than most requests."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _trusting(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise WrongCall(
            f"Expected a file of certificates, found that {ca_file} cannot be read as one: {error}"
        ) from None
    return context
