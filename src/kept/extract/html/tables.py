"""An HTML table as rows of cells, and its Markdown."""

import re
from typing import Any, Final

from kept.extract.html.markdown_text import code_span

_SPAN: Final = re.compile(r' (col|row)span="(\d{1,3})"')
_FENCE: Final = re.compile(r"^(`{3,})[^`\n]*\n(.*?)\n\1$", re.DOTALL | re.MULTILINE)
_HOLDS_BLOCKS: Final = re.compile(r"^(?:```|- |\d+\. |\| |#+ )", re.MULTILINE)
MAX_COLUMNS: Final = 200


class HtmlTable:
    """A table being read. Its cells hold Markdown blocks until it is known whether it is data or layout."""

    __slots__ = (
        "_spans",
        "caption",
        "has_header_cell",
        "has_header_row",
        "is_data_table",
        "is_grid",
        "is_layout",
        "outer_containers",
        "outer_output",
        "rows",
    )

    def __init__(
        self, output: list[str], containers: list[Any], *, is_grid: bool = False, is_data_table: bool = False
    ) -> None:
        self.outer_output = output  # the writer's state when the table began
        self.outer_containers = containers
        self.is_layout = False  # it turned out to be no data table
        self.is_grid = is_grid
        self.is_data_table = is_data_table  # marked as data by its class
        self.caption = ""
        self.rows: list[list[str]] = []
        self.has_header_row = False
        self.has_header_cell = False
        self._spans: dict[int, int] = {}  # column -> rows below that a cell with rowspan still covers

    def next_row(self) -> None:
        self.rows.append([])
        self._fill_spanned_cells()

    def add(self, blocks: str, attributes: str, *, header: bool) -> None:
        if not self.rows:
            self.rows.append([])
        row = self.rows[-1]
        if header:
            self.has_header_cell = True
            self.has_header_row = self.has_header_row or (len(self.rows) == 1 and not row)
        elif len(self.rows) == 1 and row and not self.is_grid:
            self.has_header_row = False  # only its first cell is a <th>: it names the row
        if "span=" not in attributes and len(row) < MAX_COLUMNS:
            row.append(blocks)
            if self._spans:
                self._fill_spanned_cells()
            return
        spans = dict(_SPAN.findall(attributes))
        down = int(spans.get("row", 1))
        for number in range(max(1, int(spans.get("col", 1)))):
            if len(row) >= MAX_COLUMNS:
                break
            if down > 1:
                self._spans[len(row)] = down - 1
            row.append(blocks if number == 0 else "")
        self._fill_spanned_cells()

    def _fill_spanned_cells(self) -> None:
        row = self.rows[-1]
        while self._spans.get(len(row), 0) > 0:
            self._spans[len(row)] -= 1
            row.append("")

    def looks_like_layout(self) -> bool:
        """Return whether it has no header and is a single row or column, or holds blocks that no Markdown table can."""
        if self.has_header_cell or self.is_data_table:
            return False
        rows = [row for row in self.rows if any(row)]
        if len(rows) <= 1 or max(map(len, rows)) <= 1:
            return True
        return any(_HOLDS_BLOCKS.search(cell) for row in rows for cell in row)

    def to_markdown(self) -> str:
        return markdown_table(self.rows, has_header_row=self.has_header_row)


def markdown_table(rows: list[list[str]], *, has_header_row: bool) -> str:
    """Return a Markdown table; '' if all cells are empty."""
    rows = [[cell_to_line(cell) for cell in row] for row in rows if any(row)]
    if not rows:
        return ""
    width = max(map(len, rows))
    header = rows.pop(0) if has_header_row else []
    lines = [_table_row(header, width), _table_row(["---"] * width, width), *[_table_row(row, width) for row in rows]]
    return "\n".join(lines)


def _table_row(cells: list[str], width: int) -> str:
    if len(cells) < width:
        cells = cells + [""] * (width - len(cells))
    return f"| {' | '.join(cells)} |"


def _fence_to_code_spans(block: re.Match[str]) -> str:
    return "\n".join(code_span(line) for line in block[2].split("\n") if line.strip())


def cell_to_line(blocks: str) -> str:
    """Join Markdown blocks on one line, as a cell requires; code blocks become code spans."""
    text = blocks.strip()
    if "```" in text and "\n" in text:
        text = _FENCE.sub(_fence_to_code_spans, text)
    if "\n" in text:
        first, *between, last = text.split("\n")
        lines = [words for line in between if (words := line.removesuffix("\\").strip())]
        text = "<br>".join([first.removesuffix("\\").rstrip(), *lines, last.lstrip()])
    return text.replace("|", "\\|") if "|" in text else text
