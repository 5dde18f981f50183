"""What goes between a pool and its reader processes, and what both know: no reader is loaded for it."""

import struct
from contextlib import suppress
from typing import TypeAlias

from kept.model.source import Region

READY_SIGNAL = b"ready"
FRAME_LENGTH = struct.Struct("!I")
SECONDS_PER_MEGABYTE = 2.0

ReadTask: TypeAlias = tuple[bytes, str, str, Region]  # body, content type, URL, which part of it


def time_limit(seconds: float, body: bytes) -> float:
    return seconds + len(body) / 1_000_000 * SECONDS_PER_MEGABYTE


def release_memory() -> None:
    """Lets the system have what memory pages took; its allocator would keep thirty times the size of a large one."""
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc's has to be asked
        ctypes.CDLL(None).malloc_trim(0)
