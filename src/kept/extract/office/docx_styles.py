"""The styles of a Word document: which paragraphs are headings, lists or code, and how lists are numbered.

The ids of styles depend on the author's language ("berschrift1"); the names of Word's own styles are always English
("heading 1").
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
_INDENTED_LIST = re.compile(r"list (?:bullet|number) ([2-5])$")  # separate lists that look like nested ones
_MAX_STYLE_CHAIN = 20  # styles based on styles, perhaps in a cycle
_OFF_VALUES = ("0", "false", "off", "none")


def property_value(properties: Element | None, path: str) -> str:
    """Return the value of a property; '' if it is not set."""
    element = properties.find(path) if properties is not None else None
    return element.get(_VAL, "") if element is not None else ""


def is_on(properties: Element, tag: str) -> bool:
    element = properties.find(tag)
    return element is not None and element.get(_VAL, "true") not in _OFF_VALUES


class RunStyle(NamedTuple):
    bold: bool = False
    italic: bool = False
    code: bool = False


class ParagraphStyle(NamedTuple):
    """The meaning of a paragraph."""

    level: int = 0  # of a heading
    list: str = ""  # id of its numbering
    depth: int = 0  # of the list item
    is_code: bool = False
    is_quote: bool = False
    is_table_of_contents: bool = False


class DocxStyles:
    def __init__(self, root: Element | None) -> None:
        styles = root.findall("style") if root is not None else []
        self._styles_by_id = {style.get(f"{_W}styleId", ""): style for style in styles}
        self._default = next((style.get(f"{_W}styleId", "") for style in styles if _is_default(style)), "")
        self._paragraph_styles: dict[str, ParagraphStyle] = {}
        self._run_styles: dict[str, RunStyle] = {}

    def paragraph_style(self, properties: Element | None) -> ParagraphStyle:
        """Return the style of a paragraph: its own properties win over those of its named style."""
        name = property_value(properties, "pStyle") or self._default
        style = self._paragraph_styles.get(name)
        if style is None:
            style = self._paragraph_styles[name] = self._resolve_paragraph_style(name)
        if properties is None:
            return style
        if level := property_value(properties, "outlineLvl"):
            style = style._replace(level=_heading_level(level))
        if (numbering := properties.find("numPr")) is not None:
            number = property_value(numbering, "numId") or style.list
            style = style._replace(list="" if number == "0" else number, depth=_list_depth(numbering, style.depth))
        return style

    def run_style(self, properties: Element | None) -> RunStyle:
        """Return the formatting of a run with these properties."""
        if properties is None:
            return RunStyle()
        name = property_value(properties, "rStyle")
        style = self._run_styles.get(name)
        if style is None:
            style = self._run_styles[name] = self._resolve_run_style(name)
        fonts = properties.find("rFonts")
        return RunStyle(
            bold=is_on(properties, "b") if properties.find("b") is not None else style.bold,
            italic=is_on(properties, "i") if properties.find("i") is not None else style.italic,
            code=is_monospace(fonts.get(f"{_W}ascii")) if fonts is not None and fonts.get(f"{_W}ascii") else style.code,
        )

    def _resolve_run_style(self, name: str) -> RunStyle:
        bold = italic = code = False
        for style in self._style_chain(name):
            properties = style.find("rPr")
            code = code or _is_code(style)
            if properties is not None:
                bold, italic = bold or is_on(properties, "b"), italic or is_on(properties, "i")
        return RunStyle(bold, italic, code)

    def _resolve_paragraph_style(self, name: str) -> ParagraphStyle:
        level: int | None = None
        number, depth = "", 0
        code = quote = contents = False
        for style in self._style_chain(name):
            style_name = property_value(style, "name").lower()
            heading = _HEADING.match(style_name)
            outline = property_value(style, "pPr/outlineLvl")
            if level is None and (heading or outline or style_name == "title"):
                level = int(heading[1]) if heading else 1 if style_name == "title" else _heading_level(outline)
            numbering = style.find("pPr/numPr")
            if not number and numbering is not None:
                indented = _INDENTED_LIST.match(style_name)
                number, depth = (
                    property_value(numbering, "numId"),
                    _list_depth(numbering, int(indented[1]) - 1 if indented else 0),
                )
            code = code or (_is_code(style) and not _is_default(style))  # a whole document may be set in Courier
            quote = quote or style_name.endswith("quote")
            contents = contents or _TABLE_OF_CONTENTS.match(style_name) is not None
        number = "" if number == "0" else number
        return ParagraphStyle(level or 0, number, depth, code, quote, contents)

    def _style_chain(self, name: str) -> list[Element]:
        """Return a style and the styles it is based on."""
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


def _list_depth(numbering: Element, default: int) -> int:
    depth = property_value(numbering, "ilvl")
    return int(depth) if len(depth) == 1 and depth.isdecimal() else default


class ListNumbering:
    """The markers of the lists of a document, and their counters."""

    def __init__(self, root: Element | None) -> None:
        levels = {
            one.get(f"{_W}abstractNumId", ""): {level.get(f"{_W}ilvl", ""): level for level in one.findall("lvl")}
            for one in (root.findall("abstractNum") if root is not None else ())
        }
        self._levels: dict[tuple[str, int], tuple[str, int]] = {}  # (list, depth) -> format, first number
        self._counter_groups: dict[str, str] = {}  # list -> the counter it shares with others
        for num in root.findall("num") if root is not None else ():
            name, abstract_id = num.get(f"{_W}numId", ""), property_value(num, "abstractNumId")
            starts = {
                override.get(f"{_W}ilvl", ""): property_value(override, "startOverride")
                for override in num.findall("lvlOverride")
            }
            self._counter_groups[name] = name if any(starts.values()) else f"kind {abstract_id}"
            for depth, level in levels.get(abstract_id, {}).items():
                start = starts.get(depth) or property_value(level, "start")
                if depth.isdecimal() and len(depth) == 1:
                    first = int(start) if start.isdecimal() and len(start) < 10 else 1
                    self._levels[name, int(depth)] = property_value(level, "numFmt"), first
        self._counters: dict[tuple[str, int], int] = {}

    def next_marker(self, name: str, depth: int) -> str:
        """Return the marker of the next item of a list at this depth."""
        kind, first = self._levels.get((name, depth)) or self._levels.get((name, 0), ("bullet", 1))
        group = self._counter_groups.get(name, name)
        for deeper in range(depth + 1, 9):
            self._counters.pop((group, deeper), None)
        number = self._counters[group, depth] = self._counters.get((group, depth), first - 1) + 1
        return "-" if kind in ("bullet", "none", "") else f"{number}."
