"""The blocks of a Markdown text, and the cost of splitting it between them.

An approximation of CommonMark, much faster than parsing it: where the two disagree, a section is split at an odd place,
and nothing is lost.
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
    """The cost of a cut before a block: what it separates. The smallest in reach is chosen."""

    BETWEEN_BLOCKS = 0
    BETWEEN_ITEMS = 1
    INSIDE_ITEM = 2  # paragraphs of one list item or quotation
    AFTER_HEADING = 3  # a heading from the text under it


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
    """A line as quotation marks, indentation in columns, list markers and text."""

    __slots__ = ("can_interrupt_paragraph", "column", "indent", "item_columns", "quote", "text")

    def __init__(self, line: str) -> None:
        self.quote = ""
        self.text = line.lstrip(" \t")
        if self.text.startswith(">") and (quote := _QUOTE_MARKS.match(line)):
            self.quote = quote[0]
            line = line[len(self.quote) :]
            self.text = line.lstrip(" \t")
        self.indent = self.column = _width_in_columns(line[: len(line) - len(self.text)])
        self.item_columns: list[int] = []  # the column of the text of each item
        self.can_interrupt_paragraph = True  # a numbered list can only if it begins with 1
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
    """Yield the blocks of a text in order; only blank lines are between them."""
    start = end = 0
    split_cost, kind = SplitCost.BETWEEN_BLOCKS, BlockKind.TEXT
    items: list[int] = []  # the list items around this line, by the column of their text
    quotes = 0  # number of quotations around it
    in_list = False  # the last block at top level was a list item
    is_separate = True  # this line does not continue the block before
    is_code = False  # the block is indented code, which may contain blank lines
    is_heading = False  # the block is a heading
    until: _Fence | str | None = None  # the end of a block that may contain blank lines

    line_end = -1
    while line_end < len(text):
        line_start = line_end + 1
        line_end = text.find("\n", line_start)
        if line_end < 0:
            line_end = len(text)
        if until is not None:
            line_text = text[line_start:line_end]
            is_inside, is_end = (
                until.check_line(line_text) if isinstance(until, _Fence) else (True, until in line_text.lower())
            )
            if is_inside:
                end = line_end
            if is_end:
                until, is_separate = None, True
            if is_inside:
                continue

        if (
            not is_separate
            and kind is BlockKind.TEXT
            and text[line_start : line_start + 1].isalpha()
            and text.find("|", line_start, line_end) < 0
        ):
            end = line_end  # the paragraph goes on, as on most lines
            continue

        line = MarkdownLine(text[line_start:line_end])
        quote_count = line.quote.count(">")
        if not line.text and not line.item_columns:
            is_separate = True
            quotes = min(quote_count, quotes)
            continue

        in_same_quote = 0 < quote_count == quotes
        if quote_count > quotes or (is_separate and quote_count < quotes):
            items.clear()
            is_separate = True
        if is_separate:
            quotes = quote_count

        was_in_item = bool(items)
        if is_separate or line.item_columns:
            while items and line.indent < items[-1]:
                items.pop()
        deeper = line.indent - (items[-1] if items else 0)
        is_item = (
            bool(line.item_columns) and deeper < 4 and (is_separate or was_in_item or line.can_interrupt_paragraph)
        )
        if is_separate and deeper >= 4 and is_code and in_same_quote == bool(quote_count):
            end = line_end
            is_separate = False
            continue

        first = line.text[:1]  # tested before any pattern: most lines begin with a letter, and are none of these
        fence = FENCE_START.match(line.text) if first in ("`", "~") and (deeper < 4 or in_list) else None
        starts_heading = first == "#" and deeper < 4 and not line.item_columns and _HEADING.match(line.text) is not None
        starts_table = kind is not BlockKind.TABLE and "|" in line.text and _is_table_rule(text, line_end)
        starts_pre = first == "<" and line.text[:4].lower() == "<pre"
        if is_separate or is_item or fence or starts_heading or starts_table or starts_pre:
            if end:
                yield Block(start, end, split_cost, kind)
            start = line_start
            if is_heading:
                split_cost = SplitCost.AFTER_HEADING
            elif items or in_same_quote:
                split_cost = SplitCost.INSIDE_ITEM
            else:
                split_cost = SplitCost.BETWEEN_ITEMS if is_item and in_list else SplitCost.BETWEEN_BLOCKS
                in_list = is_item
            kind = BlockKind.FENCE if fence else BlockKind.TABLE if starts_table else BlockKind.TEXT
            is_code = is_separate and deeper >= 4
            is_heading = starts_heading
            if is_item:
                items += line.item_columns
            if fence:
                until = _Fence(mark=fence[1] or fence[2], quotes=quote_count, column=items[-1] if items else 0)
            elif starts_pre and "</pre" not in line.text.lower():
                until = "</pre"
        elif kind is BlockKind.TEXT and first in ("=", "-") and _UNDERLINE.match(line.text):
            is_heading = True
        end = line_end
        is_separate = is_heading
    if end:
        yield Block(start, end, split_cost, kind)


def _is_table_rule(text: str, end_of_line: int) -> bool:
    """Return whether the next line is the delimiter row of a table: |---|---|"""
    stop = text.find("\n", end_of_line + 1)
    following = text[end_of_line + 1 : stop if stop >= 0 else len(text)]
    return following[:1] in " \t|:->" and _TABLE_RULE.match(MarkdownLine(following).text) is not None


class _Fence(NamedTuple):
    mark: str
    quotes: int
    column: int  # of the text of the list item around it

    def check_line(self, line: str) -> tuple[bool, bool]:
        """Return whether this line is part of the code block, and whether the block ends here."""
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
