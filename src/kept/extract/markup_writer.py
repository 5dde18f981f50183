"""Collect the blocks of a page that was written in a markup language as Markdown, with its sections.

    MarkupWriter    headings, named entries, paragraphs, code, lists and tables in; an Extraction out
    AnchorNames     anchors of one page, each given out once

Readers of source formats (man pages, AsciiDoc and others) walk through a page once and call the writer; it joins the
blocks, puts the prefixes of lists and quotations before their lines, and cuts the text at headings. Text of paragraphs
and headings is Markdown already.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from kept.extract.html.markdown_text import escape_block_start, fenced_code_block
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, build_section_tree

MAX_LIST_NESTING: Final = 20
"""Levels of lists in lists. Deeper ones are written at this level."""

MAX_CELL_LENGTH: Final = 2_000
_BLANK_PREFIXED_LINE = re.compile(r"\n +(?=\n)")


class AnchorNames:
    """Gives out the anchors of one page, each once: the second "files" is "files" + separator + "2"."""

    def __init__(self, separator: str = "_") -> None:
        self._separator = separator
        self._counts: dict[str, int] = {}

    def unique(self, anchor: str) -> str:
        count = self._counts[anchor] = self._counts.get(anchor, 0) + 1
        if count == 1:
            return anchor
        return self.unique(f"{anchor}{self._separator}{count}")


class _OpenPrefix:
    """A list item or a quotation that is open: what goes before its first line and before all others."""

    __slots__ = ("first", "is_item", "is_started", "rest")

    def __init__(self, first: str, rest: str, *, is_item: bool) -> None:
        self.first = first
        self.rest = rest
        self.is_item = is_item
        self.is_started = False


class MarkupWriter:
    """Collects blocks in page order."""

    def __init__(self) -> None:
        self.hrefs: list[str] = []
        self._output: list[str] = []
        self._sections: list[tuple[str, int, str | None, int]] = []  # heading, level, anchor, start in the output
        self._prefixes: list[_OpenPrefix] = []
        self._owners: list[tuple[str, int, str | None]] = [("", 0, None)]  # the last heading, and the open entries
        self._must_resume = False
        self._after_item = False  # the last block was the first one of a list item

    @property
    def depth(self) -> int:
        """Return how many lists and quotations are open."""
        return len(self._prefixes)

    @property
    def is_empty(self) -> bool:
        return not self._output

    def add_heading(self, level: int, markdown: str, *, text: str, anchor: str | None) -> None:
        """Begin a section. Lists and quotations around it end."""
        level = max(1, min(level, 6))
        text = text[:MAX_HEADING_LENGTH]
        self._owners = [(text, level, anchor)]
        self._begin_section(text, level, anchor, markdown)

    def add_entry(self, markdown: str, *, text: str, anchor: str | None) -> None:
        """Begin the section of a named thing (an option, a function) below the last heading or the open entry."""
        entry = (text[:MAX_HEADING_LENGTH], min(self._owners[-1][1] + 1, 6), anchor)
        self._owners.append(entry)
        self._begin_section(*entry, markdown)

    def end_entry(self) -> None:
        """Let the text that follows belong to the heading or entry around the last one again."""
        if len(self._owners) > 1:
            self._owners.pop()
            self._must_resume = True

    def add_paragraph(self, markdown: str) -> None:
        if markdown:
            self.add_block(escape_block_start(markdown))

    def add_code(self, text: str, language: str = "") -> None:
        text = text.strip("\n").rstrip()
        if text:
            self.add_block(fenced_code_block(text, language))

    def add_table(self, rows: Sequence[Sequence[str]], *, has_header: bool = True) -> None:
        """Add a table; without a header row its header is empty."""
        width = max(map(len, rows), default=0)
        if not width:
            return
        lines = [f"| {' | '.join([*map(_cell_text, row), *[''] * (width - len(row))])} |" for row in rows]
        if not has_header:
            lines.insert(0, f"|{'  |' * width}")
        lines.insert(1, f"|{' --- |' * width}")
        self.add_block("\n".join(lines))

    def open_item(self, mark: str = "-") -> None:
        """Begin a list item."""
        self._open(f"{mark} ", " " * (len(mark) + 1), is_item=True)

    def open_quote(self) -> None:
        self._open("> ", "> ", is_item=False)

    def close_to(self, depth: int) -> None:
        """End the lists and quotations that were opened after the first `depth`."""
        del self._prefixes[depth:]

    def add_block(self, block: str) -> None:
        """Add Markdown behind the prefixes of the lists and quotations around it."""
        if self._must_resume:
            self._must_resume = False
            self._sections.append((*self._owners[-1], len(self._output)))
        first = rest = between = ""
        starts_item = False
        for prefix in self._prefixes:
            if prefix.is_started:
                first += prefix.rest
                between = first
            else:
                first += prefix.first
                prefix.is_started = True
                starts_item = prefix.is_item
            rest += prefix.rest
        if self._output:
            self._output.append("\n" if starts_item and self._after_item else f"\n{between.rstrip()}\n")
        self._after_item = starts_item
        if rest and "\n" in block:
            block = _BLANK_PREFIXED_LINE.sub("\n", block.replace("\n", f"\n{rest}"))
        self._output.append(first + block)

    def to_extraction(self, title: str) -> Extraction:
        """Return the page. Without a title it is the first heading."""
        output, sections = self._output, self._sections
        starts = [start for *_, start in sections]
        ends = [*starts[1:], len(output)]
        nodes = [
            SectionNode(heading=heading, level=level, anchor=anchor, content="".join(output[start:end]).strip("\n"))
            for (heading, level, anchor, start), end in zip(sections, ends, strict=False)
        ]
        intro = "".join(output[: starts[0]] if starts else output).strip("\n")
        return Extraction(
            title=(title or (nodes[0].heading if nodes else ""))[:MAX_HEADING_LENGTH],
            markdown="".join(output).strip("\n"),
            tree=build_section_tree(nodes, intro=intro),
            hrefs=list(dict.fromkeys(self.hrefs)),
        )

    def _begin_section(self, text: str, level: int, anchor: str | None, markdown: str) -> None:
        self._prefixes.clear()
        self._must_resume = False
        self._sections.append((text, level, anchor, len(self._output)))
        self.add_block(f"{'#' * level} {markdown}")

    def _open(self, first: str, rest: str, *, is_item: bool) -> None:
        if len(self._prefixes) < MAX_LIST_NESTING:
            self._prefixes.append(_OpenPrefix(first, rest, is_item=is_item))


def _cell_text(cell: str) -> str:
    return " ".join(cell[:MAX_CELL_LENGTH].replace("\\|", "|").replace("|", "\\|").split())
