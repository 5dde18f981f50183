"""One application of all doors, behind one gate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI

from kept.server import web
from kept.server.api import add_api
from kept.server.auth import AllowedHosts, AuthMiddleware, HostCheckMiddleware
from kept.server.change_poller import ChangePoller
from kept.server.db_check import DatabaseCheckMiddleware
from kept.server.limits import RequestLimitMiddleware
from kept.server.mcp import http as mcp
from kept.server.metrics import Metrics, MetricsMiddleware
from kept.server.problems import install_error_handlers
from kept.server.web.errors import HtmlErrorMiddleware
from kept.service.context import Services
from kept.settings import Settings


def make_app(services: Services, settings: Settings, *, host: str = "127.0.0.1") -> FastAPI:
    """The server on a house that is open, for this address to listen at. It opens and closes nothing itself.

    What a door needs to run beside it, for as long as the server runs, is entered from ``app.state.beside``.
    ``app.state.closing`` is set when the server is about to stop: whatever stays open should end.
    """
    app = FastAPI(title="Kept", openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None, lifespan=_lifespan)
    app.state.house, app.state.settings, app.state.measures = services, settings, Metrics()
    beside: list[AbstractAsyncContextManager[Any]] = []
    app.state.beside, app.state.closing = beside, asyncio.Event()
    app.state.change_poller = ChangePoller(services, app.state.closing)
    add_api(app)
    mcp.mount(app, services, settings)
    app.include_router(web.router)  # last: it has a page for every address that nobody else answers
    install_error_handlers(app)
    names = AllowedHosts.from_settings(host, settings.serve.hosts)
    # The last to be added is the first to be asked.
    app.add_middleware(AuthMiddleware, services=services, settings=settings, requires_keys=names.requires_keys)
    app.add_middleware(DatabaseCheckMiddleware, services=services)
    app.add_middleware(RequestLimitMiddleware, settings=settings.serve)
    app.add_middleware(HtmlErrorMiddleware)
    app.add_middleware(HostCheckMiddleware, allowed_hosts=names)
    app.add_middleware(MetricsMiddleware, metrics=app.state.measures)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for one in app.state.beside:
            await stack.enter_async_context(one)
        yield
        app.state.closing.set()
