"""A web site as an origin: client · turns · egress (the gate to the network) · wire · browser · robots · sitemap."""

from kept.origins.web.factory import make_http_client, make_web_origin
from kept.origins.web.origin import WebOrigin

__all__ = ["WebOrigin", "make_http_client", "make_web_origin"]
