"""Slides (.pptx): a section a slide, under its title, with the speaker's notes. Hidden slides are left out.

They are written out as Markdown and read as that.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from xml.etree.ElementTree import Element

from kept.extract import markdown
from kept.extract.html_tables import table_of
from kept.extract.html_words import written
from kept.extract.package import RELATION, Damaged, Package, Relation, opened
from kept.extract.prose import BREAK, Prose, Run, inline, is_monospace, plain
from kept.extract.sections import LONGEST_HEADING, Extracted, Unreadable
from kept.extract.text import normalise

MOST_SLIDES = 2_000

_TITLES = frozenset({"title", "ctrTitle"})
_AROUND = frozenset({"dt", "ftr", "hdr", "sldNum", "sldImg"})  # what every slide repeats
_BULLETED = frozenset({"body", "obj", ""})  # placeholders whose paragraphs are a list, unless they say otherwise
_ON = ("1", "true", "on")


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    return opened(body, "a presentation", _read)


def _read(package: Package) -> Extracted | Unreadable:
    main = package.main()
    relations = package.relations(main)
    root = package.xml(main)
    listed = root.findall("sldIdLst/sldId") if root is not None else []
    if len(listed) > MOST_SLIDES:
        raise Damaged(f"of more than {MOST_SLIDES:,} slides")
    prose = Prose()
    for number, one in enumerate(listed, start=1):
        relation = relations.get(one.get(f"{RELATION}id", ""))
        slide = package.xml(relation.target) if relation else None
        if relation and slide is not None and slide.get("show", "1") in _ON:
            _slide(package, relation.target, slide, number, prose)
    found = markdown.extract(normalise(prose.written()).encode("utf-8", "replace"), "utf-8")
    if isinstance(found, Unreadable):
        return found
    return replace(found, title=(package.title() or found.title)[:LONGEST_HEADING])


def _slide(package: Package, name: str, slide: Element, number: int, prose: Prose) -> None:
    relations = package.relations(name)
    shapes = [*_shapes(slide.find("cSld/spTree"))]
    titles = [shape for shape in shapes if _placeholder(shape) in _TITLES]
    title = " ".join(inline([*_paragraph_runs(shape, relations)], bold=False) for shape in titles)
    prose.heading(2, title.replace(BREAK, " ").strip() or f"Slide {number}")
    for shape in shapes:
        if shape not in titles:
            _shape(shape, relations, prose)
    notes = next((one.target for one in relations.values() if one.kind == "notesSlide"), "")
    page = package.xml(notes)
    said = Prose()
    for shape in _shapes(page.find("cSld/spTree")) if page is not None else ():
        if _placeholder(shape) == "body":
            _text(shape, {}, said, bulleted=False)
    if text := said.written():
        prose.block(f"**Notes**\n\n{text}")


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


def _shape(shape: Element, relations: dict[str, Relation], prose: Prose) -> None:
    place = _placeholder(shape)
    if place in _AROUND:
        return
    for about in shape.findall("nvPicPr/cNvPr"):
        if alt := " ".join((about.get("descr") or "").split()):
            prose.block(f"![{written(alt)}]()")
    if (table := shape.find("graphic/graphicData/tbl")) is not None:
        rows = [[_cell(cell, relations) for cell in row.findall("tc")] for row in table.findall("tr")]
        about_table = table.find("tblPr")
        headed = about_table is None or about_table.get("firstRow", "0") in _ON
        prose.block(table_of(rows, headed=headed))
    _text(shape, relations, prose, bulleted=place in _BULLETED)


def _cell(cell: Element, relations: dict[str, Relation]) -> str:
    prose = Prose()
    _text(cell, relations, prose, bulleted=False)
    return prose.written()


def _text(shape: Element, relations: dict[str, Relation], prose: Prose, *, bulleted: bool) -> None:
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
            for line in plain(runs).split(BREAK):
                prose.code(line.rstrip())
        elif "buAutoNum" in own:
            counted[depth] += 1
            counted[depth + 1 :] = [0] * (8 - depth)
            prose.item(depth, f"{counted[depth]}.", inline(runs))
        elif "buChar" in own or "buBlip" in own or (bulleted and "buNone" not in own):
            prose.item(depth, "-", inline(runs))
        else:
            prose.paragraph(inline(runs))


def _paragraph_runs(shape: Element, relations: dict[str, Relation]) -> Iterator[Run]:
    for paragraph in shape.findall("txBody/p"):
        yield from _runs(paragraph, relations)
        yield Run(" ")


def _runs(paragraph: Element, relations: dict[str, Relation]) -> Iterator[Run]:
    for run in paragraph:
        if run.tag == "br":
            yield Run(BREAK)
        elif run.tag in ("r", "fld"):
            about = run.find("rPr")
            text = run.findtext("t") or ""
            if about is None:
                yield Run(text)
                continue
            font, click = about.find("latin"), about.find("hlinkClick")
            link = relations.get(click.get(f"{RELATION}id", "")) if click is not None else None
            yield Run(
                text,
                bold=about.get("b") in _ON,
                italic=about.get("i") in _ON,
                code=font is not None and is_monospace(font.get("typeface")),
                href=link.target if link and link.external else "",
            )
