"""Looks whether anything has happened: once for all who listen, and only while somebody does."""

import asyncio
from contextlib import suppress

from kept.errors import StoreError
from kept.service import events
from kept.service.house import House

LOOK_SECONDS = 0.5


class Ticker:
    def __init__(self, house: House, closing: asyncio.Event) -> None:
        self._house = house
        self._closing = closing
        self._listeners = 0
        self._seen = ""
        self._changed = asyncio.Event()
        self._looking: asyncio.Task[None] | None = None
        self.version = 0  # it grows whenever something has happened

    @property
    def closing(self) -> bool:
        """The server is about to stop: whatever stays open should end."""
        return self._closing.is_set()

    async def wait(self, version: int, seconds: float) -> None:
        """Until something has happened since that version, the server is about to stop, or so long."""
        self._listeners += 1
        try:
            if self._looking is None or self._looking.done():
                self._looking = asyncio.create_task(self._look())
            if self.version == version:
                with suppress(TimeoutError):
                    async with asyncio.timeout(seconds):
                        await self._changed.wait()
        finally:
            self._listeners -= 1

    async def _look(self) -> None:
        while self._listeners:
            with suppress(StoreError):  # whoever reads then finds out
                seen = await events.signature(self._house.db)
                if seen != self._seen or self._closing.is_set():
                    self._seen, self.version = seen, self.version + 1
                    self._changed.set()
                    self._changed = asyncio.Event()
            await asyncio.sleep(LOOK_SECONDS)
