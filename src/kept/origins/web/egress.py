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
import base64
import os
import re
import socket
import ssl
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from dataclasses import dataclass
from enum import Enum, auto
from time import monotonic
from typing import NamedTuple, TypeAlias

import aiohttp
from aiohttp.http_exceptions import LineTooLong
from multidict import CIMultiDict
from yarl import URL

from kept.errors import WrongCall
from kept.model.url import resolve
from kept.origins.web.addresses import is_literal
from kept.origins.web.deadlines import Deadlines, Limit, TimedOut
from kept.origins.web.decoding import ACCEPTED, Bomb, Decoder, TooLarge, Undecodable
from kept.origins.web.gate import (
    AddressInfo,
    CheckedResolver,
    Closed,
    Gate,
    Pair,
    Resolve,
    Target,
    resolve_by_system,
    target_of,
)

REDIRECTS = 5
LONGEST_LINE = 16 * 1024  # of a header
MOST_HEADERS = 200
_DRAINED = 64 * 1024  # of a body nobody wants: reading it is cheaper than another connection
_DRAINED_WITHIN = 1.0

OpenSocket: TypeAlias = Callable[[AddressInfo], socket.socket]
Headers: TypeAlias = Mapping[str, str]


# ── What is asked, and what comes back ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long a request may take, in seconds."""

    connect: float = 10.0
    first_byte: float = 30.0  # and between any two
    whole: float = 120.0


_COOKIE = re.compile(r"=([^;\s]+)")


@dataclass(frozen=True, slots=True, repr=False)
class Secrets:
    """Headers for one origin only (scheme, host and port). Their values are never shown."""

    target: Target | None = None
    headers: tuple[tuple[str, str], ...] = ()

    def redact(self, text: str) -> str:
        for part in self._parts(6):
            text = text.replace(part, "***")
        return text

    def in_pages(self) -> list[bytes]:
        """What no page may be kept with: some say what they were asked with. What could be any word is left in."""
        return [part.encode() for part in self._parts(16)]

    def _parts(self, shortest: int) -> list[str]:
        """The values, and what they are made of: the last word of "Bearer …", the values of cookies."""
        parts = [part for _, value in self.headers for part in (value, value.split()[-1], *_COOKIE.findall(value))]
        return [part for part in dict.fromkeys(parts) if len(part) >= shortest]

    def __repr__(self) -> str:
        return f"Secrets({', '.join(name for name, _ in self.headers)})"


class Answer(NamedTuple):  # one a page: frozen dataclasses take three times as long to make
    """What a server said. Of a body that was not wanted, nothing."""

    url: str
    status: int
    headers: Headers
    body: bytes = b""
    took: float = 0.0  # seconds to the first byte

    @property
    def location(self) -> str | None:
        """Where it redirects to, in canonical form; None: nowhere that can be followed."""
        return resolve(self.headers.get("Location", ""), self.url)


class Trouble(Enum):
    """Why there is no answer."""

    CLOSED = auto()  # the gate does not let us
    TOO_LARGE = auto()
    BOMB = auto()  # it unpacks to too much
    NEVER = auto()  # asking again would change nothing
    FAILED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class NoAnswer:
    url: str
    trouble: Trouble
    reason: str
    status: int | None = None
    took: float = 0.0


Wanted: TypeAlias = Callable[[int, Headers], bool]


def is_good(status: int, headers: Headers) -> bool:
    return status == 200


# ── Asking ───────────────────────────────────────────────────────────────────────────────────────────────────────────


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
        self._secret_headers = CIMultiDict(self._secrets.headers)
        self._in_pages = self._secrets.in_pages()
        self._user_agent = user_agent
        self._proxy = _proxy_of(proxy) if proxy else None
        self._tls = _trusting(ca_file) if ca_file else True
        # Behind a proxy the only thing we dial is the proxy, which the owner named.
        self._dialled = _gate_to(self._proxy, resolve) if self._proxy else self.gate
        self._open_socket = open_socket
        self._session: aiohttp.ClientSession | None = None
        self._cleared: set[Target] = set()  # literal addresses that were checked, and names, which the resolver checks
        self._deadlines = Deadlines(whole=self.patience.whole, silence=self.patience.first_byte)

    def __repr__(self) -> str:
        return "Egress()"  # no address of a proxy, no header: they may hold secrets

    async def ask(
        self,
        url: str,
        *,
        most: int,
        headers: Headers | None = None,
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
            with self._deadlines.limit(seconds) as limit:
                if target not in self._cleared:
                    await self._clear(target)
                response = await self._connected().request(
                    "GET" if body is None else "POST",
                    URL(url, encoded=True),
                    headers=self._headers(target, headers),
                    data=body,
                    allow_redirects=False,
                )
                took = monotonic() - began
                limit.heard()
                try:
                    found = b""
                    if wanted(response.status, response.headers):
                        found = await _read(response.content, response.headers, most, limit, cut=cut)
                    else:
                        await _drain(response)
                    return Answer(url, response.status, response.headers, found, took)
                except (Bomb, TooLarge, Undecodable) as error:
                    trouble, reason = _unpacking(error, most)
                    return NoAnswer(url=url, trouble=trouble, reason=reason, status=response.status, took=took)
                finally:
                    response.release()
        except Closed as error:
            return NoAnswer(url=url, trouble=Trouble.CLOSED, reason=self._secrets.redact(str(error)))
        except (TimedOut, aiohttp.ClientError, OSError, ValueError) as error:
            trouble, reason = _explain(error, self.patience)
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

    async def connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a checked address, for programs that speak for themselves. Raises Closed or OSError."""
        if self._proxy is None:
            return await self._dial(self.gate, host, port)
        await self._clear(Target("", host, port))
        reader, writer = await self._dial(self._dialled, *_pair(self._proxy))
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{_proxy_authorization(self._proxy)}\r\n".encode())
        answer = await reader.readuntil(b"\r\n\r\n")
        if not re.match(rb"HTTP/1\.[01] 200\b", answer):
            writer.close()
            raise OSError("the proxy refused the connection")
        return reader, writer

    async def _dial(self, gate: Gate, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        failed: OSError | None = None
        for address in await gate.addresses(host, port):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            made = self._new_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)))
            try:
                made.setblocking(False)
                await loop.sock_connect(made, (address, port))
                return await asyncio.open_connection(sock=made)
            except OSError as error:
                made.close()
                failed = error
            except BaseException:
                made.close()
                raise
        raise failed or OSError("the host has no address")

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
                    _, writer = await self._dial(self._dialled, *(_pair(self._proxy) if self._proxy else target.pair))
                    writer.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _clear(self, target: Target) -> None:
        """Checks what the resolver will not see: aiohttp asks it for names only, and behind a proxy for the proxy's."""
        if is_literal(target.host):
            self.gate.check(target.host, target.port, target.host)
            self._cleared.add(target)
        elif self._proxy:
            with suppress(OSError):  # a name that only the proxy can resolve is the proxy's business
                await self.gate.addresses(target.host, target.port)
        else:
            self._cleared.add(target)

    def _headers(self, target: Target, more: Headers | None) -> Headers | None:
        if not self._secret_headers or self._secrets.target != target:
            return more
        headers = self._secret_headers.copy()
        headers.update(more or {})
        return headers

    def _connected(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(
                    resolver=CheckedResolver(self._dialled), socket_factory=self._new_socket, ssl=self._tls, limit=0
                ),
                timeout=aiohttp.ClientTimeout(
                    total=None, connect=self.patience.connect, sock_connect=self.patience.connect
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                headers={"User-Agent": self._user_agent, "Accept": _ACCEPT, "Accept-Encoding": ACCEPTED},
                auto_decompress=False,
                trust_env=False,
                proxy=self._proxy,
                max_line_size=LONGEST_LINE,
                max_field_size=LONGEST_LINE,
                max_headers=MOST_HEADERS,
            )
        return self._session

    def _new_socket(self, info: AddressInfo) -> socket.socket:
        checked = self._dialled.open_socket(info)
        if self._open_socket is None:
            return checked
        checked.close()
        return self._open_socket(info)


_ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/json;q=0.7,*/*;q=0.5"


def _trusting(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise WrongCall(
            f"Expected a file of certificates, found that {ca_file} cannot be read as one: {error}"
        ) from None
    return context


def _proxy_of(text: str) -> URL:
    with suppress(ValueError):
        url = URL(text)
        if url.scheme in ("http", "https") and url.raw_host and url.port:
            return url
    raise WrongCall("The proxy should be a URL such as http://proxy.example:3128.")  # without what it is: a secret


def _pair(url: URL) -> Pair:
    return url.raw_host or "", url.port or 0


def _gate_to(proxy: URL, resolve: Resolve) -> Gate:
    host, port = _pair(proxy)
    gate = Gate(frozenset({(host, port)}), resolve)
    if is_literal(host):
        gate.check(host, port, host)
    return gate


def _proxy_authorization(proxy: URL) -> str:
    if not proxy.user:
        return ""
    pair = base64.b64encode(f"{proxy.user}:{proxy.password or ''}".encode()).decode()
    return f"Proxy-Authorization: Basic {pair}\r\n"


async def _read(content: aiohttp.StreamReader, headers: Headers, most: int, limit: Limit, *, cut: bool) -> bytes:
    """The unpacked body; raises TooLarge as soon as it is."""
    decoder = Decoder(headers.get("Content-Encoding", ""), most)
    length = headers.get("Content-Length", "")
    if not cut and length.isdigit() and int(length) > most:
        raise TooLarge
    try:
        while data := await content.readany():
            limit.heard()
            decoder.feed(data)
    except TooLarge:
        if cut:
            return decoder.so_far()
        raise
    return decoder.body()


async def _drain(response: aiohttp.ClientResponse) -> None:
    """Reads what little is left of a body, so that its connection can be used again. If it cannot, never mind."""
    if response.content.is_eof() or (response.content_length or 0) > _DRAINED:
        return
    with suppress(aiohttp.ClientError, OSError):
        async with asyncio.timeout(_DRAINED_WITHIN):
            left = _DRAINED
            while left > 0 and (data := await response.content.readany()):
                left -= len(data)


def _unpacking(error: Bomb | TooLarge | Undecodable, most: int) -> tuple[Trouble, str]:
    match error:
        case TooLarge():
            return Trouble.TOO_LARGE, f"larger than {most:,} bytes"
        case Bomb():
            return Trouble.BOMB, str(error)
        case Undecodable():
            return Trouble.FAILED, f"cannot be unpacked: {error}"


def _explain(error: Exception, patience: Patience) -> tuple[Trouble, str]:
    """What went wrong, in words. Never the error's own: those may hold a request's headers."""
    match error:
        case TimedOut():
            return Trouble.FAILED, str(error)
        case TimeoutError():
            return Trouble.FAILED, f"no connection within {patience.connect:g} s"
        case aiohttp.ClientConnectorDNSError():
            return Trouble.FAILED, "its host name cannot be resolved"
        case aiohttp.ClientConnectorCertificateError():
            return Trouble.NEVER, f"its certificate is not trusted ({_certificate(error.certificate_error)})"
        case aiohttp.ClientSSLError():
            return Trouble.FAILED, "no secure connection could be made"
        case aiohttp.ClientHttpProxyError():
            return Trouble.FAILED, f"the proxy answered {error.status}"
        case aiohttp.ClientProxyConnectionError():
            return Trouble.FAILED, "the proxy cannot be reached"
        case aiohttp.ClientConnectorError():
            return Trouble.FAILED, f"no connection: {_system(error.os_error)}"
        case aiohttp.ClientPayloadError():
            return Trouble.FAILED, "the answer was cut short"
        case aiohttp.ClientResponseError():
            return Trouble.FAILED, "its headers are too long" if _is_too_long(error) else "not a valid HTTP answer"
        case aiohttp.InvalidURL():
            return Trouble.NEVER, "not a web address that can be asked"
        case aiohttp.ClientOSError() | aiohttp.ServerDisconnectedError():
            return Trouble.FAILED, "the connection was closed before an answer came"
        case OSError():
            return Trouble.FAILED, f"no connection: {_system(error)}"
        case _:
            return Trouble.FAILED, f"no valid answer ({type(error).__name__})"


def _system(error: OSError) -> str:
    return os.strerror(error.errno) if error.errno else str(error) or type(error).__name__


def _certificate(error: Exception) -> str:
    return getattr(error, "verify_message", "") or type(error).__name__


def _is_too_long(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, LineTooLong) or "too many headers" in str(error).lower():
            return True
        error = error.__cause__
    return False
