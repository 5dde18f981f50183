"""The composition root: one open database, and the parts of the program that work on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING

from kept.runtime.services import AppServices
from kept.settings import Settings
from kept.store.database import Database, open_database

if TYPE_CHECKING:  # heavy: a search needs neither host
    from kept.extract.reader_pool.pool import ReaderPool
    from kept.runtime.server_host import ServerHost
    from kept.runtime.worker_host import WorkerHost


class Runtime:
    """Joins the context of the service functions with the hosts of workers and servers, each made on first use."""

    def __init__(self, settings: Settings, db: Database, readers: "ReaderPool | None" = None) -> None:
        self.settings = settings
        self.db = db
        self.services = AppServices(settings, db)
        self._readers = readers

    @cached_property
    def worker_host(self) -> "WorkerHost":
        from kept.runtime.worker_host import WorkerHost

        return WorkerHost(self.services, self._readers)

    @cached_property
    def server_host(self) -> "ServerHost":
        from kept.runtime.server_host import ServerHost

        return ServerHost(self.services, self.worker_host)

    async def close(self) -> None:
        if "worker_host" in self.__dict__:
            await self.worker_host.close()
        elif self._readers:
            await self._readers.close()
        await self.services.models.close()
        await self.db.close()


@asynccontextmanager
async def open_runtime(
    settings: Settings, *, create: bool = True, deferred: bool = False, readers: "ReaderPool | None" = None
) -> AsyncIterator[Runtime]:
    """Open a runtime on the configured database. Without ``create`` the database has to exist.

    ``deferred``: the database is opened by the first read and created by the first write, not here.
    """
    lease_seconds = settings.work.silent_seconds
    db: Database
    if deferred:
        from kept.runtime.deferred_database import DeferredDatabase

        db = DeferredDatabase(settings.database, lease_seconds=lease_seconds)
    else:
        db = await open_database(settings.database, create=create, lease_seconds=lease_seconds)
    runtime = Runtime(settings, db, readers)
    try:
        yield runtime
    finally:
        await runtime.close()
