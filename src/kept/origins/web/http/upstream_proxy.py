"""The HTTP proxy of a source's settings. With a proxy, nothing else is dialled."""

import asyncio
import base64
import re
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

from kept.errors import InvalidInput
from kept.origins.web.http.address_policy import AddressPolicy, HostPort, Resolver, configured_classes
from kept.origins.web.http.public_addresses import is_ip_address

_HOST_NAME = re.compile(r"[a-z0-9._-]+")
_STATUS_LINE = re.compile(rb"HTTP/1\.[01] ([0-9]{3})\b")


class ProxyUnreachable(OSError):
    """The proxy does not accept connections."""


class TunnelRefused(OSError):
    """The proxy did not open a tunnel."""

    def __init__(self, status: int | None) -> None:
        super().__init__("the proxy refused the connection" if status else "the proxy gave no answer")
        self.status = status


@dataclass(frozen=True, slots=True, repr=False)
class UpstreamProxy:
    host: str
    port: int
    is_tls: bool
    authorization: str | None  # the value of Proxy-Authorization

    def __repr__(self) -> str:
        return "UpstreamProxy()"  # without the password

    @property
    def host_port(self) -> HostPort:
        return self.host, self.port

    @property
    def tls_server_name(self) -> str | None:
        """Return the name in the proxy's certificate; None without TLS."""
        return self.host.rstrip(".") if self.is_tls else None

    def make_address_policy(self, resolver: Resolver) -> AddressPolicy:
        """Return the policy for dialling the proxy, whose address need not be public: its owner chose it."""
        policy = AddressPolicy({self.host_port: configured_classes(self.host)}, resolver)
        if is_ip_address(self.host):
            policy.check_address(self.host, self.port, self.host)
        return policy

    async def open_tunnel(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, host: str, port: int
    ) -> None:
        """Turn a connection to the proxy into one to a host. Raises TunnelRefused."""
        name = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        login = f"Proxy-Authorization: {self.authorization}\r\n" if self.authorization else ""
        writer.write(f"CONNECT {name} HTTP/1.1\r\nHost: {name}\r\n{login}\r\n".encode())
        try:
            status_line = _STATUS_LINE.match(await reader.readuntil(b"\r\n\r\n"))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            raise TunnelRefused(None) from None
        if status_line is None or status_line[1] != b"200":
            raise TunnelRefused(int(status_line[1]) if status_line else None)


def parse_upstream_proxy(text: str) -> UpstreamProxy:
    with suppress(ValueError):
        url = urlsplit(text)
        host, port = _ascii_host(url.hostname or ""), url.port
        if port is None:
            port = 443 if url.scheme == "https" else 80
        if url.scheme in ("http", "https") and port and (is_ip_address(host) or _HOST_NAME.fullmatch(host)):
            return UpstreamProxy(host, port, url.scheme == "https", _basic_authorization(url.username, url.password))
    raise InvalidInput(
        "The proxy should be a URL such as http://proxy.example:3128."
    )  # without its value: it may hold a password


def _ascii_host(name: str) -> str:
    return name if name.isascii() else name.encode("idna").decode()


def _basic_authorization(user: str | None, password: str | None) -> str | None:
    if not user:
        return None
    login = f"{unquote(user)}:{unquote(password or '')}"
    return f"Basic {base64.b64encode(login.encode()).decode()}"
