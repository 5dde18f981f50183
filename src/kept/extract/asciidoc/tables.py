"""Tables of AsciiDoc: the lines between |=== as rows of cells."""

from __future__ import annotations

import csv
import re

MAX_ROWS = 10_000
MAX_COLUMNS = 100
_CELL = re.compile(
    r"(?:^|(?<=[\s|]))((?:\d{1,2}(?:\.\d{1,2})?[+*]|\.\d{1,2}[+])?[<^>]?(?:\.[<^>])?[a-z]?)\|", re.MULTILINE
)
_COLUMN = re.compile(r"(\d{1,3})\*")


def read_rows(lines: list[str], attributes: dict[str, str], separator: str) -> tuple[list[list[str]], bool]:
    """Return the rows of a table, and whether the first one is its header."""
    text = "\n".join(lines)
    columns = _column_count(attributes.get("cols", ""))
    options = attributes.get("options", "") + attributes.get("opts", "") + attributes.get("%", "")
    has_header = "header" in options
    if separator != "|" or attributes.get("format") in ("csv", "dsv", "tsv"):
        delimiter = {"dsv": ":", "tsv": "\t"}.get(attributes.get("format", ""), "," if separator == "|" else separator)
        rows = [row for row in csv.reader(text.split("\n"), delimiter=delimiter, strict=False) if row]
        return rows[:MAX_ROWS], has_header
    written = [index for index, line in enumerate(lines) if line.strip()]
    if written and not has_header and "noheader" not in options:
        first = written[0]
        is_one_line = first + 1 < len(lines) and not lines[first + 1].strip() and first == 0
        has_header = is_one_line and len(written) > 1
    cells, first_line_cells = _cells(text)
    columns = min(columns or first_line_cells or 1, MAX_COLUMNS)
    rows = [cells[start : start + columns] for start in range(0, len(cells), columns)]
    return rows[:MAX_ROWS], has_header


def _cells(text: str) -> tuple[list[str], int]:
    """Return the cells in order, and how many are on the first line."""
    cells: list[str] = []
    first_line = 0
    starts = list(_CELL.finditer(text.replace("\\|", "\0\0")))
    source = text.replace("\\|", "\0\0")
    line_end = source.find("\n", len(source) - len(source.lstrip()))
    for index, start in enumerate(starts):
        end = starts[index + 1].start() if index + 1 < len(starts) else len(source)
        cell = source[start.end() : end].strip().replace("\0\0", "|")
        spec = start[1]
        times = int(spec.partition("*")[0]) if "*" in spec else 1
        span = int(spec.partition("+")[0].partition(".")[0] or 1) if "+" in spec and spec[0] != "." else 1
        added = [cell] * min(times, MAX_COLUMNS) + [""] * (min(span, MAX_COLUMNS) - 1)
        cells += added
        if line_end < 0 or start.start() <= line_end:
            first_line += len(added)
        if len(cells) > MAX_ROWS * 20:
            break
    return cells, first_line


def _column_count(spec: str) -> int:
    if not spec:
        return 0
    count = 0
    for part in re.split(r"[,;]", spec.strip("\"'")):
        times = _COLUMN.match(part.strip())
        count += min(int(times[1]), MAX_COLUMNS) if times else 1
    return count
