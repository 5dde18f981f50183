"""The protocol between a pool and its reader processes. Imports no reader."""

import struct
from contextlib import suppress
from typing import TypeAlias

from kept.model.source import Region

READY_SIGNAL = b"ready"
FRAME_LENGTH = struct.Struct("!I")
SECONDS_PER_MEGABYTE = 2.0

ReadTask: TypeAlias = tuple[bytes, str, str, Region]  # body, content type, URL, region


def time_limit(seconds: float, body: bytes) -> float:
    return seconds + len(body) / 1_000_000 * SECONDS_PER_MEGABYTE


def release_memory() -> None:
    """Return free memory to the system; the allocator would keep thirty times the size of a large page."""
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc has it, and needs it
        ctypes.CDLL(None).malloc_trim(0)
