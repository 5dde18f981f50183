"""Read Word documents (.docx): headings by style or outline level, lists, tables, code by its typeface, links, notes.

A document is converted to Markdown, which is read by the Markdown reader. Headers, footers, comments, the table of
contents, deleted and hidden text are left out.
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
    extraction = reader.extract(_DocxDocument(package).to_markdown().encode("utf-8", "replace"), "utf-8")
    if isinstance(extraction, Unreadable) or extraction.title:
        return extraction
    return replace(extraction, title=package.title())


class _DocxDocument:
    """Converts one document to Markdown."""

    def __init__(self, package: ZipContainer) -> None:
        main = package.main_part_name()
        self._relations = package.relationships(main)
        parts = {
            relation.kind: package.read_xml(relation.target)
            for relation in self._relations.values()
            if relation.kind in _RELATED_PARTS
        }
        self._body = package.read_xml(main)
        self._styles = DocxStyles(parts.get("styles"))
        self._numbering = ListNumbering(parts.get("numbering"))
        self._notes = {
            (kind, note.get(f"{_W}id", "")): note
            for kind in ("footnote", "endnote")
            for note in _children(parts.get(f"{kind}s"))
        }
        self._pending_notes: list[tuple[int, Element]] = []  # notes of this section, written at its end
        self._note_count = 0
        self._open_fields: list[str] = []  # open fields: their instruction, then their link
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
        properties = element.find("pPr")
        style = self._styles.paragraph_style(properties)
        if style.is_table_of_contents:
            return
        runs = list(self._runs(element))
        non_blank = [run for run in runs if run.text.strip()]
        if style.level:
            self._write_notes()
            self._markdown.add_heading(style.level, runs_to_markdown(runs, allow_bold=False))
        elif style.list and non_blank:
            self._markdown.add_list_item(
                style.depth, self._numbering.next_marker(style.list, style.depth), runs_to_markdown(runs)
            )
        elif non_blank and (style.is_code or all(run.code for run in non_blank)):
            for line in runs_to_text(runs).split(LINE_BREAK):
                self._markdown.add_code_line(line.rstrip())
        elif style.is_quote and non_blank:
            self._markdown.add_block("> " + runs_to_markdown(runs).replace(LINE_BREAK, f"{LINE_BREAK}> "))
        else:
            self._markdown.add_paragraph(runs_to_markdown(runs))
        if next(element.iter("txbxContent"), None) is not None:  # text boxes anchored in the paragraph
            for box in _text_boxes(element):
                self._write_blocks(_children(box))

    def _write_table(self, table: Element) -> None:
        rows = [[*self._cells(row)] for row in _table_rows(table)]
        if sum(map(len, rows)) == 1:  # a box around text, not a table
            self._markdown.add_block(rows[0][0])
            return
        table_look = table.find("tblPr/tblLook")
        has_header_row = table_look is None or table_look.get(f"{_W}firstRow", "1") not in ("0", "false", "off")
        self._markdown.add_block(markdown_table(rows, has_header_row=has_header_row))

    def _cells(self, row: Element) -> Iterator[str]:
        count = 0
        for cell in _unwrapped_children(row, "tc"):
            properties = cell.find("tcPr")
            merged = properties.find("vMerge") if properties is not None else None
            is_continued = merged is not None and merged.get(f"{_W}val", "continue") == "continue"
            yield "" if is_continued else self._render_separately(cell)
            span = property_value(properties, "gridSpan")
            extra = min(int(span) - 1 if span.isdecimal() and len(span) < 4 else 0, _MAX_COLUMNS - count)
            yield from [""] * extra
            count += 1 + max(extra, 0)
            if count >= _MAX_COLUMNS:
                return

    def _render_separately(self, element: Element) -> str:
        """Return the Markdown of the blocks in an element."""
        outer, self._markdown = self._markdown, OfficeMarkdownWriter()
        self._write_blocks(_children(element))
        text, self._markdown = self._markdown.to_markdown(), outer
        return text

    # ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────────

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
        properties = run.find("rPr")
        if properties is not None and is_on(properties, "vanish"):
            return
        style = self._styles.run_style(properties)
        for child in run:
            href = next((link for link in reversed(self._open_fields) if link.startswith(_SCHEMES)), href)
            match child.tag:
                case "t" | "tab" | "cr" | "noBreakHyphen" | "ptab":
                    yield TextRun(_TEXT_BY_TAG.get(child.tag) or child.text or "", *style, href)
                case "br":
                    yield TextRun(
                        LINE_BREAK if child.get(f"{_W}type", "textWrapping") == "textWrapping" else " ", *style, href
                    )
                case "fldChar":
                    self._field(child.get(f"{_W}fldCharType", ""))
                case "instrText":
                    if self._open_fields:
                        self._open_fields[-1] += child.text or ""
                case "footnoteReference" | "endnoteReference":
                    yield from self._note_reference(child.tag.removesuffix("Reference"), child.get(f"{_W}id", ""))
                case "drawing" | "pict" | "object" | "AlternateContent":
                    yield from _images(child)

    def _field(self, kind: str) -> None:
        """Handle the parts of a field, which are spread over several runs: its instruction, then its result."""
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
            notes, self._pending_notes = self._pending_notes, []
            for number, note in notes:
                text = " ".join(self._render_separately(note).split())
                self._markdown.add_block(f"[^{number}]: {text}")


_RELATED_PARTS = ("styles", "numbering", "footnotes", "endnotes")
_FIELD_LINK = re.compile(r'\s*HYPERLINK\s+"([^"]{1,2000})"')
_SCHEMES = ("http://", "https://")


def _field_link(field: str) -> str:
    match = _FIELD_LINK.match(field)
    return match[1] if match else ""


def _children(element: Element | None) -> Iterator[Element]:
    yield from element if element is not None else ()


def _table_rows(table: Element) -> Iterator[Element]:
    yield from _unwrapped_children(table, "tr")


def _unwrapped_children(element: Element, tag: str) -> Iterator[Element]:
    """Yield the children with this tag, including those in wrappers of forms and of tracked changes."""
    for child in element:
        if child.tag == tag:
            yield child
        elif child.tag in ("sdt", "sdtContent", "customXml", "ins"):
            yield from _unwrapped_children(child, tag)


def _images(drawing: Element) -> Iterator[TextRun]:
    for properties in drawing.iter():
        if properties.tag in ("docPr", "shape") and (alt := properties.get("descr") or properties.get("alt") or ""):
            yield TextRun(f"![{escape_markdown(' '.join(alt.split()))}]()", is_markdown=True)
            return


def _text_boxes(element: Element) -> Iterator[Element]:
    """Yield the text boxes in an element, without the fallback copies for old programs."""
    for child in element:
        if child.tag == "txbxContent":
            yield child
        elif child.tag != "Fallback":
            yield from _text_boxes(child)
