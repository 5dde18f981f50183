"""A table of a page: its cells as they come, and the table that Markdown makes of them."""

import re
from typing import Any, Final

from kept.extract.html_words import code_span

_SPAN: Final = re.compile(r' (col|row)span="(\d{1,3})"')
_FENCE: Final = re.compile(r"^(`{3,})[^`\n]*\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)
_HOLDS_BLOCKS: Final = re.compile(r"^(?:```|- |\d+\. |\| |#+ )", re.MULTILINE)
MOST_COLUMNS: Final = 200


class Table:
    """Cells hold blocks of Markdown until it is known whether the table says something or only arranges them."""

    __slots__ = ("_spans", "any_header", "arranges", "caption", "frames", "grid", "headed", "means_it", "out", "rows")

    def __init__(self, out: list[str], frames: list[Any], *, grid: bool = False, means_it: bool = False) -> None:
        self.out = out  # what was being written when it began
        self.frames = frames
        self.arranges = False  # it turned out to be none
        self.grid = grid
        self.means_it = means_it  # a table, whatever it looks like
        self.caption = ""
        self.rows: list[list[str]] = []
        self.headed = False  # its first row is a header
        self.any_header = False
        self._spans: dict[int, int] = {}  # columns that a cell above reaches into, and how far down

    def next_row(self) -> None:
        self.rows.append([])
        self._fill()

    def add(self, blocks: str, attributes: str, *, header: bool) -> None:
        if not self.rows:
            self.rows.append([])
        row = self.rows[-1]
        if header:
            self.any_header = True
            self.headed = self.headed or (len(self.rows) == 1 and not row)
        elif len(self.rows) == 1 and row and not self.grid:
            self.headed = False  # a row that has a name in its first cell is no header
        if "span=" not in attributes and len(row) < MOST_COLUMNS:
            row.append(blocks)
            if self._spans:
                self._fill()
            return
        spans = dict(_SPAN.findall(attributes))
        down = int(spans.get("row", 1))
        for number in range(max(1, int(spans.get("col", 1)))):
            if len(row) >= MOST_COLUMNS:
                break
            if down > 1:
                self._spans[len(row)] = down - 1
            row.append(blocks if number == 0 else "")
        self._fill()

    def _fill(self) -> None:
        row = self.rows[-1]
        while self._spans.get(len(row), 0) > 0:
            self._spans[len(row)] -= 1
            row.append("")

    def only_arranges(self) -> bool:
        """It has no header, and is a single row or column, or holds what no table of Markdown can hold."""
        if self.any_header or self.means_it:
            return False
        rows = [row for row in self.rows if any(row)]
        if len(rows) <= 1 or max(map(len, rows)) <= 1:
            return True
        return any(_HOLDS_BLOCKS.search(cell) for row in rows for cell in row)

    def written(self) -> str:
        return table_of(self.rows, headed=self.headed)


def table_of(rows: list[list[str]], *, headed: bool) -> str:
    """The table that Markdown makes of cells; '' if nothing is in them. Its first row may be its header."""
    rows = [[cell_text(cell) for cell in row] for row in rows if any(row)]
    if not rows:
        return ""
    width = max(map(len, rows))
    header = rows.pop(0) if headed else []
    lines = [_line(header, width), _line(["---"] * width, width), *[_line(row, width) for row in rows]]
    return "\n".join(lines)


def _line(cells: list[str], width: int) -> str:
    if len(cells) < width:
        cells = cells + [""] * (width - len(cells))
    return f"| {' | '.join(cells)} |"


def _code_lines(block: re.Match[str]) -> str:
    return "\n".join(code_span(line) for line in block[2].split("\n") if line.strip())


def cell_text(blocks: str) -> str:
    """Blocks of Markdown on one line, as a cell has to be; code is still code."""
    text = blocks.strip()
    if "```" in text and "\n" in text:
        text = _FENCE.sub(_code_lines, text)
    if "\n" in text:
        first, *between, last = text.split("\n")
        lines = [words for line in between if (words := line.removesuffix("\\").strip())]
        text = "<br>".join([first.removesuffix("\\").rstrip(), *lines, last.lstrip()])
    return text.replace("|", "\\|") if "|" in text else text
