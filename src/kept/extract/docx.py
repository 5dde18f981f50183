"""Word documents (.docx): headings by style or outline level, lists, tables, code by its typeface, links, footnotes.

A document is written out as Markdown and read as that. What Word only shows around it (headers, footers, comments, the
table of contents) and what it hides (deleted words, hidden words) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from kept.extract import markdown
from kept.extract.docx_styles import Numbering, Styles, is_on, value
from kept.extract.html_tables import table_of
from kept.extract.html_words import written
from kept.extract.package import RELATION, Package, opened
from kept.extract.prose import BREAK, Prose, Run, inline, plain
from kept.extract.sections import Extracted, Unreadable
from kept.extract.text import normalise

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_NOT_SAID = frozenset({"del", "moveFrom", "Fallback", "rPr", "pPr", "instrText", "delText", "txbxContent", "sdtPr"})
_WORDS = {"tab": " ", "cr": BREAK, "noBreakHyphen": "-", "ptab": " "}
_MOST_COLUMNS = 200


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    return opened(body, "a Word document", _read)


def _read(package: Package) -> Extracted | Unreadable:
    found = markdown.extract(_Document(package).written().encode("utf-8", "replace"), "utf-8")
    if isinstance(found, Unreadable) or found.title:
        return found
    return replace(found, title=package.title())


class _Document:
    """One document being written."""

    def __init__(self, package: Package) -> None:
        main = package.main()
        self._relations = package.relations(main)
        parts = {one.kind: package.xml(one.target) for one in self._relations.values() if one.kind in _SIDE_PARTS}
        self._body = package.xml(main)
        self._styles = Styles(parts.get("styles"))
        self._numbering = Numbering(parts.get("numbering"))
        self._notes = {
            (kind, one.get(f"{_W}id", "")): one
            for kind in ("footnote", "endnote")
            for one in _children(parts.get(f"{kind}s"))
        }
        self._asked: list[tuple[int, Element]] = []  # notes of this section, which stand at its end
        self._count = 0
        self._fields: list[str] = []  # the fields that are open: what they say they are, then where they lead
        self._prose = Prose()

    def written(self) -> str:
        body = self._body.find("body") if self._body is not None else None
        self._blocks(_children(body))
        self._put_notes()
        return normalise(self._prose.written())

    # ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _blocks(self, elements: Iterator[Element]) -> None:
        for element in elements:
            match element.tag:
                case "p":
                    self._paragraph(element)
                case "tbl":
                    self._table(element)
                case "sdt" | "sdtContent" | "customXml" | "ins" | "moveTo" | "AlternateContent" | "Choice":
                    self._blocks(_children(element))

    def _paragraph(self, element: Element) -> None:
        about = element.find("pPr")
        style = self._styles.of(about)
        if style.is_contents:
            return
        runs = list(self._runs(element))
        said = [run for run in runs if run.text.strip()]
        if style.level:
            self._put_notes()
            self._prose.heading(style.level, inline(runs, bold=False))
        elif style.list and said:
            self._prose.item(style.depth, self._numbering.mark(style.list, style.depth), inline(runs))
        elif said and (style.is_code or all(run.code for run in said)):
            for line in plain(runs).split(BREAK):
                self._prose.code(line.rstrip())
        elif style.is_quote and said:
            self._prose.block("> " + inline(runs).replace(BREAK, f"{BREAK}> "))
        else:
            self._prose.paragraph(inline(runs))
        if next(element.iter("txbxContent"), None) is not None:  # what stands in a frame beside the paragraph
            for box in _boxes(element):
                self._blocks(_children(box))

    def _table(self, table: Element) -> None:
        rows = [[*self._cells(row)] for row in _rows(table)]
        if sum(map(len, rows)) == 1:  # a box around something, and no table
            self._prose.block(rows[0][0])
            return
        look = table.find("tblPr/tblLook")
        headed = look is None or look.get(f"{_W}firstRow", "1") not in ("0", "false", "off")
        self._prose.block(table_of(rows, headed=headed))

    def _cells(self, row: Element) -> Iterator[str]:
        count = 0
        for cell in _within(row, "tc"):
            about = cell.find("tcPr")
            merged = about.find("vMerge") if about is not None else None
            goes_on = merged is not None and merged.get(f"{_W}val", "continue") == "continue"
            yield "" if goes_on else self._apart(cell)
            span = value(about, "gridSpan")
            extra = min(int(span) - 1 if span.isdecimal() and len(span) < 4 else 0, _MOST_COLUMNS - count)
            yield from [""] * extra
            count += 1 + max(extra, 0)
            if count >= _MOST_COLUMNS:
                return

    def _apart(self, element: Element) -> str:
        """The blocks in an element, by themselves."""
        around, self._prose = self._prose, Prose()
        self._blocks(_children(element))
        text, self._prose = self._prose.written(), around
        return text

    # ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _runs(self, element: Element, href: str = "") -> Iterator[Run]:
        for child in element:
            match child.tag:
                case "r":
                    yield from self._run(child, href)
                case "hyperlink":
                    link = self._relations.get(child.get(f"{RELATION}id", ""))
                    yield from self._runs(child, link.target if link and link.external else href)
                case "fldSimple":
                    yield from self._runs(child, _link_of(child.get(f"{_W}instr", "")) or href)
                case tag if tag not in _NOT_SAID:
                    yield from self._runs(child, href)

    def _run(self, run: Element, href: str) -> Iterator[Run]:
        about = run.find("rPr")
        if about is not None and is_on(about, "vanish"):
            return
        look = self._styles.look(about)
        for child in run:
            href = next((link for link in reversed(self._fields) if link.startswith(_SCHEMES)), href)
            match child.tag:
                case "t" | "tab" | "cr" | "noBreakHyphen" | "ptab":
                    yield Run(_WORDS.get(child.tag) or child.text or "", *look, href)
                case "br":
                    yield Run(BREAK if child.get(f"{_W}type", "textWrapping") == "textWrapping" else " ", *look, href)
                case "fldChar":
                    self._field(child.get(f"{_W}fldCharType", ""))
                case "instrText":
                    if self._fields:
                        self._fields[-1] += child.text or ""
                case "footnoteReference" | "endnoteReference":
                    yield from self._note(child.tag.removesuffix("Reference"), child.get(f"{_W}id", ""))
                case "drawing" | "pict" | "object" | "AlternateContent":
                    yield from _pictures(child)

    def _field(self, kind: str) -> None:
        """A field, in the long form: what it is, in one run, and then what it shows, in others."""
        if kind == "begin":
            self._fields.append("")
        elif kind == "separate" and self._fields:
            self._fields[-1] = _link_of(self._fields[-1])
        elif kind == "end" and self._fields:
            self._fields.pop()

    def _note(self, kind: str, name: str) -> Iterator[Run]:
        note = self._notes.get((kind, name))
        if note is not None:
            self._count += 1
            self._asked.append((self._count, note))
            yield Run(f"[^{self._count}]", raw=True)

    def _put_notes(self) -> None:
        while self._asked:
            asked, self._asked = self._asked, []
            for number, note in asked:
                text = " ".join(self._apart(note).split())
                self._prose.block(f"[^{number}]: {text}")


_SIDE_PARTS = ("styles", "numbering", "footnotes", "endnotes")
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,2000})"')


_SCHEMES = ("http://", "https://")


def _link_of(field: str) -> str:
    found = _FIELD_LINK.match(field)
    return found[1] if found else ""


def _children(element: Element | None) -> Iterator[Element]:
    yield from element if element is not None else ()


def _rows(table: Element) -> Iterator[Element]:
    yield from _within(table, "tr")


def _within(element: Element, tag: str) -> Iterator[Element]:
    """The children of this tag, those in the wrappers of forms and of tracked changes included."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in ("sdt", "sdtContent", "customXml", "ins"):
            yield from _within(child, tag)


def _pictures(drawing: Element) -> Iterator[Run]:
    for about in drawing.iter():
        if about.tag in ("docPr", "shape") and (alt := about.get("descr") or about.get("alt") or ""):
            yield Run(f"![{written(' '.join(alt.split()))}]()", raw=True)
            return


def _boxes(element: Element) -> Iterator[Element]:
    """The frames in an element, without those that are there a second time, for programs that cannot show the first."""
    for child in element:
        if child.tag == "txbxContent":
            yield child
        elif child.tag != "Fallback":
            yield from _boxes(child)
