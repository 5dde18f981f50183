"""Paragraphs of office documents as Markdown: formatted runs, lists by level, code by its typeface.

TextRun                 a piece of text with its formatting
runs_to_markdown        the runs of one paragraph -> a line of Markdown
OfficeMarkdownWriter    collects the blocks of a document
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import groupby
from typing import NamedTuple

from kept.extract.html.markdown_text import (
    code_span,
    escape_block_start,
    escape_link_target,
    escape_markdown,
    fenced_code_block,
)

LINE_BREAK = "\n"

_MONOSPACE = re.compile(
    r"courier|consolas|menlo|monaco|lucida console|lucida sans typewriter|inconsolata|fira code|source code|andale|"
    r"cascadia code|hack$|terminal|\bmono\b|mono$|monospace|typewriter",
    re.IGNORECASE,
)
_LINK_SCHEMES = ("http://", "https://", "mailto:", "ftp://")


def is_monospace(typeface: str | None) -> bool:
    return bool(typeface) and _MONOSPACE.search(typeface or "") is not None


class TextRun(NamedTuple):
    text: str
    bold: bool = False
    italic: bool = False
    code: bool = False
    href: str = ""
    is_markdown: bool = False  # already Markdown: an image, a footnote reference


def runs_to_text(runs: Iterable[TextRun]) -> str:
    return "".join([run.text for run in runs])


def runs_to_markdown(runs: Sequence[TextRun], *, allow_bold: bool = True) -> str:
    """Return the runs as one line of Markdown; line breaks in them become hard ones."""
    pieces = []
    for href, linked in groupby(runs, key=lambda run: run.href):
        formatted = [
            _format_run(runs_to_text(same), formatting, bold=allow_bold)
            for formatting, same in groupby(linked, key=lambda run: run[1:])
        ]
        text = "".join(formatted)
        if href.lower().startswith(_LINK_SCHEMES) and text.strip():
            space_before, words, space_after = _split_whitespace(text)
            text = f"{space_before}[{words.replace(LINE_BREAK, ' ')}]({escape_link_target(href)}){space_after}"
        pieces.append(text)
    lines = [" ".join(line.split()) for line in "".join(pieces).split(LINE_BREAK)]
    return "\\\n".join(filter(None, lines))


def _format_run(text: str, formatting: tuple[object, ...], *, bold: bool) -> str:
    is_bold, italic, code, _, is_markdown = formatting
    if is_markdown or not text.strip():
        return text
    space_before, words, space_after = _split_whitespace(text)
    if code:
        return f"{space_before}{code_span(' '.join(words.split()))}{space_after}"
    mark = ("**" if is_bold and bold else "") + ("*" if italic else "")
    return f"{space_before}{mark}{escape_markdown(words)}{mark[::-1]}{space_after}"


def _split_whitespace(text: str) -> tuple[str, str, str]:
    """Return the leading whitespace, the text, and the trailing whitespace."""
    words = text.strip()
    at = text.find(words)
    return text[:at], words, text[at + len(words) :]


class OfficeMarkdownWriter:
    """Collects the blocks of a document in order."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._joined: list[bool] = []  # whether there is no blank line before a block
        self._margins: list[int] = []  # widths of the open list items
        self._code: list[str] = []

    def add_block(self, text: str) -> None:
        self._end_code()
        self._margins.clear()
        self._add(text)

    def add_paragraph(self, text: str) -> None:
        if text:
            self.add_block(escape_block_start(text))

    def add_heading(self, level: int, text: str) -> None:
        if text:
            self.add_block(f"{'#' * min(level, 6)} {text.replace(chr(92) + LINE_BREAK, ' ')}")

    def add_list_item(self, level: int, mark: str, text: str) -> None:
        """Add a list item, below the items before it that have a smaller level."""
        if not text:
            return
        self._end_code()
        in_list = bool(self._margins)
        del self._margins[level:]
        margin = " " * sum(self._margins)
        self._margins.append(len(mark) + 1)
        text = text.replace(LINE_BREAK, f"{LINE_BREAK}{margin}{' ' * (len(mark) + 1)}")
        self._add(f"{margin}{mark} {text}", joined=in_list)

    def add_code_line(self, line: str) -> None:
        """Add a line of code; consecutive ones form one block."""
        self._margins.clear()
        self._code.append(line)

    def to_markdown(self) -> str:
        self._end_code()
        parts = [text if joined else f"\n{text}" for text, joined in zip(self._blocks, self._joined, strict=True)]
        return "\n".join(parts).strip("\n")

    def _end_code(self) -> None:
        text = LINE_BREAK.join(self._code).strip(LINE_BREAK).rstrip()
        self._code.clear()
        if text:
            self._add(fenced_code_block(text, ""))

    def _add(self, text: str, *, joined: bool = False) -> None:
        if text:
            self._blocks.append(text)
            self._joined.append(joined)
