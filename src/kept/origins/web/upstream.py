"""The proxy that a source's owner has named: the only thing that is dialled then."""

import asyncio
import base64
import re
from contextlib import suppress
from urllib.parse import unquote, urlsplit

from kept.errors import WrongCall
from kept.model.nouns import dataclass
from kept.origins.web.addresses import is_literal
from kept.origins.web.gate import Gate, Pair, Resolve

_NAME = re.compile(r"[a-z0-9._-]+")
_ANSWER = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")


class ProxyAway(OSError):
    """Nobody answers where the proxy should be."""


class NoTunnel(OSError):
    """The proxy connects us to nobody."""

    def __init__(self, status: int | None) -> None:
        super().__init__("the proxy refused the connection" if status else "the proxy gave no answer")
        self.status = status


@dataclass(frozen=True, slots=True, repr=False)
class Upstream:
    host: str
    port: int
    tls: bool
    login: str | None  # the value of Proxy-Authorization

    def __repr__(self) -> str:
        return "Upstream()"  # it may hold a password

    @property
    def pair(self) -> Pair:
        return self.host, self.port

    @property
    def tls_name(self) -> str | None:
        """Whose certificate it has to have; None: it does not speak TLS."""
        return self.host.rstrip(".") if self.tls else None

    def gate(self, resolve: Resolve) -> Gate:
        """Whatever address it has, its owner named it."""
        gate = Gate(frozenset({self.pair}), resolve)
        if is_literal(self.host):
            gate.check(self.host, self.port, self.host)
        return gate

    async def tunnel(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int) -> None:
        """Turns a connection to the proxy into one to a host. OSError where the proxy does not make it."""
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        login = f"Proxy-Authorization: {self.login}\r\n" if self.login else ""
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{login}\r\n".encode())
        try:
            answer = _ANSWER.match(await reader.readuntil(b"\r\n\r\n"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise NoTunnel(None) from None
        if answer is None or answer[1] != b"200":
            raise NoTunnel(int(answer[1]) if answer else None)


def parse_upstream(text: str) -> Upstream:
    with suppress(ValueError):
        url = urlsplit(text)
        host, port = _host(url.hostname or ""), url.port
        if port is None:
            port = 443 if url.scheme == "https" else 80
        if url.scheme in ("http", "https") and port and (is_literal(host) or _NAME.fullmatch(host)):
            return Upstream(host, port, url.scheme == "https", _login(url.username, url.password))
    raise WrongCall("The proxy should be a URL such as http://proxy.example:3128.")  # without what it is: a secret


def _host(name: str) -> str:
    return name if name.isascii() else name.encode("idna").decode()


def _login(user: str | None, password: str | None) -> str | None:
    if not user:
        return None
    login = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(login.encode()).decode()}"
