"""The proxy that a source's owner has named: the only thing that is dialled then."""

import asyncio
import base64
import re
from contextlib import suppress
from dataclasses import dataclass

from yarl import URL

from kept.errors import WrongCall
from kept.origins.web.addresses import is_literal
from kept.origins.web.gate import Gate, Pair, Resolve


@dataclass(frozen=True, slots=True)
class Upstream:
    url: URL

    def __repr__(self) -> str:
        return "Upstream()"  # its URL may hold a password

    @property
    def pair(self) -> Pair:
        return self.url.raw_host or "", self.url.port or 0

    def gate(self, resolve: Resolve) -> Gate:
        """Whatever address it has, its owner named it."""
        host, port = self.pair
        gate = Gate(frozenset({self.pair}), resolve)
        if is_literal(host):
            gate.check(host, port, host)
        return gate

    async def tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        """Turns a connection to the proxy into one to a host. OSError where the proxy does not make it."""
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{self._authorization()}\r\n".encode())
        try:
            answer = await reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise OSError("the proxy gave no answer") from None
        if not re.match(rb"HTTP/1\.[01] 200\b", answer):
            raise OSError("the proxy refused the connection")

    def _authorization(self) -> str:
        if not self.url.user:
            return ""
        login = base64.b64encode(f"{self.url.user}:{self.url.password or ''}".encode()).decode()
        return f"Proxy-Authorization: Basic {login}\r\n"


def parse_upstream(text: str) -> Upstream:
    with suppress(ValueError):
        url = URL(text)
        if url.scheme in ("http", "https") and url.raw_host and url.port:
            return Upstream(url)
    raise WrongCall("The proxy should be a URL such as http://proxy.example:3128.")  # without what it is: a secret
