"""Where a web origin may connect to. The one rule, for every request, every hop, and every program behind the proxy.

A host's addresses are resolved and checked, with whatever they carry inside; one that is not public closes the host.
What was checked is what is dialled: nothing resolves a second time. Addresses that are not public are reached only as
one of the ``allowed`` pairs of host and port.
"""

import asyncio
import re
import socket
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

from kept.origins.web.http.public_addresses import is_ip_address, why_not_public

HostPort: TypeAlias = tuple[str, int]  # host and port
Resolver: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]  # host and port -> addresses
AddressInfo: TypeAlias = tuple[Any, Any, int, str, tuple[Any, ...]]  # as getaddrinfo has it

_AUTHORITY = re.compile(r"(https?)://([a-z0-9._-]+|\[[0-9a-f:.]+\])(?::([0-9]{1,5}))?")
_NUMERIC_HOST = re.compile(r"(?:^|\.)(?:[0-9]+|0x[0-9a-f]*)\.?$")
_PATH = re.compile(r"/[!-\"$-~]*")  # printable, and no fragment


class AddressForbidden(Exception):
    """This host is not for us: the sentence says why."""


class HostNotResolved(socket.gaierror):
    """Nobody knows this name, or it cannot be asked for now."""


class Endpoint(NamedTuple):
    """What a request connects to: an origin, in the web's sense of the word."""

    scheme: str
    host: str  # without brackets
    port: int

    @property
    def host_port(self) -> HostPort:
        return self.host, self.port


def parse_endpoint(url: str) -> Endpoint | None:
    """What a request for a canonical URL would connect to; None: nothing that a request may be made for."""
    end = url.find("/", 8)
    return _parse_authority(url[:end]) if end > 0 and _PATH.fullmatch(url, end) else None


@lru_cache(maxsize=1024)
def _parse_authority(text: str) -> Endpoint | None:
    if not (match := _AUTHORITY.fullmatch(text)):
        return None
    port = int(match[3]) if match[3] else 443 if match[1] == "https" else 80
    target = Endpoint(match[1], match[2].strip("[]"), port)
    return target if 0 < port < 65536 and (is_ip_address(target.host) or match[2][0] != "[") else None


async def resolve_with_system(host: str, port: int) -> Sequence[str]:
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except UnicodeError:  # "a..b", or longer than names can be
        raise socket.gaierror(socket.EAI_NONAME, "not a host name") from None
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


class AddressPolicy:
    """Which addresses may be dialled for a host and port."""

    def __init__(self, allowed: frozenset[HostPort] = frozenset(), resolver: Resolver = resolve_with_system) -> None:
        self._allowed = allowed
        self._resolver = resolver
        self._allowed_addresses: set[HostPort] = set()  # addresses that allowed hosts have; few, as allowed pairs are

    async def resolve_allowed(self, host: str, port: int) -> Sequence[str]:
        """The checked addresses. Closed if any is not public; OSError when the host has none."""
        if is_ip_address(host):
            found: Sequence[str] = [host]
        elif _NUMERIC_HOST.search(host):  # "127.1", "0x7f000001": resolvers take it for an address, each in its own way
            raise AddressForbidden(f"{host} is not a host name")
        else:
            try:
                found = await self._resolver(host, port)
            except OSError as error:
                raise HostNotResolved(*error.args) from None
        if not found:
            raise HostNotResolved(socket.EAI_NONAME, "the host has no address")
        for address in found:
            self.check_address(host, port, address)
        return found

    def check_address(self, host: str, port: int, address: str) -> None:
        """Raises Closed unless this address of this host may be dialled."""
        if (host, port) in self._allowed:
            self._allowed_addresses.add((address, port))
        elif reason := why_not_public(address):
            raise AddressForbidden(f"{host} is not a public address ({reason})")

    def open_checked_socket(self, info: AddressInfo) -> socket.socket:
        """The last look, at the very address that is about to be dialled. Whatever led here, this holds."""
        family, kind, protocol, _, address = info
        if (address[0], address[1]) not in self._allowed_addresses and (reason := why_not_public(address[0])):
            raise OSError(f"{address[0]} is not a public address ({reason})")
        return socket.socket(family, kind, protocol)
