"""A web site as an origin: client · egress (the gate to the network) · browser · robots · sitemap · llms · scope."""

from kept.origins.web.client import WebOrigin, web_egress, web_origin

__all__ = ["WebOrigin", "web_egress", "web_origin"]
