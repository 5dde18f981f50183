"""The reader processes of this machine, and the modules that a crawl needs. Nothing here is loaded by a search."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from kept.model.source import SourceKind

if TYPE_CHECKING:
    from kept.extract.reader_pool.pool import ReaderPool as ReaderPool
    from kept.model.document import Content

MAX_PROCESSES = 4


def make_reader_pool() -> "ReaderPool":
    from kept.extract.reader_pool.pool import ReaderPool

    return ReaderPool(processes=max(1, min(MAX_PROCESSES, os.cpu_count() or 1)))


@asynccontextmanager
async def started_reader_pool() -> AsyncIterator["ReaderPool"]:
    """Start readers before a runtime is open, so that they load their modules while this process loads its own."""
    pool = make_reader_pool()
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()


def preload_crawl_modules(kind: SourceKind = SourceKind.WEB) -> None:
    """Import what a crawl of such a source needs, so that the time is not counted as part of the crawl."""
    import kept.jobs.worker
    from kept.extract.reader import pipeline_signature

    if kind is SourceKind.WEB:
        import kept.origins.web  # noqa: F401
    pipeline_signature()


def hash_content(content: "Content") -> str:
    """Return the hash that identifies a content in the store."""
    from kept.extract.sections import compute_content_hash

    return compute_content_hash(content)
