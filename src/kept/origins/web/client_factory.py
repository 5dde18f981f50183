"""Builds the HTTP client of a source from its settings."""

from collections.abc import Callable

from kept import __version__
from kept.errors import InvalidInput
from kept.model.source import Access, SourceSettings, parse_secret_reference
from kept.origins.web.http.address_policy import HostPort, Resolver, parse_endpoint, resolve_with_system
from kept.origins.web.http.client import HttpClient, OpenSocket, load_tls_context
from kept.origins.web.http.messages import SecretHeaders, Timeouts
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
        allowed=frozenset(map(parse_host_port, access.allowed)),
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
    for text in access.allowed:
        parse_host_port(text)
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


def _reject_references(value: str) -> str:
    if parse_secret_reference(value):
        raise InvalidInput(f"There is no value for {value}.")
    return value
