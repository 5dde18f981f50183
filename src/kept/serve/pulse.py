"""Whether the database answers. When it does not, callers are told so at once: to wait for it helps nobody."""

import asyncio
import time

from starlette.types import ASGIApp, Receive, Scope, Send

from kept.errors import StoreUnreachable
from kept.service import keys
from kept.service.house import House

FRESH_SECONDS = 1.0
PATIENCE_SECONDS = 1.5
WITHOUT = ("/healthz",)


class Awake:
    """Lets requests through while the database answers. One look, at most once a second, serves all of them."""

    def __init__(self, app: ASGIApp, house: House) -> None:
        self._app = app
        self._house = house
        self._seen = 0.0
        self._look: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # A file is always there; what is asked of it waits its turn.
        if scope["type"] == "http" and self._house.db.one_clock and scope["path"] not in WITHOUT:
            await self._check()
        return await self._app(scope, receive, send)

    async def _check(self) -> None:
        if time.monotonic() - self._seen < FRESH_SECONDS:
            return
        if self._look is None or self._look.done():
            self._look = asyncio.create_task(self._ask())
        done, _ = await asyncio.wait([self._look], timeout=PATIENCE_SECONDS)
        if not done:
            raise StoreUnreachable("The database does not answer.")
        await self._look

    async def _ask(self) -> None:
        await keys.list_keys(self._house.db)
        self._seen = time.monotonic()
