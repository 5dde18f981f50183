"""Read AsciiDoc: sections with the ids that Asciidoctor gives them, code, lists, tables, admonitions.

    extract    the reader

The terms of description lists are named entries, unless they are inside other lists. A file that it includes
is read if the crawl found it; otherwise a line says which file belongs there.
"""

from __future__ import annotations

import re
from typing import Final

from kept.extract.asciidoc.inline import InlineText
from kept.extract.asciidoc.lines import read_lines
from kept.extract.asciidoc.tables import read_rows
from kept.extract.html.markdown_text import code_span
from kept.extract.markup_writer import AnchorNames, MarkupWriter
from kept.extract.sections import Extraction, Unreadable
from kept.extract.text import decode_text
from kept.model.companions import NO_COMPANIONS, Companions

MAX_DEPTH = 20  # of blocks in blocks
MAX_TERM_LENGTH = 250

_SECTION = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*?)(?:[ \t]+\1)?$")
_UNDERLINES: Final = {"=": 1, "-": 2, "~": 3, "^": 4, "+": 5}
_BLOCK_ATTRIBUTES = re.compile(r"\[(?!\[)(.*)\]$")
_BLOCK_ANCHOR = re.compile(r"\[\[([^\[\],]{1,200})(?:,[^\[\]]*)?\]\]$")
_BLOCK_TITLE = re.compile(r"\.([^\s.].*)$")
_DELIMITER = re.compile(r"(-{4,}|\.{4,}|={4,}|\*{4,}|_{4,}|\+{4,}|/{4,}|--|[|,:!]={3,}|`{3,}[^`]*)$")
_BULLET = re.compile(r"\s*([*-]|\*{2,6})[ \t]+(?:\[([ xX*])\][ \t]+)?(\S.*)$")
_ORDERED = re.compile(r"\s*(\.{1,5}|\d{1,4}\.|[a-zA-Z]\.|[ivxIVX]{1,5}\))[ \t]+(\S.*)$")
_CALLOUT = re.compile(r"<(\d{1,3}|\.)>[ \t]+(\S.*)$")
_TERM = re.compile(r"\s*(\S.{0,400}?|)(:{2,4}|;;)(?:[ \t]+(.*))?$")
_ADMONITION = re.compile(r"(NOTE|TIP|WARNING|IMPORTANT|CAUTION):[ \t]+(\S.*)$")
_ADMONITIONS: Final = frozenset({"NOTE", "TIP", "WARNING", "IMPORTANT", "CAUTION"})
_ATTRIBUTE_ENTRY = re.compile(r":!?[\w][\w-]*!?:(?:[ \t]|$)")
_BLOCK_MACRO = re.compile(r"(image|video|audio|toc|include|footnote|ifdef|plantuml|kroki)::([^\s\[\]]*)\[(.*)\]$")
_THEMATIC = ("'''", "---", "- - -", "***", "* * *", "<<<")
_ENTRY_WORD = re.compile(r"[^\s,=|\[(<]+")


def extract(
    body: bytes, charset: str | None, url: str = "", companions: Companions = NO_COMPANIONS
) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    return text if isinstance(text, Unreadable) else read_asciidoc(text, companions)


def read_asciidoc(text: str, companions: Companions = NO_COMPANIONS) -> Extraction:
    reader = _PageReader()
    lines = read_lines(text, reader.inline.define, reader.inline.attributes, companions.files)
    reader.inline.hrefs = reader.writer.hrefs
    reader.read(lines)
    return reader.writer.to_extraction(reader.title)


class _OpenList:
    __slots__ = ("depth", "has_entry", "marker", "number")

    def __init__(self, marker: str, depth: int) -> None:
        self.marker = marker
        self.depth = depth  # of the writer when the list began
        self.number = 0
        self.has_entry = False


class _PageReader:
    def __init__(self) -> None:
        self.inline = InlineText()
        self.writer = MarkupWriter()
        self.title = ""
        self._ids = AnchorNames("_")
        self._names = AnchorNames("-")
        self._terms: list[str] = []  # of a description list, until their text comes
        self._terms_list = _OpenList("", 0)
        self._attributes: dict[str, str] = {}  # of the next block
        self._anchor = ""

    def read(self, lines: list[str]) -> None:
        self._blocks(self._header(lines), 0)

    # Header and sections

    def _header(self, lines: list[str]) -> list[str]:
        at = 0
        while at < len(lines) and (not lines[at] or lines[at].startswith(("//", ":"))):
            at += 1
        if at >= len(lines):
            return lines
        if lines[at].startswith("= "):
            self.title = self.inline.to_text(lines[at][2:])
            at += 1
        elif at + 1 < len(lines) and _is_underline(lines[at], lines[at + 1]) == 1:
            self.title = self.inline.to_text(lines[at])
            at += 2
        else:
            return lines
        while at < len(lines) and lines[at]:  # author, revision, attributes
            at += 1
        return lines[at:]

    def _section(self, level: int, source: str) -> None:
        self._write_terms()
        if self._attributes.get("1") in ("discrete", "float"):
            self._anchor = self._anchor or self._attributes.get("id", "")
        text = self.inline.to_text(source)
        markdown = self.inline.to_markdown(source)
        anchor = self._anchor or self._attributes.get("id") or self._ids.unique(self._section_id(text))
        self._anchor, self._attributes = "", {}
        if text:
            self.inline.titles[anchor] = text
            self.writer.add_heading(level, markdown, text=text, anchor=anchor)

    def _section_id(self, title: str) -> str:
        """Return the id of a section as Asciidoctor makes it."""
        prefix = self.inline.attributes.get("idprefix", "_")
        separator = self.inline.attributes.get("idseparator", "_")[:1]
        words = re.sub(r"[^\w .-]", "", title.lower())
        words = re.sub(r"[ .-]", separator, words)
        if separator:
            words = re.sub(rf"{re.escape(separator)}+", separator, words).strip(separator)
        return f"{prefix}{words}"

    # Blocks

    def _blocks(self, lines: list[str], depth: int) -> None:
        """Read the blocks of the page, or of a block."""
        lists: list[_OpenList] = []
        base = self.writer.depth
        at = 0
        after_blank, attached = True, False
        while at < len(lines):
            line = lines[at]
            if not line:
                after_blank = True
                at += 1
                continue
            if line == "+":
                attached, after_blank = True, False
                self._write_terms()
                at += 1
                continue
            was_attached, attached = attached, False
            end = self._metadata(lines, at)
            if end > at:
                at, attached = end, was_attached
                continue
            if delimiter := _DELIMITER.match(line):
                if not (was_attached or self._terms) and after_blank:
                    self._end_lists(lists, base)
                at = self._delimited(delimiter[1], lines, at, depth)
                after_blank = False
                continue
            if line in _THEMATIC:
                at += 1
                continue
            if not line[0].isspace() and (heading := self._heading(lines, at)):
                self._end_lists(lists, base)
                at = heading
                after_blank = True
                continue
            if consumed := self._list_item(lines, at, lists, base):
                at = consumed
                after_blank = False
                continue
            if after_blank and not was_attached and not self._terms and not (line[0].isspace() and lists):
                self._end_lists(lists, base)
            at = self._paragraph(lines, at)
            after_blank = False
        self._end_lists(lists, base)

    def _metadata(self, lines: list[str], at: int) -> int:
        """Read attributes, anchors, titles and comments before a block. Returns the line after them."""
        line = lines[at]
        if line.startswith("//") and not line.startswith("///"):
            return at + 1
        if line[0] == ":" and _ATTRIBUTE_ENTRY.match(line):
            return at + 1
        if line[0] == "[":
            if anchor := _BLOCK_ANCHOR.match(line):
                self._anchor = anchor[1]
                return at + 1
            if found := _BLOCK_ATTRIBUTES.match(line):
                self._attributes |= _block_attributes(found[1])
                self._anchor = self._attributes.pop("id", "") or self._anchor
                return at + 1
        if line[0] == "." and (title := _BLOCK_TITLE.match(line)) and at + 1 < len(lines) and lines[at + 1]:
            self._write_terms()
            self.writer.add_paragraph(f"**{self.inline.to_markdown(title[1]).replace('**', '')}**")
            return at + 1
        if macro := _BLOCK_MACRO.match(line):
            self._write_terms()
            if macro[1] == "include":
                self.writer.add_paragraph(f"(Included: {code_span(macro[2])})")
            elif macro[1] == "image" and (alt := macro[3].split(",")[0].strip('"')) and "=" not in alt:
                self.writer.add_paragraph(self.inline.to_markdown(alt))
            self._attributes, self._anchor = {}, ""
            return at + 1
        return at

    def _heading(self, lines: list[str], at: int) -> int:
        line = lines[at]
        if line[0] in "=#" and (section := _SECTION.match(line)):
            self._section(len(section[1]), section[2])
            return at + 1
        if at + 1 < len(lines) and (level := _is_underline(line, lines[at + 1])) and line[0] not in "*-.[":
            self._section(level, line)
            return at + 2
        return 0

    def _delimited(self, mark: str, lines: list[str], at: int, depth: int) -> int:
        """Read a delimited block. Returns the line after it."""
        closing = "```" if mark.startswith("```") else mark
        end = at + 1
        while end < len(lines) and lines[end] != closing:
            end += 1
        inside = lines[at + 1 : end]
        self._write_terms()
        attributes, self._attributes, self._anchor = self._attributes, {}, ""
        style = attributes.get("1", "")
        first = mark[0]
        if first == "/" or style == "comment":
            pass
        elif first in "-.`" and mark != "--":
            language = mark[3:].strip() if first == "`" else _language_of(attributes)
            self._code(inside, language)
        elif mark == "--" and style in ("source", "listing"):
            self._code(inside, _language_of(attributes))
        elif first == "+":
            if style in ("stem", "latexmath", "asciimath"):
                self._code(inside, "")
        elif mark[1:].startswith("===") and first in "|,:!":
            rows, has_header = read_rows(inside, attributes, first if first != "!" else "|")
            cells = [[self.inline.to_markdown(cell) for cell in row] for row in rows]
            self.writer.add_table(cells, has_header=has_header)
        elif first == "_" and style == "verse":
            self._verse(inside)
        elif depth >= MAX_DEPTH:
            self.writer.add_paragraph(self.inline.to_markdown(" ".join(inside)))
        elif style in _ADMONITIONS or (first == "_" and mark != "--") or first == "*":
            self._quoted(inside, depth, style.capitalize() if style in _ADMONITIONS else "")
        else:
            self._blocks(inside, depth + 1)
        return end + 1

    def _quoted(self, lines: list[str], depth: int, title: str) -> None:
        before = self.writer.depth
        self.writer.open_quote()
        if title:
            self.writer.add_paragraph(f"**{title}**")
        self._blocks(lines, depth + 1)
        self.writer.close_to(before)

    def _code(self, lines: list[str], language: str) -> None:
        self.writer.add_code("\n".join(lines), language)

    def _verse(self, lines: list[str]) -> None:
        self.writer.add_code("\n".join(map(self.inline.to_text, lines)))

    # Paragraphs

    def _paragraph(self, lines: list[str], at: int) -> int:
        attributes, self._attributes, self._anchor = self._attributes, {}, ""
        style = attributes.get("1", "")
        end = at
        while end < len(lines) and lines[end] and lines[end] != "+":
            if end > at and (
                _DELIMITER.match(lines[end]) or _BLOCK_ATTRIBUTES.match(lines[end]) or lines[end].startswith("[[")
            ):
                break
            if end > at and lines[end].startswith("//") and not lines[end].startswith("///"):
                break
            if end > at and not lines[at][0].isspace() and self.writer.depth and _is_list_item(lines[end]):
                break
            end += 1
        inside = lines[at:end]
        is_definition = bool(self._terms)  # it may be indented
        self._write_terms()
        if style == "verse":
            self._verse(inside)
        elif style in ("source", "listing", "literal") or attributes.get("language"):
            self._code(inside, _language_of(attributes))
        elif inside[0][0].isspace() and style != "normal" and not is_definition:
            margin = min(len(line) - len(line.lstrip()) for line in inside)
            self._code([line[margin:] for line in inside], "")
        elif admonition := _ADMONITION.match(inside[0]):
            self._admonition(admonition[1], [admonition[2], *inside[1:]])
        elif style in _ADMONITIONS:
            self._admonition(style, inside)
        elif style not in ("stem", "comment", "pass"):
            self.writer.add_paragraph(self.inline.to_markdown("\n".join(inside)))
        return end

    def _admonition(self, kind: str, lines: list[str]) -> None:
        before = self.writer.depth
        self.writer.open_quote()
        self.writer.add_paragraph(f"**{kind.capitalize()}**")
        self.writer.add_paragraph(self.inline.to_markdown("\n".join(lines)))
        self.writer.close_to(before)

    # Lists

    def _list_item(self, lines: list[str], at: int, lists: list[_OpenList], base: int) -> int:
        """Begin a list item. Returns the line after its first paragraph; 0 if there is none."""
        line = lines[at]
        if bullet := _BULLET.match(line):
            if bullet[1] == "-" and line.startswith("--"):
                return 0
            self._begin_item(bullet[1], "-", lists, base)
            return self._item_text(lines, at, bullet[3])
        if ordered := _ORDERED.match(line):
            kind = "." if ordered[1][0].isdigit() else ordered[1] if ordered[1][0] == "." else "a."
            self._begin_item(f"ordered {kind}", "", lists, base)
            return self._item_text(lines, at, ordered[2])
        if callout := _CALLOUT.match(line):
            self._begin_item("callout", "", lists, base)
            return self._item_text(lines, at, callout[2])
        if (term := _TERM.match(line)) and term[1] and "::" not in term[1].strip("`") and not line.startswith("//"):
            self._term(term[1], term[2], lists, base)
            if term[3]:
                return self._item_text(lines, at, term[3])
            return at + 1
        return 0

    def _begin_item(self, marker: str, mark: str, lists: list[_OpenList], base: int) -> None:
        self._write_terms()
        self._attributes, self._anchor = {}, ""
        current = self._list_of(marker, lists, base)
        current.number += 1
        self.writer.open_item(mark or f"{current.number}.")

    def _list_of(self, marker: str, lists: list[_OpenList], base: int) -> _OpenList:
        """Return the open list with this marker, with those inside it ended, or a new one inside the current item."""
        for index, each in enumerate(lists):
            if each.marker == marker:
                self._end_lists(lists, base, keep=index + 1)
                self._end_item(each)
                return each
        if len(lists) >= MAX_DEPTH:
            self._end_item(lists[-1])
            return lists[-1]
        lists.append(_OpenList(marker, self.writer.depth))
        return lists[-1]

    def _end_item(self, opened: _OpenList) -> None:
        self.writer.close_to(opened.depth)
        if opened.has_entry:
            self.writer.end_entry()
            opened.has_entry = False

    def _end_lists(self, lists: list[_OpenList], base: int, keep: int = 0) -> None:
        if not keep:
            self._write_terms()
        while len(lists) > keep:
            self._end_item(lists.pop())

    def _item_text(self, lines: list[str], at: int, first: str) -> int:
        """Write the first paragraph of an item, which may go on in the next lines."""
        end = at + 1
        while end < len(lines) and lines[end] and lines[end] != "+":
            if _is_list_item(lines[end]) or _DELIMITER.match(lines[end]) or lines[end].startswith(("[", "//")):
                break
            end += 1
        text = "\n".join([first, *[line.strip() for line in lines[at + 1 : end]]])
        self._write_terms()
        self.writer.add_paragraph(self.inline.to_markdown(text))
        return end

    def _term(self, source: str, marker: str, lists: list[_OpenList], base: int) -> None:
        if self._terms and lists and lists[-1].marker == marker:
            self._terms.append(source)  # another name for the same thing
            return
        self._write_terms()
        current = self._list_of(marker, lists, base)
        self._terms, self._terms_list = [source], current

    def _write_terms(self) -> None:
        if not self._terms:
            return
        terms, self._terms = self._terms, []
        self._entry(
            self._terms_list,
            ", ".join(filter(None, map(self.inline.to_text, terms))),
            ", ".join(filter(None, map(self.inline.to_markdown, terms))),
        )

    def _entry(self, current: _OpenList, text: str, markdown: str) -> None:
        anchor, self._anchor, self._attributes = self._anchor, "", {}
        if not text:
            return
        if self.writer.depth or len(text) > MAX_TERM_LENGTH:
            if self.writer.depth:
                self.writer.open_item("-")
            self.writer.add_paragraph(f"**{markdown.replace('**', '')}**")
            return
        current.has_entry = True
        word = _ENTRY_WORD.match(text.lstrip("-+`'\" "))
        self.writer.add_entry(
            markdown, text=text, anchor=anchor or self._names.unique(word[0][:80] if word else text[:80])
        )


def _is_underline(title: str, line: str) -> int:
    """Return the level of a title that is underlined; 0 if it is none."""
    if not line or line[0] not in _UNDERLINES or line.strip(line[0]) or not re.search(r"\w", title):
        return 0
    return _UNDERLINES[line[0]] if len(line) > 1 and abs(len(title) - len(line)) <= 2 else 0


def _is_list_item(line: str) -> bool:
    if _BULLET.match(line) or _ORDERED.match(line) or _CALLOUT.match(line):
        return True
    term = _TERM.match(line)
    return bool(term and term[1] and "::" not in term[1])


def _language_of(attributes: dict[str, str]) -> str:
    language = attributes.get("language") or attributes.get("lang") or ""
    if not language and attributes.get("1") in ("source", "listing", ""):
        language = attributes.get("2", "")
    return language if re.fullmatch(r"[\w+#.-]{1,40}", language) else ""


def _block_attributes(source: str) -> dict[str, str]:
    """Return the attributes of [source,python] and [#id.role%option,key="value"]: those without a name by position."""
    attributes: dict[str, str] = {}
    position = 0
    for match in re.finditer(r"([\w-]+)=(?:\"([^\"]*)\"|'([^']*)'|([^,]*))|([^,]+)|,", source[:4_000]):
        if match[1]:
            attributes[match[1]] = (
                match[2] if match[2] is not None else match[3] if match[3] is not None else match[4].strip()
            )
        elif match[5]:
            position += 1
            word = match[5].strip().strip('"')
            if position == 1:
                name = re.match(r"[^#.%]*", word)
                for kind, value in re.findall(r"([#.%])([^#.%]+)", word):
                    key = {"#": "id", ".": "role", "%": "%"}[kind]
                    attributes[key] = f"{attributes.get(key, '')} {value}".strip()
                word = name[0] if name else ""
            attributes[str(position)] = word
    return attributes
