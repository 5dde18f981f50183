"""Marks of places in text that is being written.

A place goes through paragraphs, cells and tables as a mark in their text: a number between two control characters,
which the reader has removed from the page before. Once a section is written, its marks are taken out.
"""

from __future__ import annotations

import re
from typing import Final

MARK_START: Final = "\x01"
MARK_END: Final = "\x02"

_LEADING: Final = re.compile(r"(?:\x01\d+\x02)+")
_BETWEEN_BLANKS: Final = re.compile(r"(?:(?<= )|^)((?:\x01\d+\x02)+) ")
_BEFORE_INDENT: Final = re.compile(r"^((?:\x01\d+\x02)+)([ \t]+)", re.MULTILINE)
_ALL: Final = re.compile(r"\x01(\d+)\x02")


def place_mark(number: int) -> str:
    return f"{MARK_START}{number}{MARK_END}"


def remove_control_characters(html: str) -> str:
    """Return a page without characters that would be taken for marks. They are no text."""
    return html.replace(MARK_START, "").replace(MARK_END, "")


def split_leading_marks(text: str) -> tuple[str, str]:
    """Return the marks that a text begins with, and the text behind them."""
    found = _LEADING.match(text)
    return (found[0], text[found.end() :]) if found else ("", text)


def split_outer_marks(text: str) -> tuple[str, str, str]:
    """Return the marks before a paragraph, the paragraph with the blanks it has without its marks, those behind it."""
    leading, text = split_leading_marks(_BETWEEN_BLANKS.sub(r"\1", text))
    end = len(text)
    while text.endswith(MARK_END, 0, end):
        end = text.rfind(MARK_START, 0, end)
    return leading, text[:end].rstrip(), text[end:]


def tidy_code_marks(text: str) -> str:
    """Return code with the marks behind the margin of their lines, and none before the first line."""
    marks, rest = split_leading_marks(text)
    return _BEFORE_INDENT.sub(r"\2\1", marks + rest.lstrip("\n") if marks else text)


def put_marks(block: str, marks: str) -> str:
    """Return a block with marks at the begin of its text: behind the signs that say that it is code or a table."""
    if block.startswith("```"):
        line, end, rest = block.partition("\n")
        return f"{line}{end}{marks}{rest}"
    return f"| {marks}{block[2:]}" if block.startswith("| ") else marks + block


def mark_numbers(text: str) -> list[int]:
    return [int(number) for number in _ALL.findall(text)]


def take_place_marks(text: str) -> tuple[str, list[tuple[int, int]]]:
    """Return a text without its marks, and the number and position of each."""
    first, *others = text.split(MARK_START)
    pieces, marks, length = [first], [], len(first)
    for piece in others:
        number, _, rest = piece.partition(MARK_END)
        marks.append((int(number), length))
        pieces.append(rest)
        length += len(rest)
    return "".join(pieces), marks
