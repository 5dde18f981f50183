"""The blocks of a Markdown text, and what a cut between two of them would part.

Near enough to CommonMark to know where not to cut, and much cheaper than parsing it: where the two disagree, a part
ends in an odd place, and nothing is lost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum, IntEnum, auto
from typing import Final, NamedTuple


class BlockKind(Enum):
    TEXT = auto()
    FENCE = auto()
    TABLE = auto()


class SplitCost(IntEnum):
    """What a cut before a block would part; the smallest in reach wins."""

    BETWEEN_BLOCKS = 0
    BETWEEN_ITEMS = 1
    INSIDE_ITEM = 2  # paragraphs of one list item or quotation
    AFTER_HEADING = 3  # a heading from what stands under it


class Block(NamedTuple):
    start: int
    end: int
    split_cost: SplitCost
    kind: BlockKind


_QUOTE_MARKS: Final = re.compile(r"(?: {0,3}> ?)++")
_QUOTE_MARK: Final = re.compile(r" {0,3}> ?")
_LIST_MARKER: Final = re.compile(r"(?:[-*+]|([0-9]{1,9})[.)])(?:[ \t]{1,4}(?![ \t])|[ \t]|$)")
FENCE_START: Final = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING: Final = re.compile(r"#{1,6}(?:[ \t]|$)")
_UNDERLINE: Final = re.compile(r"(?:=+|-+)[ \t]*$")
_TABLE_RULE: Final = re.compile(r"[|:\- \t]*-[|:\- \t]*$")
_LIST_MARKER_STARTS: Final = ("-", "*", "+", "0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_MAX_NESTED_ITEMS: Final = 20  # list markers on one line


class MarkdownLine:
    """One line, taken apart: quotation marks, indentation in columns, list markers, words."""

    __slots__ = ("can_interrupt_paragraph", "column", "indent", "item_columns", "quote", "text")

    def __init__(self, line: str) -> None:
        self.quote = ""
        self.text = line.lstrip(" \t")
        if self.text.startswith(">") and (quote := _QUOTE_MARKS.match(line)):
            self.quote = quote[0]
            line = line[len(self.quote) :]
            self.text = line.lstrip(" \t")
        self.indent = self.column = _width_in_columns(line[: len(line) - len(self.text)])
        self.item_columns: list[int] = []  # the column where the words of each item begin
        self.can_interrupt_paragraph = True  # only a list that begins with 1 can begin in the middle of a paragraph
        while (
            self.text.startswith(_LIST_MARKER_STARTS)
            and len(self.item_columns) < _MAX_NESTED_ITEMS
            and (item := _LIST_MARKER.match(self.text))
        ):
            self.can_interrupt_paragraph &= item[1] in (None, "1")
            self.text = self.text[item.end() :]
            self.column += _width_in_columns(item[0])
            self.item_columns.append(self.column)


def _width_in_columns(margin: str) -> int:
    return len(margin.expandtabs(4)) if "\t" in margin else len(margin)


def iter_blocks(text: str) -> Iterator[Block]:
    """The blocks of a text in their order; between them there are only blank lines."""
    start = end = 0
    pause, kind = SplitCost.BETWEEN_BLOCKS, BlockKind.TEXT
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
            inside, ends = until.check_line(raw) if isinstance(until, _Fence) else (True, until in raw.lower())
            if inside:
                end = upto
            if ends:
                until, apart = None, True
            if inside:
                continue

        if not apart and kind is BlockKind.TEXT and text[at : at + 1].isalpha() and text.find("|", at, upto) < 0:
            end = upto  # the paragraph goes on, as on most lines
            continue

        line = MarkdownLine(text[at:upto])
        marks = line.quote.count(">")
        if not line.text and not line.item_columns:
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
        if apart or line.item_columns:
            while items and line.indent < items[-1]:
                items.pop()
        deeper = line.indent - (items[-1] if items else 0)
        is_item = bool(line.item_columns) and deeper < 4 and (apart or in_list or line.can_interrupt_paragraph)
        if apart and deeper >= 4 and code and joined == bool(marks):
            end = upto
            apart = False
            continue

        first = line.text[:1]  # asked before any pattern: most lines begin with a letter, and are none of these
        fence = FENCE_START.match(line.text) if first in ("`", "~") and (deeper < 4 or listing) else None
        titled = first == "#" and deeper < 4 and not line.item_columns and _HEADING.match(line.text) is not None
        table = kind is not BlockKind.TABLE and "|" in line.text and _is_table_rule(text, upto)
        boxed = first == "<" and line.text[:4].lower() == "<pre"
        if apart or is_item or fence or titled or table or boxed:
            if end:
                yield Block(start, end, pause, kind)
            start = at
            if heading:
                pause = SplitCost.AFTER_HEADING
            elif items or joined:
                pause = SplitCost.INSIDE_ITEM
            else:
                pause = SplitCost.BETWEEN_ITEMS if is_item and listing else SplitCost.BETWEEN_BLOCKS
                listing = is_item
            kind = BlockKind.FENCE if fence else BlockKind.TABLE if table else BlockKind.TEXT
            code = apart and deeper >= 4
            heading = titled
            if is_item:
                items += line.item_columns
            if fence:
                until = _Fence(mark=fence[1] or fence[2], quotes=marks, column=items[-1] if items else 0)
            elif boxed and "</pre" not in line.text.lower():
                until = "</pre"
        elif kind is BlockKind.TEXT and first in ("=", "-") and _UNDERLINE.match(line.text):
            heading = True
        end = upto
        apart = heading
    if end:
        yield Block(start, end, pause, kind)


def _is_table_rule(text: str, end_of_line: int) -> bool:
    """Whether the line after this one is what makes a table of it: |---|---|"""
    stop = text.find("\n", end_of_line + 1)
    following = text[end_of_line + 1 : stop if stop >= 0 else len(text)]
    return following[:1] in " \t|:->" and _TABLE_RULE.match(MarkdownLine(following).text) is not None


class _Fence(NamedTuple):
    mark: str
    quotes: int
    column: int  # of the words of the list item around it

    def check_line(self, line: str) -> tuple[bool, bool]:
        """Whether this line is still part of the code block, and whether the block ends here."""
        if not self.quotes and not self.column and self.mark not in line:  # as on most lines
            return True, False
        at = 0
        for _ in range(self.quotes):
            quote = _QUOTE_MARK.match(line, at)
            if not quote:
                return False, True
            at = quote.end()
        words = line[at:].lstrip(" \t")
        indent = _width_in_columns(line[at : len(line) - len(words)])
        if words and indent < self.column:
            return False, True
        return True, closes_fence(words, self.mark)


def closes_fence(words: str, mark: str) -> bool:
    words = words.rstrip()
    return len(words) >= len(mark) and not words.strip(mark[0])
