"""The readers of this machine."""

import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # heavy: only a crawl loads it
    from kept.extract.pool import ReaderPool as ReaderPool


def reader_pool() -> "ReaderPool":
    from kept.extract.pool import ReaderPool

    return ReaderPool(processes=max(1, min(4, os.cpu_count() or 1)))


@asynccontextmanager
async def started_readers() -> AsyncIterator["ReaderPool"]:
    """Readers for a runtime that is not open yet: they load what they need while we do."""
    pool = reader_pool()
    await pool.start()
    try:
        yield pool
    finally:
        await pool.close()
