"""Read presentations (.pptx): each slide is a section under its title, with the speaker's notes.

A presentation is converted to Markdown, which is read by the Markdown reader. Hidden slides are left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from kept.extract.html.markdown_text import escape_markdown
from kept.extract.html.tables import markdown_table
from kept.extract.markdown import reader
from kept.extract.office.office_markdown import (
    LINE_BREAK,
    OfficeMarkdownWriter,
    TextRun,
    is_monospace,
    runs_to_markdown,
    runs_to_text,
)
from kept.extract.office.zip_container import (
    RELATIONSHIP_NAMESPACE,
    DamagedContainer,
    Relationship,
    ZipContainer,
    read_container,
)
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, Unreadable
from kept.extract.text import normalize_text

MAX_SLIDES = 2_000

_TITLE_PLACEHOLDERS = frozenset({"title", "ctrTitle"})
_REPEATED_PLACEHOLDERS = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})  # on every slide
_BULLETED_PLACEHOLDERS = frozenset({"body", "obj", ""})  # their paragraphs are list items unless marked otherwise
_ON_VALUES = ("1", "true", "on")


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    return read_container(body, "a presentation", _read)


def _read(package: ZipContainer) -> Extraction | Unreadable:
    main = package.main_part_name()
    relations = package.relationships(main)
    root = package.read_xml(main)
    slides = root.findall("sldIdLst/sldId") if root is not None else []
    if len(slides) > MAX_SLIDES:
        raise DamagedContainer(f"of more than {MAX_SLIDES:,} slides")
    writer = OfficeMarkdownWriter()
    for number, entry in enumerate(slides, start=1):
        relation = relations.get(entry.get(f"{RELATIONSHIP_NAMESPACE}id", ""))
        slide = package.read_xml(relation.target) if relation else None
        if relation and slide is not None and slide.get("show", "1") in _ON_VALUES:
            _write_slide(package, relation.target, slide, number, writer)
    extraction = reader.extract(normalize_text(writer.to_markdown()).encode("utf-8", "replace"), "utf-8")
    if isinstance(extraction, Unreadable):
        return extraction
    return replace(extraction, title=(package.title() or extraction.title)[:MAX_HEADING_LENGTH])


def _write_slide(package: ZipContainer, name: str, slide: Element, number: int, writer: OfficeMarkdownWriter) -> None:
    relations = package.relationships(name)
    shapes = [*_shapes(slide.find("cSld/spTree"))]
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLE_PLACEHOLDERS]
    title = " ".join(runs_to_markdown([*_paragraph_runs(shape, relations)], allow_bold=False) for shape in titles)
    writer.add_heading(2, title.replace(LINE_BREAK, " ").strip() or f"Slide {number}")
    for shape in shapes:
        if shape not in titles:
            _write_shape(shape, relations, writer)
    notes_name = next((one.target for one in relations.values() if one.kind == "notesSlide"), "")
    page = package.read_xml(notes_name)
    notes = OfficeMarkdownWriter()
    for shape in _shapes(page.find("cSld/spTree")) if page is not None else ():
        if _placeholder(shape) == "body":
            _write_text(shape, {}, notes, bulleted=False)
    if text := notes.to_markdown():
        writer.add_block(f"**Notes**\n\n{text}")


def _shapes(tree: Element | None) -> Iterator[Element]:
    """Yield the shapes on a slide in order, including those in groups."""
    for shape in tree if tree is not None else ():
        if shape.tag in ("grpSp", "AlternateContent", "Choice"):
            yield from _shapes(shape)
        elif shape.tag in ("sp", "pic", "graphicFrame", "cxnSp"):
            yield shape


def _placeholder(shape: Element) -> str | None:
    """Return the type of its placeholder in the layout ("title", "body", "ftr"); None if it is in none."""
    element = shape.find("nvSpPr/nvPr/ph")
    return element.get("type", "") if element is not None else None


def _write_shape(shape: Element, relations: dict[str, Relationship], writer: OfficeMarkdownWriter) -> None:
    placeholder = _placeholder(shape)
    if placeholder in _REPEATED_PLACEHOLDERS:
        return
    for properties in shape.findall("nvPicPr/cNvPr"):
        if alt := " ".join((properties.get("descr") or "").split()):
            writer.add_block(f"![{escape_markdown(alt)}]()")
    if (table := shape.find("graphic/graphicData/tbl")) is not None:
        rows = [[_cell_markdown(cell, relations) for cell in row.findall("tc")] for row in table.findall("tr")]
        table_properties = table.find("tblPr")
        has_header_row = table_properties is None or table_properties.get("firstRow", "0") in _ON_VALUES
        writer.add_block(markdown_table(rows, has_header_row=has_header_row))
    _write_text(shape, relations, writer, bulleted=placeholder in _BULLETED_PLACEHOLDERS)


def _cell_markdown(cell: Element, relations: dict[str, Relationship]) -> str:
    writer = OfficeMarkdownWriter()
    _write_text(cell, relations, writer, bulleted=False)
    return writer.to_markdown()


def _write_text(
    shape: Element, relations: dict[str, Relationship], writer: OfficeMarkdownWriter, *, bulleted: bool
) -> None:
    paragraphs = shape.findall("txBody/p")
    bulleted = bulleted and len(paragraphs) > 1
    counters = [0] * 9
    for paragraph in paragraphs:
        runs = [*_runs(paragraph, relations)]
        non_blank = [run for run in runs if run.text.strip()]
        properties = paragraph.find("pPr")
        bullet_tags = {one.tag for one in properties} if properties is not None else set()
        level = properties.get("lvl", "0") if properties is not None else "0"
        depth = int(level) if level in "012345678" else 0
        if not non_blank:
            continue
        if all(run.code for run in non_blank):
            for line in runs_to_text(runs).split(LINE_BREAK):
                writer.add_code_line(line.rstrip())
        elif "buAutoNum" in bullet_tags:
            counters[depth] += 1
            counters[depth + 1 :] = [0] * (8 - depth)
            writer.add_list_item(depth, f"{counters[depth]}.", runs_to_markdown(runs))
        elif "buChar" in bullet_tags or "buBlip" in bullet_tags or (bulleted and "buNone" not in bullet_tags):
            writer.add_list_item(depth, "-", runs_to_markdown(runs))
        else:
            writer.add_paragraph(runs_to_markdown(runs))


def _paragraph_runs(shape: Element, relations: dict[str, Relationship]) -> Iterator[TextRun]:
    for paragraph in shape.findall("txBody/p"):
        yield from _runs(paragraph, relations)
        yield TextRun(" ")


def _runs(paragraph: Element, relations: dict[str, Relationship]) -> Iterator[TextRun]:
    for run in paragraph:
        if run.tag == "br":
            yield TextRun(LINE_BREAK)
        elif run.tag in ("r", "fld"):
            properties = run.find("rPr")
            text = run.findtext("t") or ""
            if properties is None:
                yield TextRun(text)
                continue
            font, click = properties.find("latin"), properties.find("hlinkClick")
            link = relations.get(click.get(f"{RELATIONSHIP_NAMESPACE}id", "")) if click is not None else None
            yield TextRun(
                text,
                bold=properties.get("b") in _ON_VALUES,
                italic=properties.get("i") in _ON_VALUES,
                code=font is not None and is_monospace(font.get("typeface")),
                href=link.target if link and link.is_external else "",
            )
