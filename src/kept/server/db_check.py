"""Middleware that answers 503 at once while the database is away, instead of letting every request wait for it."""

import asyncio
import time

from starlette.types import ASGIApp, Receive, Scope, Send

from kept.errors import StoreUnreachable
from kept.service import keys
from kept.service.context import Services

CHECK_INTERVAL_SECONDS = 1.0
CHECK_TIMEOUT_SECONDS = 1.5
UNCHECKED_PATHS = ("/healthz",)


class DatabaseCheckMiddleware:
    """Lets requests through while the database answers. One query, at most once a second, serves all of them."""

    def __init__(self, app: ASGIApp, services: Services) -> None:
        self._app = app
        self._services = services
        self._last_success = 0.0
        self._check_task: asyncio.Task[None] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Only a database server can be away; a SQLite file is always there.
        if scope["type"] == "http" and self._services.db.has_shared_clock and scope["path"] not in UNCHECKED_PATHS:
            await self._ensure_available()
        return await self._app(scope, receive, send)

    async def _ensure_available(self) -> None:
        if time.monotonic() - self._last_success < CHECK_INTERVAL_SECONDS:
            return
        if self._check_task is None or self._check_task.done():
            self._check_task = asyncio.create_task(self._query())
            # After a timeout nothing awaits the task, and asyncio would log its error as never retrieved.
            self._check_task.add_done_callback(lambda task: task.cancelled() or task.exception())
        done, _ = await asyncio.wait([self._check_task], timeout=CHECK_TIMEOUT_SECONDS)
        if not done:
            raise StoreUnreachable("The database does not answer.")
        await self._check_task

    async def _query(self) -> None:
        await keys.list_keys(self._services.db)
        self._last_success = time.monotonic()
