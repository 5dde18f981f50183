"""The readers of this machine."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # heavy: only a crawl loads it
    from kept.extract.reader_pool.pool import ReaderPool as ReaderPool


def make_reader_pool() -> "ReaderPool":
    from kept.extract.reader_pool.pool import ReaderPool

    return ReaderPool(processes=max(1, min(4, os.cpu_count() or 1)))


@asynccontextmanager
async def started_reader_pool() -> AsyncIterator["ReaderPool"]:
    """Readers for a runtime that is not open yet: they load what they need while we do."""
    pool = make_reader_pool()
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()
