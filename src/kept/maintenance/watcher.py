"""Folders that ask for it are watched: when their files have been still for a moment, a refresh is queued.

Events only say when to look. What changed is for the crawl to find out, so an event that comes twice does no harm, and
what happened while nobody watched is found by the refresh that watching begins with.
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

SETTLE_SECONDS = 1.0  # without any event
MAX_SETTLE_SECONDS = 30.0  # files that are never still are looked at so often
SOURCE_POLL_SECONDS = 5.0  # so often it is asked which sources want to be watched


async def watch_sources(
    db: Database,
    stop: asyncio.Event,
    *,
    settle_seconds: float = SETTLE_SECONDS,
    poll_seconds: float = SOURCE_POLL_SECONDS,
) -> None:
    """Queues refreshes of all sources that ask to be watched, until ``stop`` is set. Others have to run them."""
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
                    del watching[id]  # its folder is not there: it is tried again
            with suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), poll_seconds)
    finally:
        for task in watching.values():
            task.cancel()
        await asyncio.gather(*watching.values(), return_exceptions=True)


def is_watched(source: Source) -> bool:
    return source.settings.watch and source.kind is SourceKind.FOLDER


async def watch_files(root: str, stop: asyncio.Event, *, settle_seconds: float = SETTLE_SECONDS) -> AsyncIterator[None]:
    """Comes when the files below a root are watched, and whenever they changed and are still again, until ``stop``."""
    from watchfiles import awatch

    path = Path(file_path(root))
    # A single file is often replaced, and then another one is there: its folder is watched.
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
        yield_on_timeout=True,  # the first time that nothing happens, it is known that events come
    ):
        if is_first or (changed and only is None) or any(name == only for _, name in changed):
            is_first = False
            yield


async def _watch_source(db: Database, source: Source, stop: asyncio.Event, settle_seconds: float) -> None:
    try:
        async for _ in watch_files(source.root, stop, settle_seconds=settle_seconds):
            try:
                async with db.transaction(durable=True) as tx:
                    now = await sources.get(tx, source.id)
                    if now and not now.schedule_paused_at:  # after a rollback only a person goes on
                        await queue.enqueue_in_transaction(tx, source.id)
            except KeptError as error:  # it is paused: a person goes on
                log.warning("not refreshed", source=source.label, reason=str(error))
    except (OSError, KeptError) as error:
        log.warning("not watched", source=source.label, reason=str(error))
