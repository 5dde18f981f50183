"""Tables of tbl: the lines between .TS and .TE as rows of cells."""

from __future__ import annotations

import re
from collections.abc import Iterable

MAX_ROWS = 10_000
MAX_COLUMNS = 60
_SEPARATOR = re.compile(r"tab\s*\(\s*(.)\s*\)")


def read_table(lines: Iterable[str]) -> tuple[list[list[str]], bool]:
    """Return the rows of a table, with the escapes in their cells, and whether the first one is a header."""
    rows: list[list[str]] = []
    separator, in_format, is_first = "\t", True, True
    block: list[str] | None = None  # the lines of a cell between T{ and T}
    has_header = False
    for line in lines:
        if in_format:
            stripped = line.strip()
            if is_first and stripped.endswith(";"):
                if found := _SEPARATOR.search(stripped):
                    separator = found[1]
            elif is_first or stripped:
                in_format = not stripped.endswith(".")
                has_header = has_header or (is_first and "b" in stripped.lower())
            is_first = False
            continue
        if len(rows) >= MAX_ROWS:
            break
        if block is not None:
            if line.startswith("T}"):
                rows[-1][-1] = " ".join(block)
                block = None
                rest = line[2:]
                if rest.startswith(separator):
                    block = _add_cells(rows[-1], rest[1:].split(separator, MAX_COLUMNS))
            else:
                block.append(_without_request(line))
            continue
        if line.startswith(".T&"):
            in_format = True
            continue
        if line.startswith(".") and not line[1:2].isdigit():
            continue
        if line.strip() in ("_", "="):
            has_header = has_header or len(rows) == 1
            continue
        rows.append([])
        block = _add_cells(rows[-1], line.split(separator, MAX_COLUMNS))
    rows = [row for row in rows if any(cell not in ("", "_", "=", "\\^") for cell in row)]
    return [["" if cell in ("_", "=", "\\^", "\\_") else cell for cell in row] for row in rows], has_header


def _add_cells(row: list[str], cells: list[str]) -> list[str] | None:
    """Add cells to a row. Returns the lines of the last one if it goes on until T}."""
    row += cells
    if row[-1].strip() == "T{":
        row[-1] = ""
        return []
    return None


def _without_request(line: str) -> str:
    """Return a line in a cell without the macro before it."""
    if line[:1] not in (".", "'"):
        return line
    name, _, rest = line[1:].strip().partition(" ")
    if name in ("B", "SB", "BR", "BI"):
        return f"\\fB{rest}\\fR"
    if name in ("I", "IR", "IB"):
        return f"\\fI{rest}\\fR"
    return rest if name in ("R", "RB", "RI") else ""
