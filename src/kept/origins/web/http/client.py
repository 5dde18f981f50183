"""The HTTP client. Every request of a source goes through it, at every redirect.

    1. parse      http and https only, canonical URLs, no credentials
    2. resolve    the host's addresses, by a resolver that tests replace
    3. check      every address by the address policy: one that is not public forbids the host
    4. connect    to exactly those addresses (TLS and Host by name); each socket is checked once more
    5. read       within limits of time, headers, decompressed bytes and compression ratio

Addresses that are not public are reached only as one of the ``allowed`` pairs of host and port. Secret headers go to
their own endpoint only. Failures are values with a reason. Redirects are followed only by ``get_following_redirects``.
"""

import asyncio
import socket
import ssl
from collections.abc import Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from functools import cache
from time import monotonic
from typing import TypeAlias

from kept.errors import InvalidInput
from kept.origins.web.http import error_text
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
    """The client of one source. Sources never share one: what one may reach, another may not."""

    def __init__(
        self,
        *,
        allowed: Mapping[HostPort, Collection[str]] | None = None,
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
        # With a proxy, only the proxy is dialled, which the source's owner chose.
        self._dial_policy = self._proxy.make_address_policy(resolver) if self._proxy else self.address_policy
        self._open_socket = open_socket
        self._host_pools: dict[Endpoint, HostPool] = {}
        self._read_buffer: memoryview | None = None
        self._deadlines = Deadlines(total=self.timeouts.total, read=self.timeouts.read)

    def __repr__(self) -> str:
        return "HttpClient()"  # proxy and headers may hold secrets

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
        """Send one GET (with a ``body``: one POST) for a canonical URL. Follows no redirects.

        The body is read where ``wants_body``, up to ``max_bytes`` decompressed; a larger one fails, or is cut with
        ``truncate``. ``seconds``: the time that is left for the whole request.
        """
        started_at = monotonic()
        try:
            if (endpoint := parse_endpoint(url)) is None:
                raise AddressForbidden("not a valid web address")
            pool = self._host_pools.get(endpoint) or self._new_host_pool(endpoint)
            raw = pool.build_request(url, headers, body)
            with self._deadlines.track(seconds) as deadline:
                if self._proxy is not None:
                    await self._check_proxied(endpoint)
                request = HttpRequest(url, raw, max_bytes, wants_body, truncate, deadline, started_at)
                if connection := pool.take_idle():
                    try:
                        return await connection.send(request)
                    except ConnectionDropped as error:
                        # A server may close an idle connection just now. A POST is not repeated: it may have arrived.
                        if not error.nothing_received or body is not None:
                            raise
                return await (await self._open_connection(pool)).send(request)
        except AddressForbidden as error:
            return FailedRequest(url=url, kind=FailureKind.FORBIDDEN, reason=self._secret_headers.redact(str(error)))
        except BodyRejected as error:
            kind, reason = error_text.classify_body_error(error.cause, max_bytes)
            return FailedRequest(url=url, kind=kind, reason=reason, status=error.status, elapsed=error.elapsed)
        except (RequestTimedOut, ResponseError, OSError, ValueError) as error:
            kind, reason = error_text.classify_request_error(error, self.timeouts)
            return FailedRequest(
                url=url, kind=kind, reason=self._secret_headers.redact(reason), elapsed=monotonic() - started_at
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
        """GET a URL and follow redirects to any host; the address policy holds for each hop.

        Waits for a slot of the host's rate limit, which callers of ``request`` hold already.
        """
        async with self.rate_limit(url):
            return await self._follow_redirects(
                url, max_bytes=max_bytes, wants_body=wants_body, truncate=truncate, max_redirects=max_redirects
            )

    async def _follow_redirects(
        self, url: str, *, max_bytes: int, wants_body: WantsBody, truncate: bool, max_redirects: int
    ) -> HttpResponse | FailedRequest:
        deadline = monotonic() + self.timeouts.total
        for _ in range(max_redirects + 1):
            response = await self.request(
                url,
                max_bytes=max_bytes,
                wants_body=wants_body,
                truncate=truncate,
                seconds=max(0.001, deadline - monotonic()),
            )
            if isinstance(response, FailedRequest) or response.status not in (301, 302, 303, 307, 308):
                return response
            if (to := response.location) is None:
                return FailedRequest(
                    url=url, kind=FailureKind.PERMANENT, reason="redirects to nowhere", status=response.status
                )
            url = to
        return FailedRequest(url=url, kind=FailureKind.PERMANENT, reason="redirects too often", status=response.status)

    async def connect(self, host: str, port: int) -> StreamPair:
        """Connect to a checked address, for programs behind the gate proxy. Raises AddressForbidden or OSError."""
        if self._proxy is None:
            return await asyncio.open_connection(sock=await self._dial(self.address_policy, host, port))
        await self._check_proxied(Endpoint("", host, port))
        return await self._open_tunnel(self._proxy, host, port)

    async def check_url(self, url: str) -> None:
        """Raise AddressForbidden if this URL can never be requested. A host that does not resolve now passes."""
        if (endpoint := parse_endpoint(url)) is None:
            raise AddressForbidden("not a valid web address")
        with suppress(OSError):
            await self.address_policy.resolve_allowed(endpoint.host, endpoint.port)

    def redact(self, text: str) -> str:
        """Return the text without this source's secrets."""
        return self._secret_headers.redact(text)

    def redact_bytes(self, data: bytes) -> bytes:
        """Return a page's body, or its URL, without this source's secrets."""
        for part in self._page_redactions:
            data = data.replace(part, b"***")
        return data

    async def probe(self, url: str, seconds: float) -> None:
        """Raise OSError if the host, or the proxy, does not resolve or refuses connections. A slow host passes."""
        if endpoint := parse_endpoint(url):
            host_port = self._proxy.host_port if self._proxy else endpoint.host_port
            with suppress(TimeoutError, AddressForbidden):
                async with asyncio.timeout(seconds):
                    opened = await self._dial(self._dial_policy, *host_port)
                    opened.close()

    async def close(self) -> None:
        for pool in self._host_pools.values():
            pool.close()
        self._host_pools.clear()
        await asyncio.sleep(0)  # lets the event loop close the sockets

    async def _check_proxied(self, endpoint: Endpoint) -> None:
        """Check an endpoint that only the proxy will dial. Raises AddressForbidden."""
        if is_ip_address(endpoint.host):
            self.address_policy.check_address(endpoint.host, endpoint.port, endpoint.host)
        else:
            with suppress(OSError):  # perhaps only the proxy can resolve the name
                await self.address_policy.resolve_allowed(endpoint.host, endpoint.port)

    def _new_host_pool(self, endpoint: Endpoint) -> HostPool:
        headers = (
            merge_headers(self._default_headers, self._secret_headers.headers)
            if self._secret_headers.endpoint == endpoint
            else self._default_headers
        )
        proxy = self._proxy if endpoint.scheme == "http" else None  # https goes through a tunnel
        if proxy and proxy.authorization:
            headers = merge_headers(headers, [("Proxy-Authorization", proxy.authorization)])
        if self._read_buffer is None:
            self._read_buffer = memoryview(bytearray(_BUFFER_BYTES))
        pool = HostPool(endpoint, headers, self._read_buffer, via_proxy=proxy is not None)
        self._host_pools[endpoint] = pool
        return pool

    async def _open_connection(self, pool: HostPool) -> HttpConnection:
        loop, connection, (scheme, host, port) = asyncio.get_running_loop(), HttpConnection(pool), pool.endpoint
        server_name = host.rstrip(".") if scheme == "https" else None
        for other in self._host_pools.values():
            other.close_expired()
        async with asyncio.timeout(self.timeouts.connect):
            if self._proxy and server_name:
                _, tunnel = await self._open_tunnel(self._proxy, host, port)
                transport = await loop.start_tls(
                    tunnel.transport, connection, self._tls_context(), server_hostname=server_name
                )
                assert transport is not None, "the tunnel was open"
                connection.connection_made(transport)
                connection.tunnel = tunnel  # a StreamWriter closes its transport when it is collected
                return connection
            if self._proxy:
                opened, server_name = await self._dial_proxy(self._proxy), self._proxy.tls_server_name
            else:
                opened = await self._dial(self.address_policy, host, port)
            tls = self._tls_context() if server_name else None
            await loop.create_connection(lambda: connection, sock=opened, ssl=tls, server_hostname=server_name)
            return connection

    async def _open_tunnel(self, proxy: UpstreamProxy, host: str, port: int) -> StreamPair:
        server_name, opened = proxy.tls_server_name, await self._dial_proxy(proxy)
        tls = self._tls_context() if server_name else None
        reader, writer = await asyncio.open_connection(sock=opened, ssl=tls, server_hostname=server_name)
        try:
            await proxy.open_tunnel(reader, writer, host, port)
        except BaseException:  # also a timeout
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
        """Return a socket connected to the first checked address that accepts a connection."""
        loop, last_error = asyncio.get_running_loop(), OSError("the host has no address")
        for address in await policy.resolve_allowed(host, port):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            try:
                opened = self._new_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)))
            except OSError as error:
                last_error = error
                continue
            try:
                opened.setblocking(False)
                await loop.sock_connect(opened, (address, port))
            except OSError as error:
                opened.close()
                last_error = error
            except BaseException:
                opened.close()
                raise
            else:
                return opened
        raise last_error

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
    """Loaded on first use, and once: reading all certificates takes longer than most requests."""
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
