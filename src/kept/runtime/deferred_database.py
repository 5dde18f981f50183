"""A database that is created by its first write: 'kept add' with a mistyped address leaves none behind."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kept.store.database import Connection, Database, open_database


class DeferredDatabase:
    """Opens the database at its first use. A read raises NotFound while there is none; a write creates it."""

    def __init__(self, url: str, *, lease_seconds: float) -> None:
        self._url = url
        self._lease_seconds = lease_seconds
        self._db: Database | None = None

    @property
    def has_shared_clock(self) -> bool:
        assert self._db is not None, "a clock matters only to what was stored before"
        return self._db.has_shared_clock

    def limit_silence(self, seconds: float) -> None:
        assert self._db is not None, "a server opens its database at once"
        self._db.limit_silence(seconds)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        async with (await self._open(create=False)).snapshot() as snapshot:
            yield snapshot

    @asynccontextmanager
    async def transaction(self, *, durable: bool = False) -> AsyncIterator[Connection]:
        async with (await self._open(create=True)).transaction(durable=durable) as tx:
            yield tx

    async def wait_for_notification(self, channel: str, seconds: float) -> bool:
        return await (await self._open(create=True)).wait_for_notification(channel, seconds)

    async def close(self) -> None:
        if self._db:
            await self._db.close()

    async def _open(self, *, create: bool) -> Database:
        if self._db is None:
            self._db = await open_database(self._url, create=create, lease_seconds=self._lease_seconds)
        return self._db
