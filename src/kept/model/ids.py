"""Ids that any process can make, and that sort by creation time."""

import os
import time


def new_id() -> str:
    """Return a UUID of version 7: new rows go to the end of an index, not all over it."""
    milliseconds, random_bits = time.time_ns() // 1_000_000, int.from_bytes(os.urandom(10), "big")
    bits = (milliseconds << 80) | (7 << 76) | (random_bits >> 68 << 64) | (2 << 62) | (random_bits & (1 << 62) - 1)
    digits = f"{bits:032x}"  # formatted here: a UUID object costs more than its digits
    return f"{digits[:8]}-{digits[8:12]}-{digits[12:16]}-{digits[16:20]}-{digits[20:]}"
