"""Looks for damage in the log of a SQLite database (https://www.sqlite.org/walformat.html).

SQLite reads the log up to the first page with a wrong checksum and drops the rest without a word. After a crash that is
right: the last pages were never committed. Pages that follow a damaged one were, and are lost.
"""

import struct
from pathlib import Path

_MAGIC = (0x377F0682, 0x377F0683)  # the second one: checksums over big-endian words
_HEADER_BYTES, _PAGE_HEADER_BYTES = 32, 24
_MASK = 0xFFFFFFFF


def find_log_damage(database: Path) -> str | None:
    """Return what is wrong with the log of a database; None if it is sound, or if there is none.

    It reads the file only, so it has to run before the database is opened: the last one to close it deletes the log.
    """
    try:
        log = Path(f"{database}-wal").read_bytes()
    except OSError:
        return None
    if not log:
        return None
    if len(log) < _HEADER_BYTES or not any(log[:_HEADER_BYTES]):
        return None if not any(log) else "the beginning of its log (-wal) is damaged; what was committed last is lost"
    magic, _, page_size, _, salt_1, salt_2, sum_1, sum_2 = struct.unpack(">8I", log[:_HEADER_BYTES])
    order = ">" if magic & 1 else "<"
    if magic not in _MAGIC or _checksum(log[:24], (0, 0), order) != (sum_1, sum_2):
        return "the beginning of its log (-wal) is damaged; what was committed last is lost"
    sums, step = (sum_1, sum_2), _PAGE_HEADER_BYTES + page_size
    for number, start in enumerate(range(_HEADER_BYTES, len(log) - step + 1, step), 1):
        header = struct.unpack(">6I", log[start : start + _PAGE_HEADER_BYTES])
        if header[2:4] != (salt_1, salt_2):
            break  # of an earlier round of the log
        page = log[start + _PAGE_HEADER_BYTES : start + step]
        sums = _checksum(log[start : start + 8] + page, sums, order)
        if sums != header[4:6]:
            following = log[start + step : start + step + _PAGE_HEADER_BYTES]
            if len(following) == _PAGE_HEADER_BYTES and struct.unpack(">6I", following)[2:4] == (salt_1, salt_2):
                return f"page {number} of its log (-wal) is damaged; what was committed after it is lost"
            break  # the last page, which was being written
    return None


def _checksum(data: bytes, sums: tuple[int, int], order: str) -> tuple[int, int]:
    one, two = sums
    for first, second in struct.iter_unpack(f"{order}2I", data):
        one = (one + first + two) & _MASK
        two = (two + second + one) & _MASK
    return one, two
