"""A web site as an origin: client · turns · egress (the gate to the network) · wire · browser · robots · sitemap."""

from kept.origins.web.building import web_egress, web_origin
from kept.origins.web.client import WebOrigin

__all__ = ["WebOrigin", "web_egress", "web_origin"]
