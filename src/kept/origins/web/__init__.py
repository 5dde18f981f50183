"""A web site as an origin: client · egress (the one gate to the network) · robots · sitemap · llms · scope · pacing."""

from kept.origins.web.client import WebOrigin, web_egress, web_origin

__all__ = ["WebOrigin", "web_egress", "web_origin"]
