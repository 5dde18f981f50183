"""One application of all doors, behind one gate."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

from fastapi import FastAPI

from kept.serve import web
from kept.serve.api import add_api
from kept.serve.bounds import Bounded
from kept.serve.gate import Guarded, Keyed, Names
from kept.serve.mcp import http as mcp
from kept.serve.measures import Measured, Measures
from kept.serve.problems import speak_problems
from kept.serve.pulse import Awake
from kept.serve.ticker import Ticker
from kept.serve.web.refusals import Refusals
from kept.service.house import House
from kept.settings import Settings


def make_app(house: House, settings: Settings, *, host: str = "127.0.0.1") -> FastAPI:
    """The server on a house that is open, for this address to listen at. It opens and closes nothing itself.

    What a door needs to run beside it, for as long as the server runs, is entered from ``app.state.beside``.
    ``app.state.closing`` is set when the server is about to stop: whatever stays open should end.
    """
    app = FastAPI(title="Kept", openapi_url="/api/v1/openapi.json", docs_url=None, redoc_url=None, lifespan=_lifespan)
    app.state.house, app.state.settings, app.state.measures = house, settings, Measures()
    beside: list[AbstractAsyncContextManager[Any]] = []
    app.state.beside, app.state.closing = beside, asyncio.Event()
    app.state.ticker = Ticker(house, app.state.closing)
    add_api(app)
    mcp.mount(app, house, settings)
    app.include_router(web.router)  # last: it has a page for every address that nobody else answers
    speak_problems(app)
    names = Names.of(host, settings.serve.hosts)
    # The last to be added is the first to be asked.
    app.add_middleware(Keyed, house=house, settings=settings, need_keys=names.need_keys)
    app.add_middleware(Awake, house=house)
    app.add_middleware(Bounded, settings=settings.serve)
    app.add_middleware(Refusals)
    app.add_middleware(Guarded, names=names)
    app.add_middleware(Measured, measures=app.state.measures)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    async with AsyncExitStack() as stack:
        for one in app.state.beside:
            await stack.enter_async_context(one)
        yield
        app.state.closing.set()
