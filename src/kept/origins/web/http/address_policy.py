"""Decides which addresses may be dialled: for every request, every redirect, and every program behind the gate proxy.

A host's addresses are resolved and checked, with embedded ones; one that is not public forbids the host. Only checked
addresses are dialled: nothing resolves the name a second time, which prevents DNS rebinding. Addresses that are not
public are reached only as one of the ``allowed`` pairs of host and port, and only if they are of the class (loopback,
private …) that is allowed for it: a name that moves to another kind of network is refused.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from kept.origins.web.http.public_addresses import is_ip_address, why_not_public

HostPort: TypeAlias = tuple[str, int]
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port -> addresses
AddressInfo: TypeAlias = tuple[Any, Any, int, str, tuple[Any, ...]]  # as getaddrinfo() returns it

_AUTHORITY = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_NUMERIC_HOST = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")
_PATH = re.compile(r"/[!-\"$-~]*")  # printable, and no fragment


class AddressForbidden(Exception):
    """The host must not be dialled; the message says why."""


class HostNotResolved(socket.gaierror):
    """The host name does not exist, or cannot be resolved now."""


class Endpoint(NamedTuple):
    """Scheme, host and port of a request: an origin in the sense of RFC 6454."""

    scheme: str
    host: str  # without brackets
    port: int

    @property
    def host_port(self) -> HostPort:
        return self.host, self.port


def parse_endpoint(url: str) -> Endpoint | None:
    """Return the endpoint of a canonical URL; None where no request can be made for it."""
    end = url.find("/", 8)
    return _parse_authority(url[:end]) if end > 0 and _PATH.fullmatch(url, end) else None


@lru_cache(maxsize=1024)
def _parse_authority(text: str) -> Endpoint | None:
    if not (match := _AUTHORITY.fullmatch(text)):
        return None
    port = int(match[3]) if match[3] else 443 if match[1] == "https" else 80
    endpoint = Endpoint(match[1], match[2].strip("[]"), port)
    return endpoint if 0 < port < 65536 and (is_ip_address(endpoint.host) or match[2][0] != "[") else None


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    try:
        infos = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # "a..b", or too long for a name
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in infos))


def own_class(host: str) -> str | None:
    """Return the class of address that a host has by its name alone; None for a public address or another name."""
    return why_not_public(host) if is_ip_address(host) else "loopback" if host == "localhost" else None


def configured_classes(host: str) -> frozenset[str]:
    """Return the classes that a host may have which the operator's own settings name."""
    own = own_class(host)
    return frozenset({own} if own else () if is_ip_address(host) else ("loopback", "private"))


class AddressPolicy:
    """Which addresses may be dialled for a host and port."""

    def __init__(
        self, allowed: Mapping[HostPort, Collection[str]] | None = None, resolver: Resolver = resolve_with_system
    ) -> None:
        self._allowed = allowed or {}
        self._resolver = resolver
        self._allowed_addresses: set[HostPort] = set()  # resolved from allowed hosts

    async def resolve_allowed(self, host: str, port: int) -> Sequence[str]:
        """Return the checked addresses. Raises AddressForbidden if one is not public, OSError without any."""
        if is_ip_address(host):
            addresses: Sequence[str] = [host]
        elif _NUMERIC_HOST.search(host):  # "127.1", "0x7f000001": some resolvers take it for an address
            raise AddressForbidden(f"{host} is not a host name")
        else:
            try:
                addresses = await self._resolver(host, port)
            except OSError as error:
                raise HostNotResolved(*error.args) from None
        if not addresses:
            raise HostNotResolved(socket.EAI_NONAME, "the host has no address")
        for address in addresses:
            self.check_address(host, port, address)
        return addresses

    def check_address(self, host: str, port: int, address: str) -> None:
        """Raise AddressForbidden unless this address of this host may be dialled."""
        if (reason := why_not_public(address)) is None:
            return
        if reason not in self._allowed.get((host, port), ()):
            raise AddressForbidden(f"{host} is not a public address ({reason})")
        self._allowed_addresses.add((address, port))

    def open_checked_socket(self, info: AddressInfo) -> socket.socket:
        """Open a socket for an address, checked once more: this holds whatever the caller did before."""
        family, kind, protocol, _, address = info
        if (address[0], address[1]) not in self._allowed_addresses and (reason := why_not_public(address[0])):
            raise OSError(f"{address[0]} is not a public address ({reason})")
        return socket.socket(family, kind, protocol)
