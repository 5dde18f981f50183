"""A web origin, built from the settings of its source."""

from collections.abc import Callable

from kept import __version__
from kept.errors import WrongCall
from kept.model.source import SourceSettings, parse_reference
from kept.origins.web.client import WebOrigin
from kept.origins.web.egress import Egress, OpenSocket
from kept.origins.web.exchange import Patience, Secrets
from kept.origins.web.gate import Pair, Resolve, resolve_by_system, target_of
from kept.origins.web.pacing import SHARED, Pacing


def web_origin(
    root: str,
    settings: SourceSettings,
    *,
    look_up: Callable[[str], str] | None = None,
    contact: str = "",
    pacing: Pacing = SHARED,
    known_sitemaps: frozenset[str] = frozenset(),
    browser: str = "",
    resolve: Resolve = resolve_by_system,
    open_socket: OpenSocket | None = None,
) -> WebOrigin:
    """The origin of a source, with its own way out.

    ``look_up`` finds what ``env:NAME`` and ``secret:NAME`` stand for. ``contact`` is where a site's owner can complain.
    ``browser`` is the Chromium to start where a page needs one; empty: whichever is installed.
    """
    egress = web_egress(root, settings, look_up=look_up, contact=contact, resolve=resolve, open_socket=open_socket)
    return WebOrigin(
        root,
        settings,
        egress,
        user_agent=settings.access.user_agent or user_agent(contact),
        pacing=pacing,
        known_sitemaps=known_sitemaps,
        browser=browser,
    )


def web_egress(
    root: str,
    settings: SourceSettings,
    *,
    look_up: Callable[[str], str] | None = None,
    contact: str = "",
    resolve: Resolve = resolve_by_system,
    open_socket: OpenSocket | None = None,
) -> Egress:
    """The way out of one source: for its pages, and through ``proxy`` for programs that connect by themselves."""
    access = settings.access
    value_of = look_up or _no_secrets
    return Egress(
        allowed=frozenset(map(pair_of, access.allowed)),
        user_agent=access.user_agent or user_agent(contact),
        secrets=Secrets(target_of(root), tuple((one.name, value_of(one.value)) for one in access.headers)),
        patience=Patience(
            connect=access.connect_seconds, first_byte=access.first_byte_seconds, whole=access.whole_seconds
        ),
        proxy=value_of(access.proxy) if access.proxy else None,
        ca_file=access.ca_file or None,
        resolve=resolve,
        open_socket=open_socket,
    )


def user_agent(contact: str = "") -> str:
    """Who we are, honestly, and where to complain."""
    return f"Kept/{__version__} ({f'+{contact}; ' if contact else ''}keeps a copy of documentation for its reader)"


def pair_of(text: str) -> Pair:
    """The host and port that ``host:port`` or ``[address]:port`` names."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal():
        raise WrongCall(f"Expected a host and a port ('localhost:8000'), found {text!r}.")
    return host.strip("[]").lower(), int(port)


def _no_secrets(value: str) -> str:
    if parse_reference(value):
        raise WrongCall(f"There is no value for {value}.")
    return value
