"""The blocks of a Markdown text, and what a cut between two of them would part.

Near enough to CommonMark to know where not to cut, and much cheaper than parsing it: where the two disagree, a part
ends in an odd place, and nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple


class Kind(Enum):
    TEXT = auto()
    FENCE = auto()
    TABLE = auto()


class Pause(IntEnum):
    """What a cut before a block would part; the smallest in reach wins."""

    BLOCKS = 0
    ITEMS = 1
    INNER = 2  # paragraphs of one list item or quotation
    HEADING = 3  # a heading from what stands under it


class Block(NamedTuple):
    start: int
    end: int
    pause: Pause
    kind: Kind


_QUOTE: Final = re.compile(r"(?: {0,3}> ?)++")
_ONE_QUOTE: Final = re.compile(r" {0,3}> ?")
_ITEM: Final = re.compile(r"(?:[-*+]|([0-9]{1,9})[.)])(?:[ \t]{1,4}(?![ \t])|[ \t]|$)")
FENCE_OPENS: Final = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*$")
_TABLE_RULE: Final = re.compile(r"[|:\- \t]*-[|:\- \t]*$")
_MARKERS: Final = ("-", "*", "+", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_DEEPEST: Final = 20  # list markers on one line


class Line:
    """One line, taken apart: quotation marks, indentation in columns, list markers, words."""

    __slots__ = ("column", "indent", "interrupts", "items", "quote", "words")

    def __init__(self, line: str) -> None:
        self.quote = ""
        self.words = line.lstrip(" \t")
        if self.words.startswith(">") and (quote := _QUOTE.match(line)):
            self.quote = quote[0]
            line = line[len(self.quote) :]
            self.words = line.lstrip(" \t")
        self.indent = self.column = _columns(line[: len(line) - len(self.words)])
        self.items: list[int] = []  # the column where the words of each item begin
        self.interrupts = True  # only a list that begins with 1 can begin in the middle of a paragraph
        while self.words.startswith(_MARKERS) and len(self.items) < _DEEPEST and (item := _ITEM.match(self.words)):
            self.interrupts &= item[1] in (None, "1")
            self.words = self.words[item.end() :]
            self.column += _columns(item[0])
            self.items.append(self.column)


def _columns(margin: str) -> int:
    return len(margin.expandtabs(4)) if "\t" in margin else len(margin)


def blocks_of(text: str) -> Iterator[Block]:
    """The blocks of a text in their order; between them there are only blank lines."""
    start = end = 0
    pause, kind = Pause.BLOCKS, Kind.TEXT
    items: list[int] = []  # the list items around this line, by the column where their words begin
    quotes = 0  # the quotations around it
    listing = False  # the last block outside all of them was a list item
    apart = True  # nothing joins this line to the one before
    code = False  # the block is indented code, which may have blank lines inside
    heading = False  # the block is a heading
    until: _Fence | str | None = None  # what ends the block, when blank lines do not

    upto = -1
    while upto < len(text):
        at = upto + 1
        upto = text.find("\n", at)
        if upto < 0:
            upto = len(text)
        if until is not None:
            raw = text[at:upto]
            inside, ends = until.meets(raw) if isinstance(until, _Fence) else (True, until in raw.lower())
            if inside:
                end = upto
            if ends:
                until, apart = None, True
            if inside:
                continue

        if not apart and kind is Kind.TEXT and text[at : at + 1].isalpha() and text.find("|", at, upto) < 0:
            end = upto  # the paragraph goes on, as on most lines
            continue

        line = Line(text[at:upto])
        marks = line.quote.count(">")
        if not line.words and not line.items:
            apart = True
            quotes = min(marks, quotes)
            continue

        joined = 0 < marks == quotes
        if marks > quotes or (apart and marks < quotes):
            items.clear()
            apart = True
        if apart:
            quotes = marks

        in_list = bool(items)
        if apart or line.items:
            while items and line.indent < items[-1]:
                items.pop()
        deeper = line.indent - (items[-1] if items else 0)
        is_item = bool(line.items) and deeper < 4 and (apart or in_list or line.interrupts)
        if apart and deeper >= 4 and code and joined == bool(marks):
            end = upto
            apart = False
            continue

        first = line.words[:1]  # asked before any pattern: most lines begin with a letter, and are none of these
        fence = FENCE_OPENS.match(line.words) if first in ("`", "~") and (deeper < 4 or listing) else None
        titled = first == "#" and deeper < 4 and not line.items and _HEADING.match(line.words) is not None
        table = kind is not Kind.TABLE and "|" in line.words and _is_table_rule(text, upto)
        boxed = first == "<" and line.words[:4].lower() == "<pre"
        if apart or is_item or fence or titled or table or boxed:
            if end:
                yield Block(start, end, pause, kind)
            start = at
            if heading:
                pause = Pause.HEADING
            elif items or joined:
                pause = Pause.INNER
            else:
                pause = Pause.ITEMS if is_item and listing else Pause.BLOCKS
                listing = is_item
            kind = Kind.FENCE if fence else Kind.TABLE if table else Kind.TEXT
            code = apart and deeper >= 4
            heading = titled
            if is_item:
                items += line.items
            if fence:
                until = _Fence(mark=fence[1] or fence[2], quotes=marks, column=items[-1] if items else 0)
            elif boxed and "</pre" not in line.words.lower():
                until = "</pre"
        elif kind is Kind.TEXT and first in ("=", "-") and _UNDERLINE.match(line.words):
            heading = True
        end = upto
        apart = heading
    if end:
        yield Block(start, end, pause, kind)


def _is_table_rule(text: str, end_of_line: int) -> bool:
    """Whether the line after this one is what makes a table of it: |---|---|"""
    stop = text.find("\n", end_of_line + 1)
    following = text[end_of_line + 1 : stop if stop >= 0 else len(text)]
    return following[:1] in " \t|:->" and _TABLE_RULE.match(Line(following).words) is not None


class _Fence(NamedTuple):
    mark: str
    quotes: int
    column: int  # of the words of the list item around it

    def meets(self, line: str) -> tuple[bool, bool]:
        """Whether this line is still part of the code block, and whether the block ends here."""
        if not self.quotes and not self.column and self.mark not in line:  # as on most lines
            return True, False
        at = 0
        for _ in range(self.quotes):
            quote = _ONE_QUOTE.match(line, at)
            if not quote:
                return False, True
            at = quote.end()
        words = line[at:].lstrip(" \t")
        indent = _columns(line[at : len(line) - len(words)])
        if words and indent < self.column:
            return False, True
        return True, closes(words, self.mark)


def closes(words: str, mark: str) -> bool:
    words = words.rstrip()
    return len(words) >= len(mark) and not words.strip(mark[0])
