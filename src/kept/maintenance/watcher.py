"""Watches folders, and enqueues a refresh when their files have changed and no more events arrive.

Events only tell when to crawl. The crawl finds out what changed, so duplicate events do no harm, and changes from the
time before are found by the refresh that watching starts with.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path

from kept.errors import KeptError, StoreError
from kept.jobs import queue
from kept.log import Log
from kept.model.source import Source, SourceKind
from kept.model.url import file_path
from kept.store import sources
from kept.store.database import Database

log = Log(__name__)

SETTLE_SECONDS = 1.0  # without an event
MAX_SETTLE_SECONDS = 30.0  # then a refresh is due even if events keep arriving
SOURCE_POLL_SECONDS = 5.0  # between reads of which sources are to be watched


async def watch_sources(
    db: Database,
    stop: asyncio.Event,
    *,
    settle_seconds: float = SETTLE_SECONDS,
    poll_seconds: float = SOURCE_POLL_SECONDS,
) -> None:
    """Enqueue refreshes of all watched sources until ``stop`` is set. Workers run them."""
    watching: dict[str, asyncio.Task[None]] = {}
    try:
        while not stop.is_set():
            try:
                async with db.snapshot() as snapshot:
                    wanted = {source.id: source for source in await sources.all(snapshot) if is_watched(source)}
            except StoreError as error:
                log.warning("database away", reason=str(error))
            else:
                for id in watching.keys() - wanted.keys():
                    watching.pop(id).cancel()
                for id in wanted.keys() - watching.keys():
                    watching[id] = asyncio.create_task(_watch_source(db, wanted[id], stop, settle_seconds))
                for id in [id for id, task in watching.items() if task.done()]:
                    del watching[id]  # its folder does not exist: try again
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), poll_seconds)
    finally:
        for task in watching.values():
            task.cancel()
        await asyncio.gather(*watching.values(), return_exceptions=True)


def is_watched(source: Source) -> bool:
    return source.settings.watch and source.kind is SourceKind.FOLDER


async def watch_files(root: str, stop: asyncio.Event, *, settle_seconds: float = SETTLE_SECONDS) -> AsyncIterator[None]:
    """Yield once when watching has begun, and whenever files below a root have changed and settled, until ``stop``."""
    from watchfiles import awatch

    path = Path(file_path(root))
    # A single file is often replaced by a new one, which a watch on the file itself would miss.
    folder, only = (path, None) if path.is_dir() else (path.parent, str(path))
    is_first = True
    async for changed in awatch(
        folder,
        watch_filter=None,
        debounce=int(MAX_SETTLE_SECONDS * 1000),
        step=int(settle_seconds * 1000),
        stop_event=stop,
        recursive=only is None,
        ignore_permission_denied=True,
        rust_timeout=int(settle_seconds * 1000),
        yield_on_timeout=True,  # the first timeout tells that watching has begun
    ):
        if is_first or (changed and only is None) or any(name == only for _, name in changed):
            is_first = False
            yield


async def _watch_source(db: Database, source: Source, stop: asyncio.Event, settle_seconds: float) -> None:
    try:
        async for _ in watch_files(source.root, stop, settle_seconds=settle_seconds):
            try:
                async with db.transaction(durable=True) as tx:
                    current = await sources.get(tx, source.id)
                    if current and not current.schedule_paused_at:  # after a rollback a person resumes it
                        await queue.enqueue_in_transaction(tx, source.id)
            except KeptError as error:  # e.g. paused: a person resumes it
                log.warning("not refreshed", source=source.label, reason=str(error))
    except (OSError, KeptError) as error:
        log.warning("not watched", source=source.label, reason=str(error))
