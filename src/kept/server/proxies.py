"""Reverse proxies before the server: which are trusted, and which requests came through one.

The address of a proxy is no client's: what is counted by address would be counted for all of its clients together.
"""

import ipaddress
from dataclasses import dataclass

from starlette.datastructures import Headers
from starlette.types import Scope

from kept.errors import InvalidInput

FORWARDING_HEADERS = (
    "forwarded",
    "via",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-forwarded-server",
    "x-real-ip",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrustedProxies:
    """The addresses and networks of proxies whose X-Forwarded headers are believed."""

    networks: tuple[ipaddress.IPv4Network | ipaddress.IPv6Network, ...]

    @classmethod
    def from_settings(cls, proxies: str) -> "TrustedProxies":
        """Read serve.proxies. Raises InvalidInput."""
        try:
            return cls(networks=tuple(ipaddress.ip_network(one) for one in proxies.split()))
        except ValueError as error:
            raise InvalidInput(f"serve.proxies should be addresses or networks: {error}.") from None

    @property
    def names(self) -> list[str]:
        return [str(one) for one in self.networks]

    def __contains__(self, address: str) -> bool:
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped:
            parsed = parsed.ipv4_mapped
        return any(parsed in network for network in self.networks)

    def client_address(self, scope: Scope) -> str | None:
        """Return the address of the client; None if only that of a proxy is known."""
        address = (scope.get("client") or ("", 0))[0]
        return None if not address or address in self else address


def is_forwarded(scope: Scope) -> bool:
    """Return whether a request came through a proxy. HTTP/1.0 counts: nginx speaks it unless it is told otherwise."""
    headers = Headers(scope=scope)
    return scope.get("http_version") == "1.0" or any(name in headers for name in FORWARDING_HEADERS)
