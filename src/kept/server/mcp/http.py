"""MCP at /mcp of the server."""

from fastapi import FastAPI
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from kept.server.mcp.server import make_mcp_server
from kept.service.context import Services
from kept.settings import Settings

MAX_SESSIONS = 1_000  # of clients that speak an older protocol; the present one has none


def mount(app: FastAPI, services: Services, settings: Settings) -> None:
    """Adds /mcp to the application, and what it needs to what runs beside it."""
    reading = _session_manager(services, settings, read_only=True)
    writing = _session_manager(services, settings, read_only=False)
    app.router.routes.append(Route("/mcp", _ScopeDispatcher(reading, writing)))
    app.state.beside += [reading.run(), writing.run()]


class _ScopeDispatcher:
    """Whoever has a key that only reads is not even shown the tools that write."""

    def __init__(self, reading: StreamableHTTPSessionManager, writing: StreamableHTTPSessionManager) -> None:
        self._reading = reading
        self._writing = writing

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asker = scope.get("state", {}).get("asker")  # as the gate before every door has found out
        may_only_read = getattr(asker, "scope", None) == "read"
        await (self._reading if may_only_read else self._writing).handle_request(scope, receive, send)


def _session_manager(services: Services, settings: Settings, *, read_only: bool) -> StreamableHTTPSessionManager:
    server = make_mcp_server(services, settings, read_only=read_only)
    checked = TransportSecuritySettings(enable_dns_rebinding_protection=False)  # by the gate before every door
    server.streamable_http_app(max_sessions=MAX_SESSIONS, transport_security=checked)  # the one way to its manager
    return server.session_manager
