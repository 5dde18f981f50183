"""What the styles of a Word document say: which paragraphs are headings, lists, code; and how lists are numbered.

The ids of styles are in the language of whoever made the document ("berschrift1"); the names of those that Word brings
along are English in every language ("heading 1").
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element

from kept.extract.office.office_markdown import is_monospace

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VAL = f"{_W}val"
_HEADING = re.compile(r"heading ([1-9])$")
_TABLE_OF_CONTENTS = re.compile(r"(?:toc \d|toc heading|table of (?:figures|contents).*)$")
_CODE = re.compile(r"\b(?:(?:source ?)?code|preformatted|verbatim|listing|macro)\b")
_INDENTED_LIST = re.compile(r"list (?:bullet|number) ([2-5])$")  # lists of their own that look like lists in lists
_MAX_STYLE_CHAIN = 20  # styles based on styles; they may be based on each other
_OFF_VALUES = ("0", "false", "off", "none")


def property_value(about: Element | None, path: str) -> str:
    """What a property is set to; '' if it is not."""
    found = about.find(path) if about is not None else None
    return found.get(_VAL, "") if found is not None else ""


def is_on(about: Element, tag: str) -> bool:
    found = about.find(tag)
    return found is not None and found.get(_VAL, "true") not in _OFF_VALUES


class RunStyle(NamedTuple):
    bold: bool = False
    italic: bool = False
    code: bool = False


class ParagraphStyle(NamedTuple):
    """What a paragraph is."""

    level: int = 0  # of a heading
    list: str = ""  # which numbering
    depth: int = 0  # in it, and on the page
    is_code: bool = False
    is_quote: bool = False
    is_table_of_contents: bool = False


class DocxStyles:
    def __init__(self, root: Element | None) -> None:
        found = root.findall("style") if root is not None else []
        self._styles_by_id = {one.get(f"{_W}styleId", ""): one for one in found}
        self._default = next((one.get(f"{_W}styleId", "") for one in found if _is_default(one)), "")
        self._paragraph_styles: dict[str, ParagraphStyle] = {}
        self._run_styles: dict[str, RunStyle] = {}

    def paragraph_style(self, about: Element | None) -> ParagraphStyle:
        """What a paragraph with these properties is: what they say themselves, then what its style says."""
        name = property_value(about, "pStyle") or self._default
        style = self._paragraph_styles.get(name)
        if style is None:
            style = self._paragraph_styles[name] = self._resolve_paragraph_style(name)
        if about is None:
            return style
        if level := property_value(about, "outlineLvl"):
            style = style._replace(level=_heading_level(level))
        if (numbering := about.find("numPr")) is not None:
            number = property_value(numbering, "numId") or style.list
            style = style._replace(list="" if number == "0" else number, depth=_list_depth(numbering, style.depth))
        return style

    def run_style(self, about: Element | None) -> RunStyle:
        """How a run with these properties looks."""
        if about is None:
            return RunStyle()
        name = property_value(about, "rStyle")
        look = self._run_styles.get(name)
        if look is None:
            look = self._run_styles[name] = self._resolve_run_style(name)
        fonts = about.find("rFonts")
        return RunStyle(
            bold=is_on(about, "b") if about.find("b") is not None else look.bold,
            italic=is_on(about, "i") if about.find("i") is not None else look.italic,
            code=is_monospace(fonts.get(f"{_W}ascii")) if fonts is not None and fonts.get(f"{_W}ascii") else look.code,
        )

    def _resolve_run_style(self, name: str) -> RunStyle:
        bold = italic = code = False
        for style in self._style_chain(name):
            about = style.find("rPr")
            code = code or _is_code(style)
            if about is not None:
                bold, italic = bold or is_on(about, "b"), italic or is_on(about, "i")
        return RunStyle(bold, italic, code)

    def _resolve_paragraph_style(self, name: str) -> ParagraphStyle:
        level: int | None = None
        number, depth = "", 0
        code = quote = contents = False
        for style in self._style_chain(name):
            called = property_value(style, "name").lower()
            heading = _HEADING.match(called)
            outline = property_value(style, "pPr/outlineLvl")
            if level is None and (heading or outline or called == "title"):
                level = int(heading[1]) if heading else 1 if called == "title" else _heading_level(outline)
            numbering = style.find("pPr/numPr")
            if not number and numbering is not None:
                indented = _INDENTED_LIST.match(called)
                number, depth = (
                    property_value(numbering, "numId"),
                    _list_depth(numbering, int(indented[1]) - 1 if indented else 0),
                )
            code = code or (_is_code(style) and not _is_default(style))  # a letter may be typed in Courier
            quote = quote or called.endswith("quote")
            contents = contents or _TABLE_OF_CONTENTS.match(called) is not None
        number = "" if number == "0" else number
        return ParagraphStyle(level or 0, number, depth, code, quote, contents)

    def _style_chain(self, name: str) -> list[Element]:
        """A style and what it is based on."""
        chain: list[Element] = []
        while (style := self._styles_by_id.get(name)) is not None and len(chain) < _MAX_STYLE_CHAIN:
            chain.append(style)
            name = property_value(style, "basedOn")
        return chain


def _is_default(style: Element) -> bool:
    return style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default", "0") not in _OFF_VALUES


def _is_code(style: Element) -> bool:
    fonts = style.find("rPr/rFonts")
    if fonts is not None and is_monospace(fonts.get(f"{_W}ascii")):
        return True
    return _CODE.search(property_value(style, "name").lower()) is not None


def _heading_level(outline: str) -> int:
    return int(outline) + 1 if outline in "012345678" else 0


def _list_depth(numbering: Element, otherwise: int) -> int:
    depth = property_value(numbering, "ilvl")
    return int(depth) if len(depth) == 1 and depth.isdecimal() else otherwise


class ListNumbering:
    """The lists of a document: how each level is marked, and how far each has counted."""

    def __init__(self, root: Element | None) -> None:
        levels = {
            one.get(f"{_W}abstractNumId", ""): {level.get(f"{_W}ilvl", ""): level for level in one.findall("lvl")}
            for one in (root.findall("abstractNum") if root is not None else ())
        }
        self._levels: dict[tuple[str, int], tuple[str, int]] = {}  # list and depth -> its format, its first number
        self._counter_groups: dict[str, str] = {}  # lists that go on counting where another stopped
        for one in root.findall("num") if root is not None else ():
            name, kind = one.get(f"{_W}numId", ""), property_value(one, "abstractNumId")
            starts = {
                own.get(f"{_W}ilvl", ""): property_value(own, "startOverride") for own in one.findall("lvlOverride")
            }
            self._counter_groups[name] = name if any(starts.values()) else f"kind {kind}"
            for depth, level in levels.get(kind, {}).items():
                start = starts.get(depth) or property_value(level, "start")
                if depth.isdecimal() and len(depth) == 1:
                    first = int(start) if start.isdecimal() and len(start) < 10 else 1
                    self._levels[name, int(depth)] = property_value(level, "numFmt"), first
        self._counters: dict[tuple[str, int], int] = {}

    def next_marker(self, name: str, depth: int) -> str:
        """The mark of the next item of a list at this depth."""
        kind, first = self._levels.get((name, depth)) or self._levels.get((name, 0), ("bullet", 1))
        group = self._counter_groups.get(name, name)
        for deeper in range(depth + 1, 9):
            self._counters.pop((group, deeper), None)
        number = self._counters[group, depth] = self._counters.get((group, depth), first - 1) + 1
        return "-" if kind in ("bullet", "none", "") else f"{number}."
