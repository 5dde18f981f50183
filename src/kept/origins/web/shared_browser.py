"""One Chromium for everything that this process renders: its crawls and its previews.

It starts with the first page and ends with its last user. Each page has a browser context of its own, so what one
source's page stores, no other sees; what a page loads goes through the client of its own source.
"""

import asyncio
from weakref import WeakKeyDictionary

from kept.origins.web.devtools import DevTools, find_browser

MAX_TABS = 4  # of all users; each may take hundreds of megabytes


class SharedBrowser:
    """The browser of one event loop and program. ``SharedBrowser.of(program)`` returns it."""

    def __init__(self, program: str) -> None:
        self.tabs = asyncio.Semaphore(MAX_TABS)
        self._program = program
        self._users: set[object] = set()
        self._lock = asyncio.Lock()
        self._devtools: DevTools | None = None

    @classmethod
    def of(cls, program: str) -> "SharedBrowser":
        browsers = _BROWSERS.setdefault(asyncio.get_running_loop(), {})
        return browsers.setdefault(program, cls(program))

    async def start(self, user: object) -> DevTools:
        """Return the running browser, started again if it has ended. Raises BrowserUnavailable.

        It runs at least until ``leave(user)``.
        """
        async with self._lock:
            self._users.add(user)
            if self._devtools and not self._devtools.is_alive:
                await self._close()
            self._devtools = self._devtools or await DevTools.start(find_browser(self._program))
            return self._devtools

    async def leave(self, user: object) -> None:
        """End the browser if this was its last user."""
        async with self._lock:
            self._users.discard(user)
            if not self._users:
                await self._close()

    async def _close(self) -> None:
        devtools, self._devtools = self._devtools, None
        if devtools:
            await devtools.close()


_BROWSERS: WeakKeyDictionary[asyncio.AbstractEventLoop, dict[str, SharedBrowser]] = WeakKeyDictionary()
