"""Files that a page includes: the part of them that its options select, or a mark where they are not at hand.

A page sees only the files that it was given with (`kept.model.companions`); no file is opened here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from textwrap import dedent
from typing import Any, Final

from docutils import nodes

from kept.extract.rst.names import find_includes
from kept.extract.rst.page import Page

MAX_LINE_LENGTH: Final = 20_000
"""Characters. A longer line is data; docutils takes time quadratic in it."""

MAX_INCLUDED_CHARACTERS: Final = 2_000_000
"""Characters that the inclusions of a page may add to it, also where a file includes itself."""

INCLUSION_COST: Final = 10_000  # characters that each inclusion counts for at least

LANGUAGES: Final = {
    "py": "python", "pyi": "python", "c": "c", "h": "c", "cpp": "cpp", "cc": "cpp", "hpp": "cpp", "js": "javascript",
    "ts": "typescript", "json": "json", "yaml": "yaml", "yml": "yaml", "toml": "toml", "ini": "ini", "cfg": "ini",
    "sh": "sh", "bash": "bash", "sql": "sql", "html": "html", "xml": "xml", "css": "css", "rs": "rust", "go": "go",
    "java": "java", "rb": "ruby", "diff": "diff", "rst": "rst", "md": "markdown", "cmake": "cmake", "conf": "",
}  # fmt: skip


def missing_file(name: str) -> nodes.Node:
    """Return a mark that stands for a file that is not at hand."""
    return nodes.paragraph("", "", nodes.emphasis("", f"(The file {name} belongs here.)"))


def included_text(page: Page, name: str, options: Mapping[str, Any]) -> str | None:
    """Return the selected part of an included file; None if it is not at hand, is no text, or would be too much."""
    body = page.files.get(name)
    if body is None or b"\0" in body or (name in page.included and _includes_itself(page, name)):
        return None
    page.included.add(name)
    text = body.decode("utf-8", "replace").replace("\r\n", "\n").replace("\0", "")
    text = _select(text, options)
    page.included_characters += len(text) + INCLUSION_COST
    return text if page.included_characters <= MAX_INCLUDED_CHARACTERS else None


def _includes_itself(page: Page, name: str) -> bool:
    """Return whether a file would be inside itself, perhaps through others."""
    seen: set[str] = set()
    pending = [name]
    while pending:
        body = page.files.get(pending.pop(), b"")
        inner = {found for found, is_markup in find_includes(body.decode("utf-8", "replace")) if is_markup} - seen
        if name in inner:
            return True
        seen |= inner
        pending += inner
    return False


def _select(text: str, options: Mapping[str, Any]) -> str:
    """Apply the options of `include` and `literalinclude` that choose lines."""
    lines = text.expandtabs(8).split("\n")
    if name := options.get("pyobject"):
        lines = _python_object(lines, name.split("."))
    if chosen := options.get("lines"):
        wanted = _line_numbers(chosen, len(lines))
        lines = [line for number, line in enumerate(lines, 1) if number in wanted]
    start, end = options.get("start-line", ""), options.get("end-line", "")
    if _is_number(start) or _is_number(end):
        lines = lines[int(start) if _is_number(start) else None : int(end) if _is_number(end) else None]
    text = "\n".join(lines)
    # literalinclude looks for lines that hold a text, include for the text itself.
    if (mark := options.get("start-after")) and mark in text:
        text = text.partition(mark)[2].partition("\n")[2]
    if (mark := options.get("start-at")) and mark in text:
        text = text[text.rfind("\n", 0, text.find(mark)) + 1 :]
    if (mark := options.get("end-before")) and mark in text:
        text = text[: text.rfind("\n", 0, text.find(mark)) + 1]
    if (mark := options.get("end-at")) and mark in text:
        head, _, tail = text.partition(mark)
        text = head + mark + tail.partition("\n")[0]
    return dedent(text) if "dedent" in options else text.strip("\n")


def _is_number(value: str) -> bool:
    return value.lstrip("-").isdecimal()


def _line_numbers(chosen: str, count: int) -> set[int]:
    numbers: set[int] = set()
    for part in chosen.split(","):
        first, dash, last = part.strip().partition("-")
        begin = int(first) if first.isdecimal() else 1
        end = (int(last) if last.isdecimal() else count) if dash else begin
        numbers.update(range(begin, min(end, count) + 1))
    return numbers


def _python_object(lines: list[str], path: list[str]) -> list[str]:
    """Return the lines of a class or function, found by its indentation."""
    for name in path:
        pattern = re.compile(rf"([ \t]*)(?:async[ ]+)?(?:def|class)[ ]+{re.escape(name)}\b")
        begin = next((number for number, line in enumerate(lines) if pattern.match(line)), None)
        if begin is None:
            return lines
        indent = len(lines[begin]) - len(lines[begin].lstrip())
        end = begin + 1
        while end < len(lines) and (not lines[end].strip() or len(lines[end]) - len(lines[end].lstrip()) > indent):
            end += 1
        while begin and lines[begin - 1].lstrip().startswith("@"):
            begin -= 1
        lines = lines[begin:end]
    return lines
