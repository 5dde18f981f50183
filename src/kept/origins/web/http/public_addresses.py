"""Decides which IP addresses are public. Pure; ``address_policy`` applies it.

An address may embed another one: IPv4 mapped into IPv6, translated (NAT64), tunnelled (6to4, Teredo, ISATAP). Packets
may end up at the embedded one, so it has to be public as well.
"""

from collections.abc import Iterator
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

IpAddress: TypeAlias = IPv4Address | IPv6Address

# IANA's registries of special-purpose addresses, and metadata services of clouds. ``ipaddress.is_private`` differs
# between Python versions: a security rule must not.
_RESERVED_IPV4 = {
    IPv4Network("0.0.0.0/8"): "this host",
    IPv4Network("10.0.0.0/8"): "private",
    IPv4Network("100.64.0.0/10"): "shared by a provider's customers",  # and a metadata service at 100.100.100.200
    IPv4Network("127.0.0.0/8"): "loopback",
    IPv4Network("168.63.129.16/32"): "a cloud's metadata service",
    IPv4Network("169.254.0.0/16"): "link-local",  # metadata services live at 169.254.169.254
    IPv4Network("172.16.0.0/12"): "private",
    IPv4Network("192.0.0.0/24"): "reserved",  # and a metadata service at 192.0.0.192
    IPv4Network("192.0.2.0/24"): "reserved for documentation",
    IPv4Network("192.88.99.0/24"): "reserved",
    IPv4Network("192.168.0.0/16"): "private",
    IPv4Network("198.18.0.0/15"): "reserved for benchmarks",
    IPv4Network("198.51.100.0/24"): "reserved for documentation",
    IPv4Network("203.0.113.0/24"): "reserved for documentation",
    IPv4Network("224.0.0.0/4"): "multicast",
    IPv4Network("240.0.0.0/4"): "reserved",
}
_MAPPED = IPv6Network("::ffff:0:0/96")
_NAT64 = IPv6Network("64:ff9b::/96")
_TEREDO = IPv6Network("2001::/32")
_6TO4 = IPv6Network("2002::/16")
_EMBEDDING_RANGES = (_MAPPED, _NAT64, _TEREDO, _6TO4)  # judged by the embedded address
_ISATAP = (0x00005EFE, 0x02005EFE)

_PUBLIC_IPV6 = IPv6Network("2000::/3")  # all that is allocated for public use
_RESERVED_IPV6 = {
    IPv6Network("2001::/23"): "reserved",
    IPv6Network("2001:db8::/32"): "reserved for documentation",
    IPv6Network("3fff::/20"): "reserved for documentation",
}
_NAMED_IPV6 = {
    IPv6Network("::/128"): "this host",
    IPv6Network("::1/128"): "loopback",
    IPv6Network("fc00::/7"): "private",
    IPv6Network("fe80::/10"): "link-local",
    IPv6Network("ff00::/8"): "multicast",
}


@lru_cache(maxsize=4096)
def why_not_public(address: str) -> str | None:
    """Return why an address is not public; None when it is. Text that is not an address is not public."""
    try:
        parsed = ip_address(address)
    except ValueError:
        return "not an address"
    if isinstance(parsed, IPv6Address) and parsed.scope_id is not None:
        return "link-local"
    for candidate in _with_embedded(parsed):
        if reason := _reserved_range(candidate):
            return reason
    return None


@lru_cache(maxsize=4096)
def is_ip_address(host: str) -> bool:
    """Return whether a host (without brackets) is an address rather than a name."""
    try:
        ip_address(host)
    except ValueError:
        return False
    return True


def _with_embedded(address: IpAddress) -> Iterator[IpAddress]:
    yield address
    if isinstance(address, IPv4Address):
        return
    number = int(address)
    low = number & 0xFFFF_FFFF
    if address in _MAPPED or address in _NAT64:
        yield IPv4Address(low)
    elif address in _6TO4:
        yield IPv4Address(number >> 80 & 0xFFFF_FFFF)
    elif address in _TEREDO:
        yield IPv4Address(number >> 64 & 0xFFFF_FFFF)  # its server
        yield IPv4Address(low ^ 0xFFFF_FFFF)  # its client
    if number >> 32 & 0xFFFF_FFFF in _ISATAP:
        yield IPv4Address(low)


def _reserved_range(address: IpAddress) -> str | None:
    if isinstance(address, IPv4Address):
        return next((reason for network, reason in _RESERVED_IPV4.items() if address in network), None)
    if any(address in network for network in _EMBEDDING_RANGES):
        return None
    if address not in _PUBLIC_IPV6:
        return next((reason for network, reason in _NAMED_IPV6.items() if address in network), "reserved")
    return next((reason for network, reason in _RESERVED_IPV6.items() if address in network), None)
