"""Looks whether anything has happened: once for all who listen, and only while somebody does."""

import asyncio
from contextlib import suppress

from kept.errors import StoreError
from kept.service import events
from kept.service.context import Services

POLL_SECONDS = 0.5


class ChangePoller:
    def __init__(self, services: Services, shutting_down: asyncio.Event) -> None:
        self._services = services
        self._shutting_down = shutting_down
        self._listeners = 0
        self._last_signature = ""
        self._changed = asyncio.Event()
        self._poll_task: asyncio.Task[None] | None = None
        self.sequence = 0  # it grows whenever something has happened

    @property
    def is_shutting_down(self) -> bool:
        """The server is about to stop: whatever stays open should end."""
        return self._shutting_down.is_set()

    async def wait_for_change(self, sequence: int, timeout: float) -> None:
        """Until something has happened since that version, the server is about to stop, or so long."""
        self._listeners += 1
        try:
            if self._poll_task is None or self._poll_task.done():
                self._poll_task = asyncio.create_task(self._poll())
            if self.sequence == sequence:
                with suppress(TimeoutError):
                    async with asyncio.timeout(timeout):
                        await self._changed.wait()
        finally:
            self._listeners -= 1

    async def _poll(self) -> None:
        while self._listeners:
            with suppress(StoreError):  # whoever reads then finds out
                seen = await events.change_token(self._services.db)
                if seen != self._last_signature or self._shutting_down.is_set():
                    self._last_signature, self.sequence = seen, self.sequence + 1
                    self._changed.set()
                    self._changed = asyncio.Event()
            await asyncio.sleep(POLL_SECONDS)
