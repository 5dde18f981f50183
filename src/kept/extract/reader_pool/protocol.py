"""The protocol between a pool and its reader processes. Imports no reader."""

import struct
from contextlib import suppress
from typing import TypeAlias

from kept.model.companions import Companions
from kept.model.source import Region

READY_SIGNAL = b"ready"
FRAME_LENGTH = struct.Struct("!I")
SECONDS_PER_MEGABYTE = 2.0
SLOW_SECONDS_PER_MEGABYTE = 15.0

ReadTask: TypeAlias = tuple[bytes, str, str, Region, Companions]  # body, content type, URL, region, companions


def time_limit(seconds: float, task: ReadTask) -> float:
    body, content_type, _, _, companions = task
    size = len(body) + sum(map(len, companions.files.values()))
    slow = content_type.startswith(("text/x-rst", "text/plain"))  # docutils is a fifth as fast as the other readers
    return seconds + size / 1_000_000 * (SLOW_SECONDS_PER_MEGABYTE if slow else SECONDS_PER_MEGABYTE)


def release_memory() -> None:
    """Return free memory to the system; the allocator would keep thirty times the size of a large page."""
    import ctypes

    with suppress(AttributeError, OSError):  # only glibc has it, and needs it
        ctypes.CDLL(None).malloc_trim(0)
