"""Builds the HTTP client of a source from its settings."""

from collections.abc import Callable, Iterable

from kept import __version__
from kept.errors import InvalidInput
from kept.model.source import Access, SourceSettings, parse_secret_reference
from kept.origins.web.http.address_policy import HostPort, Resolver, own_class, parse_endpoint, resolve_with_system
from kept.origins.web.http.client import HttpClient, OpenSocket, load_tls_context
from kept.origins.web.http.messages import SecretHeaders, Timeouts
from kept.origins.web.http.public_addresses import is_ip_address, why_not_public
from kept.origins.web.http.upstream_proxy import parse_upstream_proxy


def make_http_client(
    root: str,
    settings: SourceSettings,
    *,
    look_up: Callable[[str], str] | None = None,
    contact: str = "",
    resolver: Resolver = resolve_with_system,
    open_socket: OpenSocket | None = None,
) -> HttpClient:
    """Build the HTTP client of one source. Raises InvalidInput or SecretUnavailable.

    ``look_up`` resolves ``env:NAME`` and ``secret:NAME``. ``contact`` is an address for complaints of a site's owner.
    """
    access = settings.access
    resolve_secret = look_up or _reject_references
    return HttpClient(
        allowed=parse_allowed(access.allowed),
        user_agent=access.user_agent or default_user_agent(contact),
        secret_headers=SecretHeaders(
            parse_endpoint(root), tuple((header.name, resolve_secret(header.value)) for header in access.headers)
        ),
        timeouts=Timeouts(connect=access.connect_seconds, read=access.first_byte_seconds, total=access.whole_seconds),
        proxy=resolve_secret(access.proxy) if access.proxy else None,
        ca_file=access.ca_file or None,
        resolver=resolver,
        open_socket=open_socket,
    )


def check_access(access: Access) -> None:
    """Raise InvalidInput unless an HTTP client can be built from these settings. Secrets are not looked up."""
    parse_allowed(access.allowed)
    if access.proxy and not parse_secret_reference(access.proxy):
        parse_upstream_proxy(access.proxy)
    if access.ca_file:
        load_tls_context(access.ca_file)


def default_user_agent(contact: str = "") -> str:
    """Return the User-Agent of this version, with where to complain."""
    return f"Kept/{__version__} ({f'+{contact}; ' if contact else ''}keeps a copy of documentation for its reader)"


def parse_host_port(text: str) -> HostPort:
    """Parse ``host:port`` or ``[address]:port``. Raises InvalidInput."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(f"Expected a host and a port ('localhost:8000'), found {text!r}.")
    return host.strip("[]").lower(), int(port)


def parse_allowed(texts: Iterable[str]) -> dict[HostPort, set[str]]:
    """Parse ``Access.allowed``. A name whose class of address is not recorded yet has none. Raises InvalidInput."""
    allowed: dict[HostPort, set[str]] = {}
    for text in texts:
        host_port, _, address_class = text.partition(" ")
        host, port = parse_host_port(host_port)
        classes = allowed.setdefault((host, port), set())
        if found := address_class or own_class(host):
            classes.add(found)
    return allowed


async def pin_allowed(
    texts: Iterable[str], resolver: Resolver = resolve_with_system, *, keep_unresolved: bool = False
) -> tuple[str, ...]:
    """Return ``Access.allowed`` with the class of address that each host has now. One that is public is left out.

    So is one that cannot be resolved: its address, once it has one, was not allowed. With ``keep_unresolved`` it stays
    as it is, and allows nothing until it can be resolved.
    """
    pinned: dict[str, None] = {}
    for text in texts:
        host, port = parse_host_port(text.partition(" ")[0])
        if " " in text or is_ip_address(host):
            pinned[text] = None
            continue
        try:
            classes = {why_not_public(address) for address in await resolver(host, port)}
        except OSError:
            pinned |= {text: None} if keep_unresolved else {}
            continue
        pinned |= {f"{text} {address_class}": None for address_class in sorted(filter(None, classes))}
    return tuple(pinned)


def _reject_references(value: str) -> str:
    if parse_secret_reference(value):
        raise InvalidInput(f"There is no value for {value}.")
    return value
