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

from kept.errors import InvalidInput
from kept.origins.web import error_text
from kept.origins.web.http.address_policy import (
    AddressForbidden,
    AddressInfo,
    AddressPolicy,
    Endpoint,
    HostNotResolved,
    HostPort,
    Resolver,
    parse_endpoint,
    resolve_with_system,
)
from kept.origins.web.http.connection import BodyRejected, ConnectionDropped, HttpConnection, HttpRequest, ResponseError
from kept.origins.web.http.decoding import ACCEPT_ENCODING
from kept.origins.web.http.messages import (
    FailedRequest,
    FailureKind,
    HttpResponse,
    SecretHeaders,
    Timeouts,
    WantsBody,
    is_ok,
)
from kept.origins.web.http.pool import HostPool, merge_headers
from kept.origins.web.http.public_addresses import is_ip_address
from kept.origins.web.http.timeouts import Deadlines, RequestTimedOut
from kept.origins.web.http.upstream_proxy import ProxyUnreachable, UpstreamProxy, parse_upstream_proxy

ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/json;q=0.7,*/*;q=0.5"
MAX_REDIRECTS = 5
_BUFFER_BYTES = 256 * 1024

OpenSocket: TypeAlias = Callable[[AddressInfo], socket.socket]
StreamPair: TypeAlias = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class HttpClient:
    """The way out for one source. Two sources never share one: what one may reach, another may not."""

    def __init__(
        self,
        *,
        allowed: frozenset[HostPort] = frozenset(),
        user_agent: str = "Kept",
        secret_headers: SecretHeaders | None = None,
        timeouts: Timeouts | None = None,
        proxy: str | None = None,
        ca_file: str | None = None,
        resolver: Resolver = resolve_with_system,
        open_socket: OpenSocket | None = None,
    ) -> None:
        self.address_policy = AddressPolicy(allowed, resolver)
        self.timeouts = timeouts or Timeouts()
        self.rate_limit: Callable[[str], AbstractAsyncContextManager[None]] = lambda url: nullcontext()
        self._secret_headers = secret_headers or SecretHeaders()
        self._page_redactions = self._secret_headers.page_redactions()
        self._default_headers = [("User-Agent", user_agent), ("Accept", ACCEPT), ("Accept-Encoding", ACCEPT_ENCODING)]
        self._proxy = parse_upstream_proxy(proxy) if proxy else None
        self._custom_tls = load_tls_context(ca_file) if ca_file else None
        # Behind a proxy the only thing we dial is the proxy, which the owner named.
        self._dial_policy = self._proxy.make_address_policy(resolver) if self._proxy else self.address_policy
        self._open_socket = open_socket
        self._host_pools: dict[Endpoint, HostPool] = {}
        self._read_buffer: memoryview | None = None
        self._deadlines = Deadlines(total=self.timeouts.total, read=self.timeouts.read)

    def __repr__(self) -> str:
        return "Egress()"  # no address of a proxy, no header: they may hold secrets

    async def request(
        self,
        url: str,
        *,
        max_bytes: int,
        headers: Mapping[str, str] | None = None,
        body: bytes | None = None,
        wants_body: WantsBody = is_ok,
        truncate: bool = False,
        seconds: float | None = None,
    ) -> HttpResponse | FailedRequest:
        """One GET of a canonical URL (with a ``body``: one POST), no redirects.

        Bodies are read where ``wanted``, up to ``most`` unpacked bytes; with ``cut`` the rest is left out instead
        of refusing it. ``seconds``: what is left of the time for the whole.
        """
        began = monotonic()
        try:
            if (target := parse_endpoint(url)) is None:
                raise AddressForbidden("not a web address that can be asked")
            way = self._host_pools.get(target) or self._new_host_pool(target)
            request = way.build_request(url, headers, body)
            with self._deadlines.track(seconds) as limit:
                if self._proxy is not None:
                    await self._check_proxied(target)
                asked = HttpRequest(url, request, max_bytes, wants_body, truncate, limit, began)
                if wire := way.take_idle():
                    try:
                        return await wire.send(asked)
                    except ConnectionDropped as error:
                        # A server may end what is idle just as we ask. What it may act upon is not said twice.
                        if not error.nothing_received or body is not None:
                            raise
                return await (await self._open_connection(way)).send(asked)
        except AddressForbidden as error:
            return FailedRequest(url=url, kind=FailureKind.FORBIDDEN, reason=self._secret_headers.redact(str(error)))
        except BodyRejected as error:
            trouble, reason = error_text.classify_body_error(error.cause, max_bytes)
            return FailedRequest(url=url, kind=trouble, reason=reason, status=error.status, elapsed=error.elapsed)
        except (RequestTimedOut, ResponseError, OSError, ValueError) as error:
            trouble, reason = error_text.classify_request_error(error, self.timeouts)
            return FailedRequest(
                url=url, kind=trouble, reason=self._secret_headers.redact(reason), elapsed=monotonic() - began
            )

    async def get_following_redirects(
        self,
        url: str,
        *,
        max_bytes: int,
        wants_body: WantsBody = is_ok,
        truncate: bool = False,
        max_redirects: int = MAX_REDIRECTS,
    ) -> HttpResponse | FailedRequest:
        """The answer at the end of at most so many redirects, wherever they lead; each hop passes the gate.

        Whoever asks so has no turn at the host yet: it is waited for here.
        """
        async with self.rate_limit(url):
            return await self._follow_redirects(
                url, max_bytes=max_bytes, wants_body=wants_body, truncate=truncate, max_redirects=max_redirects
            )

    async def _follow_redirects(
        self, url: str, *, max_bytes: int, wants_body: WantsBody, truncate: bool, max_redirects: int
    ) -> HttpResponse | FailedRequest:
        ends = monotonic() + self.timeouts.total
        for _ in range(max_redirects + 1):
            answer = await self.request(
                url,
                max_bytes=max_bytes,
                wants_body=wants_body,
                truncate=truncate,
                seconds=max(0.001, ends - monotonic()),
            )
            if isinstance(answer, FailedRequest) or answer.status not in (301, 302, 303, 307, 308):
                return answer
            if (to := answer.location) is None:
                return FailedRequest(
                    url=url, kind=FailureKind.PERMANENT, reason="redirects to nowhere", status=answer.status
                )
            url = to
        return FailedRequest(url=url, kind=FailureKind.PERMANENT, reason="redirects too often", status=answer.status)

    async def connect(self, host: str, port: int) -> StreamPair:
        """A connection to a checked address, for programs that speak for themselves. Raises Closed or OSError."""
        if self._proxy is None:
            return await asyncio.open_connection(sock=await self._dial(self.address_policy, host, port))
        await self._check_proxied(Endpoint("", host, port))
        return await self._open_tunnel(self._proxy, host, port)

    async def check_url(self, url: str) -> None:
        """Raises Closed if this URL could never be asked for. A host that cannot be resolved now may be one day."""
        if (target := parse_endpoint(url)) is None:
            raise AddressForbidden("not a web address that can be asked")
        with suppress(OSError):
            await self.address_policy.resolve_allowed(target.host, target.port)

    def redact(self, text: str) -> str:
        """The text without any secret of this source."""
        return self._secret_headers.redact(text)

    def redact_bytes(self, data: bytes) -> bytes:
        """The body of a page, or its URL, without any secret of this source."""
        for part in self._page_redactions:
            data = data.replace(part, b"***")
        return data

    async def probe(self, url: str, seconds: float) -> None:
        """OSError if there is nobody to connect to, or no proxy: refused, or a name nobody has. A slow host passes."""
        if target := parse_endpoint(url):
            with suppress(TimeoutError, AddressForbidden):
                async with asyncio.timeout(seconds):
                    made = await self._dial(
                        self._dial_policy, *(self._proxy.host_port if self._proxy else target.host_port)
                    )
                    made.close()

    async def close(self) -> None:
        for way in self._host_pools.values():
            way.close()
        self._host_pools.clear()
        await asyncio.sleep(0)  # then their sockets are closed

    async def _check_proxied(self, target: Endpoint) -> None:
        """Checks what only the proxy will dial."""
        if is_ip_address(target.host):
            self.address_policy.check_address(target.host, target.port, target.host)
        else:
            with suppress(OSError):  # a name that only the proxy can resolve is the proxy's business
                await self.address_policy.resolve_allowed(target.host, target.port)

    def _new_host_pool(self, target: Endpoint) -> HostPool:
        told = (
            merge_headers(self._default_headers, self._secret_headers.headers)
            if self._secret_headers.endpoint == target
            else self._default_headers
        )
        proxy = self._proxy if target.scheme == "http" else None  # of https it sees nothing
        if proxy and proxy.authorization:
            told = merge_headers(told, [("Proxy-Authorization", proxy.authorization)])
        if self._read_buffer is None:
            self._read_buffer = memoryview(bytearray(_BUFFER_BYTES))
        way = self._host_pools[target] = HostPool(target, told, self._read_buffer, via_proxy=proxy is not None)
        return way

    async def _open_connection(self, way: HostPool) -> HttpConnection:
        """A new connection, made within the time for it."""
        loop, wire, (scheme, host, port) = asyncio.get_running_loop(), HttpConnection(way), way.endpoint
        name = host.rstrip(".") if scheme == "https" else None
        for other in self._host_pools.values():
            other.close_expired()
        async with asyncio.timeout(self.timeouts.connect):
            if self._proxy and name:
                _, below = await self._open_tunnel(self._proxy, host, port)
                secured = await loop.start_tls(below.transport, wire, self._tls_context(), server_hostname=name)
                assert secured is not None, "the tunnel was open"
                wire.connection_made(secured)
                wire.tunnel = below  # which would close the tunnel if it went before the wire
                return wire
            if self._proxy:
                made, name = await self._dial_proxy(self._proxy), self._proxy.tls_server_name
            else:
                made = await self._dial(self.address_policy, host, port)
            tls = self._tls_context() if name else None
            await loop.create_connection(lambda: wire, sock=made, ssl=tls, server_hostname=name)
            return wire

    async def _open_tunnel(self, proxy: UpstreamProxy, host: str, port: int) -> StreamPair:
        name, made = proxy.tls_server_name, await self._dial_proxy(proxy)
        tls = self._tls_context() if name else None
        reader, writer = await asyncio.open_connection(sock=made, ssl=tls, server_hostname=name)
        try:
            await proxy.open_tunnel(reader, writer, host, port)
        except BaseException:  # also who lost patience
            writer.close()
            raise
        return reader, writer

    async def _dial_proxy(self, proxy: UpstreamProxy) -> socket.socket:
        try:
            return await self._dial(self._dial_policy, *proxy.host_port)
        except HostNotResolved:
            raise
        except OSError as error:
            raise ProxyUnreachable(*error.args) from None

    async def _dial(self, policy: AddressPolicy, host: str, port: int) -> socket.socket:
        """Connected to the first of the checked addresses that lets itself be connected to."""
        loop, failed = asyncio.get_running_loop(), OSError("the host has no address")
        for address in await policy.resolve_allowed(host, port):
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

    def _tls_context(self) -> ssl.SSLContext:
        return self._custom_tls or _system_tls_context()

    def _new_socket(self, info: AddressInfo) -> socket.socket:
        checked = self._dial_policy.open_checked_socket(info)
        if self._open_socket is None:
            return checked
        checked.close()
        return self._open_socket(info)


@cache
def _system_tls_context() -> ssl.SSLContext:
    """Made when it is needed, and once: reading all those certificates takes longer than most requests."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def load_tls_context(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise InvalidInput(
            f"Expected a file of certificates, found that {ca_file} cannot be read as one: {error}"
        ) from None
    return context
