"""Paragraphs of office programs as Markdown: runs of words that look alike, lists by level, code by its typeface.

Prose      takes one paragraph after the other and gives the blocks, joined
Run        some words, and how they look
inline     the runs of one paragraph -> a line of Markdown
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
    is_markdown: bool = False  # Markdown already: a picture, the mark of a footnote


def runs_to_text(runs: Iterable[TextRun]) -> str:
    return "".join([run.text for run in runs])


def runs_to_markdown(runs: Sequence[TextRun], *, allow_bold: bool = True) -> str:
    """The runs as Markdown on one line; line breaks in them are hard ones. Without `bold`, none of it is bold."""
    pieces = []
    for href, linked in groupby(runs, key=lambda run: run.href):
        marked = [
            _format_run(runs_to_text(same), look, bold=allow_bold)
            for look, same in groupby(linked, key=lambda run: run[1:])
        ]
        text = "".join(marked)
        if href.lower().startswith(_LINK_SCHEMES) and text.strip():
            lead, core, behind = _split_whitespace(text)
            text = f"{lead}[{core.replace(LINE_BREAK, ' ')}]({escape_link_target(href)}){behind}"
        pieces.append(text)
    lines = [" ".join(line.split()) for line in "".join(pieces).split(LINE_BREAK)]
    return "\\\n".join(filter(None, lines))


def _format_run(text: str, look: tuple[object, ...], *, bold: bool) -> str:
    is_bold, italic, code, _, raw = look
    if raw or not text.strip():
        return text
    lead, core, behind = _split_whitespace(text)
    if code:
        return f"{lead}{code_span(' '.join(core.split()))}{behind}"
    mark = ("**" if is_bold and bold else "") + ("*" if italic else "")
    return f"{lead}{mark}{escape_markdown(core)}{mark[::-1]}{behind}"


def _split_whitespace(text: str) -> tuple[str, str, str]:
    """The blanks before, the words, the blanks behind."""
    core = text.strip()
    at = text.find(core)
    return text[:at], core, text[at + len(core) :]


class OfficeMarkdownWriter:
    """The blocks of a document, as they come."""

    def __init__(self) -> None:
        self._blocks: list[str] = []
        self._joined: list[bool] = []  # whether a block stands right below the one before
        self._margins: list[int] = []  # of the list items that are open
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
        """An item of a list, below the items before it that have a smaller level."""
        if not text:
            return
        self._end_code()
        inside = bool(self._margins)
        del self._margins[level:]
        margin = " " * sum(self._margins)
        self._margins.append(len(mark) + 1)
        text = text.replace(LINE_BREAK, f"{LINE_BREAK}{margin}{' ' * (len(mark) + 1)}")
        self._add(f"{margin}{mark} {text}", joined=inside)

    def add_code_line(self, line: str) -> None:
        """A line of code; those that follow one another are one block."""
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
