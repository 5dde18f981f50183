"""A web site as an origin."""

from collections.abc import Callable
from functools import partial

from kept.model.source import SourceSettings
from kept.origins.web.client_factory import default_user_agent, make_http_client
from kept.origins.web.http.address_policy import Resolver, resolve_with_system
from kept.origins.web.http.client import OpenSocket
from kept.origins.web.origin import WebOrigin
from kept.origins.web.rate_limiter import SHARED_RATE_LIMITERS, RateLimiters

__all__ = ["WebOrigin", "make_http_client", "make_web_origin"]


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
    """Build the origin of a source. Its HTTP client, and with it the source's secrets, is built on first use.

    ``browser``: the Chromium that renders pages; empty for the one that is installed.
    """
    return WebOrigin(
        root,
        settings,
        partial(
            make_http_client,
            root,
            settings,
            look_up=look_up,
            contact=contact,
            resolver=resolver,
            open_socket=open_socket,
        ),
        user_agent=settings.access.user_agent or default_user_agent(contact),
        rate_limiters=rate_limiters,
        known_sitemaps=known_sitemaps,
        browser=browser,
    )
