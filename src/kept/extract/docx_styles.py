"""What the styles of a Word document say: which paragraphs are headings, lists, code; and how lists are numbered.

The ids of styles are in the language of whoever made the document ("berschrift1"); the names of those that Word brings
along are English in every language ("heading 1").
"""

from __future__ import annotations

import re
from typing import NamedTuple
from xml.etree.ElementTree import Element

from kept.extract.prose import is_monospace

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_VAL = f"{_W}val"
_HEADING = re.compile(r"heading ([1-9])$")
_CONTENTS = re.compile(r"(?:toc \d|toc heading|table of (?:figures|contents).*)$")
_CODE = re.compile(r"\b(?:(?:source ?)?code|preformatted|verbatim|listing|macro)\b")
_INDENTED = re.compile(r"list (?:bullet|number) ([2-5])$")  # lists of their own that look like lists in lists
_DEEPEST = 20  # styles based on styles; they may be based on each other
_OFF = ("0", "false", "off", "none")


def value(about: Element | None, path: str) -> str:
    """What a property is set to; '' if it is not."""
    found = about.find(path) if about is not None else None
    return found.get(_VAL, "") if found is not None else ""


def is_on(about: Element, tag: str) -> bool:
    found = about.find(tag)
    return found is not None and found.get(_VAL, "true") not in _OFF


class Look(NamedTuple):
    bold: bool = False
    italic: bool = False
    code: bool = False


class Style(NamedTuple):
    """What a paragraph is."""

    level: int = 0  # of a heading
    list: str = ""  # which numbering
    depth: int = 0  # in it, and on the page
    is_code: bool = False
    is_quote: bool = False
    is_contents: bool = False


class Styles:
    def __init__(self, root: Element | None) -> None:
        found = root.findall("style") if root is not None else []
        self._all = {one.get(f"{_W}styleId", ""): one for one in found}
        self._default = next((one.get(f"{_W}styleId", "") for one in found if _is_default(one)), "")
        self._known: dict[str, Style] = {}
        self._looks: dict[str, Look] = {}

    def of(self, about: Element | None) -> Style:
        """What a paragraph with these properties is: what they say themselves, then what its style says."""
        name = value(about, "pStyle") or self._default
        style = self._known.get(name)
        if style is None:
            style = self._known[name] = self._styled(name)
        if about is None:
            return style
        if level := value(about, "outlineLvl"):
            style = style._replace(level=_level(level))
        if (numbering := about.find("numPr")) is not None:
            number = value(numbering, "numId") or style.list
            style = style._replace(list="" if number == "0" else number, depth=_depth(numbering, style.depth))
        return style

    def look(self, about: Element | None) -> Look:
        """How a run with these properties looks."""
        if about is None:
            return Look()
        name = value(about, "rStyle")
        look = self._looks.get(name)
        if look is None:
            look = self._looks[name] = self._looks_like(name)
        fonts = about.find("rFonts")
        return Look(
            bold=is_on(about, "b") if about.find("b") is not None else look.bold,
            italic=is_on(about, "i") if about.find("i") is not None else look.italic,
            code=is_monospace(fonts.get(f"{_W}ascii")) if fonts is not None and fonts.get(f"{_W}ascii") else look.code,
        )

    def _looks_like(self, name: str) -> Look:
        bold = italic = code = False
        for style in self._chain(name):
            about = style.find("rPr")
            code = code or _is_code(style)
            if about is not None:
                bold, italic = bold or is_on(about, "b"), italic or is_on(about, "i")
        return Look(bold, italic, code)

    def _styled(self, name: str) -> Style:
        level: int | None = None
        number, depth = "", 0
        code = quote = contents = False
        for style in self._chain(name):
            called = value(style, "name").lower()
            heading = _HEADING.match(called)
            outline = value(style, "pPr/outlineLvl")
            if level is None and (heading or outline or called == "title"):
                level = int(heading[1]) if heading else 1 if called == "title" else _level(outline)
            numbering = style.find("pPr/numPr")
            if not number and numbering is not None:
                indented = _INDENTED.match(called)
                number, depth = value(numbering, "numId"), _depth(numbering, int(indented[1]) - 1 if indented else 0)
            code = code or (_is_code(style) and not _is_default(style))  # a letter may be typed in Courier
            quote = quote or called.endswith("quote")
            contents = contents or _CONTENTS.match(called) is not None
        number = "" if number == "0" else number
        return Style(level or 0, number, depth, code, quote, contents)

    def _chain(self, name: str) -> list[Element]:
        """A style and what it is based on."""
        chain: list[Element] = []
        while (style := self._all.get(name)) is not None and len(chain) < _DEEPEST:
            chain.append(style)
            name = value(style, "basedOn")
        return chain


def _is_default(style: Element) -> bool:
    return style.get(f"{_W}type") == "paragraph" and style.get(f"{_W}default", "0") not in _OFF


def _is_code(style: Element) -> bool:
    fonts = style.find("rPr/rFonts")
    if fonts is not None and is_monospace(fonts.get(f"{_W}ascii")):
        return True
    return _CODE.search(value(style, "name").lower()) is not None


def _level(outline: str) -> int:
    return int(outline) + 1 if outline in "012345678" else 0


def _depth(numbering: Element, otherwise: int) -> int:
    depth = value(numbering, "ilvl")
    return int(depth) if len(depth) == 1 and depth.isdecimal() else otherwise


class Numbering:
    """The lists of a document: how each level is marked, and how far each has counted."""

    def __init__(self, root: Element | None) -> None:
        levels = {
            one.get(f"{_W}abstractNumId", ""): {level.get(f"{_W}ilvl", ""): level for level in one.findall("lvl")}
            for one in (root.findall("abstractNum") if root is not None else ())
        }
        self._levels: dict[tuple[str, int], tuple[str, int]] = {}  # list and depth -> its format, its first number
        self._same: dict[str, str] = {}  # lists that go on counting where another stopped
        for one in root.findall("num") if root is not None else ():
            name, kind = one.get(f"{_W}numId", ""), value(one, "abstractNumId")
            starts = {own.get(f"{_W}ilvl", ""): value(own, "startOverride") for own in one.findall("lvlOverride")}
            self._same[name] = name if any(starts.values()) else f"kind {kind}"
            for depth, level in levels.get(kind, {}).items():
                start = starts.get(depth) or value(level, "start")
                if depth.isdecimal() and len(depth) == 1:
                    first = int(start) if start.isdecimal() and len(start) < 10 else 1
                    self._levels[name, int(depth)] = value(level, "numFmt"), first
        self._counted: dict[tuple[str, int], int] = {}

    def mark(self, name: str, depth: int) -> str:
        """The mark of the next item of a list at this depth."""
        kind, first = self._levels.get((name, depth)) or self._levels.get((name, 0), ("bullet", 1))
        group = self._same.get(name, name)
        for deeper in range(depth + 1, 9):
            self._counted.pop((group, deeper), None)
        number = self._counted[group, depth] = self._counted.get((group, depth), first - 1) + 1
        return "-" if kind in ("bullet", "none", "") else f"{number}."
