"""A web origin, built from the settings of its source."""

from collections.abc import Callable

from kept import __version__
from kept.errors import InvalidInput
from kept.model.source import SourceSettings, parse_secret_reference
from kept.origins.web.http.address_policy import HostPort, Resolver, parse_endpoint, resolve_with_system
from kept.origins.web.http.client import HttpClient, OpenSocket
from kept.origins.web.http.messages import SecretHeaders, Timeouts
from kept.origins.web.origin import WebOrigin
from kept.origins.web.rate_limiter import SHARED_RATE_LIMITERS, RateLimiters


def make_web_origin(
    root: str,
    settings: SourceSettings,
    *,
    look_up: Callable[[str], str] | None = None,
    contact: str = "",
    rate_limiters: RateLimiters = SHARED_RATE_LIMITERS,
    known_sitemaps: frozenset[str] = frozenset(),
    browser: str = "",
    resolver: Resolver = resolve_with_system,
    open_socket: OpenSocket | None = None,
) -> WebOrigin:
    """The origin of a source, with its own way out.

    ``look_up`` finds what ``env:NAME`` and ``secret:NAME`` stand for. ``contact`` is where a site's owner can complain.
    ``browser`` is the Chromium to start where a page needs one; empty: whichever is installed.
    """
    egress = make_http_client(
        root, settings, look_up=look_up, contact=contact, resolver=resolver, open_socket=open_socket
    )
    return WebOrigin(
        root,
        settings,
        egress,
        user_agent=settings.access.user_agent or default_user_agent(contact),
        rate_limiters=rate_limiters,
        known_sitemaps=known_sitemaps,
        browser=browser,
    )


def make_http_client(
    root: str,
    settings: SourceSettings,
    *,
    look_up: Callable[[str], str] | None = None,
    contact: str = "",
    resolver: Resolver = resolve_with_system,
    open_socket: OpenSocket | None = None,
) -> HttpClient:
    """The way out of one source: for its pages, and through ``proxy`` for programs that connect by themselves."""
    access = settings.access
    value_of = look_up or _reject_references
    return HttpClient(
        allowed=frozenset(map(parse_host_port, access.allowed)),
        user_agent=access.user_agent or default_user_agent(contact),
        secret_headers=SecretHeaders(
            parse_endpoint(root), tuple((one.name, value_of(one.value)) for one in access.headers)
        ),
        timeouts=Timeouts(connect=access.connect_seconds, read=access.first_byte_seconds, total=access.whole_seconds),
        proxy=value_of(access.proxy) if access.proxy else None,
        ca_file=access.ca_file or None,
        resolver=resolver,
        open_socket=open_socket,
    )


def default_user_agent(contact: str = "") -> str:
    """Who we are, honestly, and where to complain."""
    return f"Kept/{__version__} ({f'+{contact}; ' if contact else ''}keeps a copy of documentation for its reader)"


def parse_host_port(text: str) -> HostPort:
    """The host and port that ``host:port`` or ``[address]:port`` names."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise InvalidInput(f"Expected a host and a port ('localhost:8000'), found {text!r}.")
    return host.strip("[]").lower(), int(port)


def _reject_references(value: str) -> str:
    if parse_secret_reference(value):
        raise InvalidInput(f"There is no value for {value}.")
    return value
