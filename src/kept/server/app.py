"""The application: API, MCP and pages behind one chain of middleware."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI

from kept.server import web
from kept.server.api import add_api
from kept.server.auth import AllowedHosts, AuthMiddleware, HostCheckMiddleware
from kept.server.db_check import DatabaseCheckMiddleware
from kept.server.limits import RequestLimitMiddleware
from kept.server.mcp import server as mcp
from kept.server.metrics import Metrics, MetricsMiddleware
from kept.server.problems import install_error_handlers
from kept.server.sse import ChangePoller
from kept.server.web.errors import HtmlErrorMiddleware
from kept.service.context import Services
from kept.settings import Settings


def make_app(services: Services, settings: Settings, *, host: str = "127.0.0.1") -> FastAPI:
    """Build the application for services that are open; it neither opens nor closes them.

    ``host`` is the address that the server will bind: it decides which Host headers are allowed and whether keys are
    required. Fields of ``app.state``:

        services, settings, metrics, change_poller
        lifespans       context managers that are entered at startup and left at shutdown
        shutting_down   an event; open streams end when it is set
    """
    app = FastAPI(title="Kept", openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None, lifespan=_lifespan)
    lifespans: list[AbstractAsyncContextManager[Any]] = []
    app.state.services, app.state.settings, app.state.metrics = services, settings, Metrics()
    app.state.lifespans, app.state.shutting_down = lifespans, asyncio.Event()
    app.state.change_poller = ChangePoller(services, app.state.shutting_down)
    add_api(app)
    mcp.mount(app, services, settings)
    app.include_router(web.router)  # last: its "not found" page matches every path that is left
    install_error_handlers(app)
    allowed_hosts = AllowedHosts.from_settings(host, settings.serve.hosts)
    # Middleware that is added last runs first.
    app.add_middleware(AuthMiddleware, services=services, settings=settings, requires_keys=allowed_hosts.requires_keys)
    app.add_middleware(DatabaseCheckMiddleware, services=services)
    app.add_middleware(RequestLimitMiddleware, settings=settings.serve)
    app.add_middleware(HtmlErrorMiddleware)
    app.add_middleware(HostCheckMiddleware, allowed_hosts=allowed_hosts)
    app.add_middleware(MetricsMiddleware, metrics=app.state.metrics)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for lifespan in app.state.lifespans:
            await stack.enter_async_context(lifespan)
        yield
        app.state.shutting_down.set()
