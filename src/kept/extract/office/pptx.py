"""Slides (.pptx): a section a slide, under its title, with the speaker's notes. Hidden slides are left out.

They are written out as Markdown and read as that.
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
_REPEATED_PLACEHOLDERS = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})  # what every slide repeats
_BULLETED_PLACEHOLDERS = frozenset(
    {"body", "obj", ""}
)  # placeholders whose paragraphs are a list, unless they say otherwise
_ON_VALUES = ("1", "true", "on")


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    return read_container(body, "a presentation", _read)


def _read(package: ZipContainer) -> Extraction | Unreadable:
    main = package.main_part_name()
    relations = package.relationships(main)
    root = package.read_xml(main)
    listed = root.findall("sldIdLst/sldId") if root is not None else []
    if len(listed) > MAX_SLIDES:
        raise DamagedContainer(f"of more than {MAX_SLIDES:,} slides")
    prose = OfficeMarkdownWriter()
    for number, one in enumerate(listed, start=1):
        relation = relations.get(one.get(f"{RELATIONSHIP_NAMESPACE}id", ""))
        slide = package.read_xml(relation.target) if relation else None
        if relation and slide is not None and slide.get("show", "1") in _ON_VALUES:
            _write_slide(package, relation.target, slide, number, prose)
    found = reader.extract(normalize_text(prose.to_markdown()).encode("utf-8", "replace"), "utf-8")
    if isinstance(found, Unreadable):
        return found
    return replace(found, title=(package.title() or found.title)[:MAX_HEADING_LENGTH])


def _write_slide(package: ZipContainer, name: str, slide: Element, number: int, prose: OfficeMarkdownWriter) -> None:
    relations = package.relationships(name)
    shapes = [*_shapes(slide.find("cSld/spTree"))]
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLE_PLACEHOLDERS]
    title = " ".join(runs_to_markdown([*_paragraph_runs(shape, relations)], allow_bold=False) for shape in titles)
    prose.add_heading(2, title.replace(LINE_BREAK, " ").strip() or f"Slide {number}")
    for shape in shapes:
        if shape not in titles:
            _write_shape(shape, relations, prose)
    notes = next((one.target for one in relations.values() if one.kind == "notesSlide"), "")
    page = package.read_xml(notes)
    said = OfficeMarkdownWriter()
    for shape in _shapes(page.find("cSld/spTree")) if page is not None else ():
        if _placeholder(shape) == "body":
            _write_text(shape, {}, said, bulleted=False)
    if text := said.to_markdown():
        prose.add_block(f"**Notes**\n\n{text}")


def _shapes(tree: Element | None) -> Iterator[Element]:
    """Everything on a slide, in its order, groups taken apart."""
    for shape in tree if tree is not None else ():
        if shape.tag in ("grpSp", "AlternateContent", "Choice"):
            yield from _shapes(shape)
        elif shape.tag in ("sp", "pic", "graphicFrame", "cxnSp"):
            yield shape


def _placeholder(shape: Element) -> str | None:
    """The place that the layout has for it: "title", "body", "ftr". None for what stands on the slide by itself."""
    found = shape.find("nvSpPr/nvPr/ph")
    return found.get("type", "") if found is not None else None


def _write_shape(shape: Element, relations: dict[str, Relationship], prose: OfficeMarkdownWriter) -> None:
    place = _placeholder(shape)
    if place in _REPEATED_PLACEHOLDERS:
        return
    for about in shape.findall("nvPicPr/cNvPr"):
        if alt := " ".join((about.get("descr") or "").split()):
            prose.add_block(f"![{escape_markdown(alt)}]()")
    if (table := shape.find("graphic/graphicData/tbl")) is not None:
        rows = [[_cell_markdown(cell, relations) for cell in row.findall("tc")] for row in table.findall("tr")]
        about_table = table.find("tblPr")
        headed = about_table is None or about_table.get("firstRow", "0") in _ON_VALUES
        prose.add_block(markdown_table(rows, has_header_row=headed))
    _write_text(shape, relations, prose, bulleted=place in _BULLETED_PLACEHOLDERS)


def _cell_markdown(cell: Element, relations: dict[str, Relationship]) -> str:
    prose = OfficeMarkdownWriter()
    _write_text(cell, relations, prose, bulleted=False)
    return prose.to_markdown()


def _write_text(
    shape: Element, relations: dict[str, Relationship], prose: OfficeMarkdownWriter, *, bulleted: bool
) -> None:
    paragraphs = shape.findall("txBody/p")
    bulleted = bulleted and len(paragraphs) > 1
    counted = [0] * 9
    for paragraph in paragraphs:
        runs = [*_runs(paragraph, relations)]
        said = [run for run in runs if run.text.strip()]
        about = paragraph.find("pPr")
        own = {one.tag for one in about} if about is not None else set()
        level = about.get("lvl", "0") if about is not None else "0"
        depth = int(level) if level in "012345678" else 0
        if not said:
            continue
        if all(run.code for run in said):
            for line in runs_to_text(runs).split(LINE_BREAK):
                prose.add_code_line(line.rstrip())
        elif "buAutoNum" in own:
            counted[depth] += 1
            counted[depth + 1 :] = [0] * (8 - depth)
            prose.add_list_item(depth, f"{counted[depth]}.", runs_to_markdown(runs))
        elif "buChar" in own or "buBlip" in own or (bulleted and "buNone" not in own):
            prose.add_list_item(depth, "-", runs_to_markdown(runs))
        else:
            prose.add_paragraph(runs_to_markdown(runs))


def _paragraph_runs(shape: Element, relations: dict[str, Relationship]) -> Iterator[TextRun]:
    for paragraph in shape.findall("txBody/p"):
        yield from _runs(paragraph, relations)
        yield TextRun(" ")


def _runs(paragraph: Element, relations: dict[str, Relationship]) -> Iterator[TextRun]:
    for run in paragraph:
        if run.tag == "br":
            yield TextRun(LINE_BREAK)
        elif run.tag in ("r", "fld"):
            about = run.find("rPr")
            text = run.findtext("t") or ""
            if about is None:
                yield TextRun(text)
                continue
            font, click = about.find("latin"), about.find("hlinkClick")
            link = relations.get(click.get(f"{RELATIONSHIP_NAMESPACE}id", "")) if click is not None else None
            yield TextRun(
                text,
                bold=about.get("b") in _ON_VALUES,
                italic=about.get("i") in _ON_VALUES,
                code=font is not None and is_monospace(font.get("typeface")),
                href=link.target if link and link.is_external else "",
            )
