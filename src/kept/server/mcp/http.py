"""Mounts the MCP server at /mcp of the application."""

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kept.server.mcp.server import make_mcp_server
from kept.service.context import Services
from kept.settings import Settings

MAX_SESSIONS = 1_000  # of clients with an older protocol; the current one has no sessions


def mount(app: FastAPI, services: Services, settings: Settings) -> None:
    """Add /mcp to the application, and its session managers to the lifespans of the application."""
    reading = _session_manager(services, settings, read_only=True)
    writing = _session_manager(services, settings, read_only=False)
    app.router.routes.append(Route("/mcp", _ScopeDispatcher(reading, writing)))
    app.state.lifespans += [reading.run(), writing.run()]


class _ScopeDispatcher:
    """Sends requests with a read-only key to a server that has no tools that write."""

    def __init__(self, reading: StreamableHTTPSessionManager, writing: StreamableHTTPSessionManager) -> None:
        self._reading = reading
        self._writing = writing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        principal = scope.get("state", {}).get("principal")  # set by the auth middleware
        is_read_only = getattr(principal, "scope", None) == "read"
        await (self._reading if is_read_only else self._writing).handle_request(scope, receive, send)


def _session_manager(services: Services, settings: Settings, *, read_only: bool) -> StreamableHTTPSessionManager:
    server = make_mcp_server(services, settings, read_only=read_only)
    security = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # the auth middleware does that
    server.streamable_http_app(max_sessions=MAX_SESSIONS, transport_security=security)  # creates the session manager
    return server.session_manager
