"""Word documents (.docx): headings by style or outline level, lists, tables, code by its typeface, links, footnotes.

A document is written out as Markdown and read as that. What Word only shows around it (headers, footers, comments, the
table of contents) and what it hides (deleted words, hidden words) is left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from kept.extract.html.markdown_text import escape_markdown
from kept.extract.html.tables import markdown_table
from kept.extract.markdown import reader
from kept.extract.office.docx_styles import DocxStyles, ListNumbering, is_on, property_value
from kept.extract.office.office_markdown import (
    LINE_BREAK,
    OfficeMarkdownWriter,
    TextRun,
    runs_to_markdown,
    runs_to_text,
)
from kept.extract.office.zip_container import RELATIONSHIP_NAMESPACE, ZipContainer, read_container
from kept.extract.sections import Extraction, Unreadable
from kept.extract.text import normalize_text

_W = "{http://schemas.openxmlformats.org/wordprocessingml/2006/main}"
_IGNORED_TAGS = frozenset({"del", "moveFrom", "Fallback", "rPr", "pPr", "instrText", "delText", "txbxContent", "sdtPr"})
_TEXT_BY_TAG = {"tab": " ", "cr": LINE_BREAK, "noBreakHyphen": "-", "ptab": " "}
_MAX_COLUMNS = 200


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    return read_container(body, "a Word document", _read)


def _read(package: ZipContainer) -> Extraction | Unreadable:
    found = reader.extract(_DocxDocument(package).to_markdown().encode("utf-8", "replace"), "utf-8")
    if isinstance(found, Unreadable) or found.title:
        return found
    return replace(found, title=package.title())


class _DocxDocument:
    """One document being written."""

    def __init__(self, package: ZipContainer) -> None:
        main = package.main_part_name()
        self._relations = package.relationships(main)
        parts = {
            one.kind: package.read_xml(one.target) for one in self._relations.values() if one.kind in _RELATED_PARTS
        }
        self._body = package.read_xml(main)
        self._styles = DocxStyles(parts.get("styles"))
        self._numbering = ListNumbering(parts.get("numbering"))
        self._notes = {
            (kind, one.get(f"{_W}id", "")): one
            for kind in ("footnote", "endnote")
            for one in _children(parts.get(f"{kind}s"))
        }
        self._pending_notes: list[tuple[int, Element]] = []  # notes of this section, which stand at its end
        self._note_count = 0
        self._open_fields: list[str] = []  # the fields that are open: what they say they are, then where they lead
        self._markdown = OfficeMarkdownWriter()

    def to_markdown(self) -> str:
        body = self._body.find("body") if self._body is not None else None
        self._write_blocks(_children(body))
        self._write_notes()
        return normalize_text(self._markdown.to_markdown())

    # ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────

    def _write_blocks(self, elements: Iterator[Element]) -> None:
        for element in elements:
            match element.tag:
                case "p":
                    self._write_paragraph(element)
                case "tbl":
                    self._write_table(element)
                case "sdt" | "sdtContent" | "customXml" | "ins" | "moveTo" | "AlternateContent" | "Choice":
                    self._write_blocks(_children(element))

    def _write_paragraph(self, element: Element) -> None:
        about = element.find("pPr")
        style = self._styles.paragraph_style(about)
        if style.is_table_of_contents:
            return
        runs = list(self._runs(element))
        said = [run for run in runs if run.text.strip()]
        if style.level:
            self._write_notes()
            self._markdown.add_heading(style.level, runs_to_markdown(runs, allow_bold=False))
        elif style.list and said:
            self._markdown.add_list_item(
                style.depth, self._numbering.next_marker(style.list, style.depth), runs_to_markdown(runs)
            )
        elif said and (style.is_code or all(run.code for run in said)):
            for line in runs_to_text(runs).split(LINE_BREAK):
                self._markdown.add_code_line(line.rstrip())
        elif style.is_quote and said:
            self._markdown.add_block("> " + runs_to_markdown(runs).replace(LINE_BREAK, f"{LINE_BREAK}> "))
        else:
            self._markdown.add_paragraph(runs_to_markdown(runs))
        if next(element.iter("txbxContent"), None) is not None:  # what stands in a frame beside the paragraph
            for box in _text_boxes(element):
                self._write_blocks(_children(box))

    def _write_table(self, table: Element) -> None:
        rows = [[*self._cells(row)] for row in _table_rows(table)]
        if sum(map(len, rows)) == 1:  # a box around something, and no table
            self._markdown.add_block(rows[0][0])
            return
        look = table.find("tblPr/tblLook")
        headed = look is None or look.get(f"{_W}firstRow", "1") not in ("0", "false", "off")
        self._markdown.add_block(markdown_table(rows, has_header_row=headed))

    def _cells(self, row: Element) -> Iterator[str]:
        count = 0
        for cell in _unwrapped_children(row, "tc"):
            about = cell.find("tcPr")
            merged = about.find("vMerge") if about is not None else None
            goes_on = merged is not None and merged.get(f"{_W}val", "continue") == "continue"
            yield "" if goes_on else self._render_separately(cell)
            span = property_value(about, "gridSpan")
            extra = min(int(span) - 1 if span.isdecimal() and len(span) < 4 else 0, _MAX_COLUMNS - count)
            yield from [""] * extra
            count += 1 + max(extra, 0)
            if count >= _MAX_COLUMNS:
                return

    def _render_separately(self, element: Element) -> str:
        """The blocks in an element, by themselves."""
        around, self._markdown = self._markdown, OfficeMarkdownWriter()
        self._write_blocks(_children(element))
        text, self._markdown = self._markdown.to_markdown(), around
        return text

    # ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────

    def _runs(self, element: Element, href: str = "") -> Iterator[TextRun]:
        for child in element:
            match child.tag:
                case "r":
                    yield from self._run(child, href)
                case "hyperlink":
                    link = self._relations.get(child.get(f"{RELATIONSHIP_NAMESPACE}id", ""))
                    yield from self._runs(child, link.target if link and link.is_external else href)
                case "fldSimple":
                    yield from self._runs(child, _field_link(child.get(f"{_W}instr", "")) or href)
                case tag if tag not in _IGNORED_TAGS:
                    yield from self._runs(child, href)

    def _run(self, run: Element, href: str) -> Iterator[TextRun]:
        about = run.find("rPr")
        if about is not None and is_on(about, "vanish"):
            return
        look = self._styles.run_style(about)
        for child in run:
            href = next((link for link in reversed(self._open_fields) if link.startswith(_SCHEMES)), href)
            match child.tag:
                case "t" | "tab" | "cr" | "noBreakHyphen" | "ptab":
                    yield TextRun(_TEXT_BY_TAG.get(child.tag) or child.text or "", *look, href)
                case "br":
                    yield TextRun(
                        LINE_BREAK if child.get(f"{_W}type", "textWrapping") == "textWrapping" else " ", *look, href
                    )
                case "fldChar":
                    self._field(child.get(f"{_W}fldCharType", ""))
                case "instrText":
                    if self._open_fields:
                        self._open_fields[-1] += child.text or ""
                case "footnoteReference" | "endnoteReference":
                    yield from self._note_reference(child.tag.removesuffix("Reference"), child.get(f"{_W}id", ""))
                case "drawing" | "pict" | "object" | "AlternateContent":
                    yield from _pictures(child)

    def _field(self, kind: str) -> None:
        """A field, in the long form: what it is, in one run, and then what it shows, in others."""
        if kind == "begin":
            self._open_fields.append("")
        elif kind == "separate" and self._open_fields:
            self._open_fields[-1] = _field_link(self._open_fields[-1])
        elif kind == "end" and self._open_fields:
            self._open_fields.pop()

    def _note_reference(self, kind: str, name: str) -> Iterator[TextRun]:
        note = self._notes.get((kind, name))
        if note is not None:
            self._note_count += 1
            self._pending_notes.append((self._note_count, note))
            yield TextRun(f"[^{self._note_count}]", is_markdown=True)

    def _write_notes(self) -> None:
        while self._pending_notes:
            asked, self._pending_notes = self._pending_notes, []
            for number, note in asked:
                text = " ".join(self._render_separately(note).split())
                self._markdown.add_block(f"[^{number}]: {text}")


_RELATED_PARTS = ("styles", "numbering", "footnotes", "endnotes")
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,2000})"')


_SCHEMES = ("http://", "https://")


def _field_link(field: str) -> str:
    found = _FIELD_LINK.match(field)
    return found[1] if found else ""


def _children(element: Element | None) -> Iterator[Element]:
    yield from element if element is not None else ()


def _table_rows(table: Element) -> Iterator[Element]:
    yield from _unwrapped_children(table, "tr")


def _unwrapped_children(element: Element, tag: str) -> Iterator[Element]:
    """The children of this tag, those in the wrappers of forms and of tracked changes included."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in ("sdt", "sdtContent", "customXml", "ins"):
            yield from _unwrapped_children(child, tag)


def _pictures(drawing: Element) -> Iterator[TextRun]:
    for about in drawing.iter():
        if about.tag in ("docPr", "shape") and (alt := about.get("descr") or about.get("alt") or ""):
            yield TextRun(f"![{escape_markdown(' '.join(alt.split()))}]()", is_markdown=True)
            return


def _text_boxes(element: Element) -> Iterator[Element]:
    """The frames in an element, without those that are there a second time, for programs that cannot show the first."""
    for child in element:
        if child.tag == "txbxContent":
            yield child
        elif child.tag != "Fallback":
            yield from _text_boxes(child)
