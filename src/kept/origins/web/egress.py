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
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, nullcontext, suppress
from time import monotonic
from typing import TypeAlias

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from kept.errors import WrongCall
from kept.origins.web import reasons
from kept.origins.web.addresses import is_literal
from kept.origins.web.deadlines import Deadlines, Limit, TimedOut
from kept.origins.web.decoding import ACCEPTED, Bomb, Decoder, TooLarge, Undecodable
from kept.origins.web.exchange import Answer, Headers, NoAnswer, Patience, Secrets, Trouble, Wanted, is_good
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
from kept.origins.web.upstream import parse_upstream

ACCEPT = "text/html,application/xhtml+xml,text/markdown;q=0.9,text/plain;q=0.8,application/json;q=0.7,*/*;q=0.5"
REDIRECTS = 5
LONGEST_LINE = 16 * 1024  # of a header
MOST_HEADERS = 200
_DRAINED = 64 * 1024  # of a body nobody wants: reading it is cheaper than another connection
_DRAINED_WITHIN = 1.0

OpenSocket: TypeAlias = Callable[[AddressInfo], socket.socket]


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
        self._proxy = parse_upstream(proxy) if proxy else None
        self._tls = _trusting(ca_file) if ca_file else True
        # Behind a proxy the only thing we dial is the proxy, which the owner named.
        self._dialled = self._proxy.gate(resolve) if self._proxy else self.gate
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
                    trouble, reason = reasons.of_unpacking(error, most)
                    return NoAnswer(url=url, trouble=trouble, reason=reason, status=response.status, took=took)
                finally:
                    response.release()
        except Closed as error:
            return NoAnswer(url=url, trouble=Trouble.CLOSED, reason=self._secrets.redact(str(error)))
        except (TimedOut, aiohttp.ClientError, OSError, ValueError) as error:
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

    async def connect(self, host: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """A connection to a checked address, for programs that speak for themselves. Raises Closed or OSError."""
        if self._proxy is None:
            return await self._dial(self.gate, host, port)
        await self._clear(Target("", host, port))
        reader, writer = await self._dial(self._dialled, *self._proxy.pair, tls=self._proxy.url.scheme == "https")
        try:
            await self._proxy.tunnel(reader, writer, host, port)
        except BaseException:  # also who lost patience
            writer.close()
            raise
        return reader, writer

    async def _dial(
        self, gate: Gate, host: str, port: int, *, tls: bool = False
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        loop = asyncio.get_running_loop()
        failed: OSError | None = None
        for address in await gate.addresses(host, port):
            family = socket.AF_INET6 if ":" in address else socket.AF_INET
            made = self._new_socket((family, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)))
            try:
                made.setblocking(False)
                await loop.sock_connect(made, (address, port))
                how, name = (self._tls, host) if tls else (None, None)
                return await asyncio.open_connection(sock=made, ssl=how, server_hostname=name)
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
                    _, writer = await self._dial(self._dialled, *(self._proxy.pair if self._proxy else target.pair))
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
                headers={"User-Agent": self._user_agent, "Accept": ACCEPT, "Accept-Encoding": ACCEPTED},
                auto_decompress=False,
                trust_env=False,
                proxy=self._proxy.url if self._proxy else None,
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


def _trusting(ca_file: str) -> ssl.SSLContext:
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(ca_file)
    except OSError as error:
        raise WrongCall(
            f"Expected a file of certificates, found that {ca_file} cannot be read as one: {error}"
        ) from None
    return context


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
