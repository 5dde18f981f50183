"""Workbooks (.xlsx): a section a sheet, its cells as a table, as a person sees them. Hidden sheets are left out.

Formulas are what they came to when the workbook was saved. A sheet is read no further than its first rows: what goes on
for pages is data, and no documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from kept.extract.cell_formats import General, Shown, formats_of
from kept.extract.html_tables import table_of
from kept.extract.html_words import link_target, written
from kept.extract.markdown import Slugs
from kept.extract.package import RELATION, Package, opened
from kept.extract.sections import LONGEST_HEADING, Extracted, SectionData, Unreadable, tree_of

MOST_SHEETS = 200
MOST_ROWS = 1_000
MOST_COLUMNS = 50

_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})$")
_LAST_ROW = re.compile(r":[A-Z]{1,3}(\d{1,7})$")


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    return opened(body, "a workbook", _read)


class _Cell(NamedTuple):
    kind: str
    value: str
    style: str


class _Sheet(NamedTuple):
    name: str
    rows: list[dict[int, _Cell]]
    links: dict[tuple[int, int], str]  # row and column -> where it leads
    length: int  # rows it says it has
    is_cut: bool


def _read(package: Package) -> Extracted | Unreadable:
    main = package.main()
    relations = package.relations(main)
    book = package.xml(main)
    places = {one.kind: one.target for one in relations.values()}
    sheets: list[_Sheet] = []
    for one in book.findall("sheets/sheet")[:MOST_SHEETS] if book is not None else ():
        relation = relations.get(one.get(f"{RELATION}id", ""))
        if relation and relation.kind == "worksheet" and one.get("state", "visible") == "visible":
            sheets.append(_sheet(package, relation.target, one.get("name", "")))
    strings = _strings(package, places.get("sharedStrings", ""), sheets)
    about = book.find("workbookPr") if book is not None else None
    since_1904 = about is not None and about.get("date1904", "0") in ("1", "true")
    formats = formats_of(package.xml(places.get("styles", "")), since_1904=since_1904)
    slugs = Slugs()
    nodes = []
    for sheet in sheets:
        if table := _table(sheet, strings, formats):
            heading = " ".join(sheet.name.split())[:LONGEST_HEADING] or "Sheet"
            content = f"## {written(heading)}\n\n{table}"
            nodes.append(SectionData(heading=heading, level=2, anchor=slugs.next(heading) or None, content=content))
    if not nodes:
        return Unreadable(reason="a workbook with nothing in it")
    markdown = "\n\n".join([node.content for node in nodes])
    hrefs = list(dict.fromkeys(link for sheet in sheets for link in sheet.links.values()))
    return Extracted(title=package.title()[:LONGEST_HEADING], markdown=markdown, tree=tree_of(nodes), hrefs=hrefs)


def _sheet(package: Package, name: str, called: str) -> _Sheet:
    """The first rows of a sheet, as they are stored."""
    rows: list[dict[int, _Cell]] = []
    links: dict[tuple[int, int], str] = {}
    relations = package.relations(name)
    length, is_cut = 0, False
    for element in package.elements(name, "dimension", "row", "hyperlink"):
        if element.tag == "dimension":
            last = _LAST_ROW.search(element.get("ref", ""))
            length = int(last[1]) if last else 0
        elif element.tag == "row":
            if len(rows) >= MOST_ROWS:
                is_cut = True
                break
            rows.append(_row(element))
        else:
            relation = relations.get(element.get(f"{RELATION}id", ""))
            place = _REFERENCE.match(element.get("ref", "").partition(":")[0])
            if relation and relation.external and place and relation.target.startswith(("http:", "https:")):
                links[int(place[2]), _column(place[1])] = relation.target
    return _Sheet(called, rows, links, length, is_cut)


_ROW = -1  # where a row keeps its own number


def _row(element: Element) -> dict[int, _Cell]:
    number = element.get("r", "")
    row = {_ROW: _Cell("", number if number.isdecimal() and len(number) < 8 else "0", "")}
    column = -1
    for cell in element:
        place = _REFERENCE.match(cell.get("r", ""))
        column = _column(place[1]) if place else column + 1
        kind = cell.get("t", "n")
        text = _words(cell.find("is")) if kind == "inlineStr" else cell.findtext("v") or ""
        if text.strip() and column < MOST_COLUMNS:
            row[column] = _Cell(kind, text, cell.get("s", ""))
    return row


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _words(text: Element | None) -> str:
    """A text, or its runs without their looks; what only says how to pronounce it is left out."""
    if text is None:
        return ""
    return "".join([one.text or "" for part in text if part.tag != "rPh" for one in part.iter("t")])


def _strings(package: Package, name: str, sheets: list[_Sheet]) -> list[str]:
    """The texts that the cells share, as far as they are used."""
    used = [
        int(cell.value)
        for sheet in sheets
        for row in sheet.rows
        for cell in row.values()
        if cell.kind == "s" and cell.value.isdecimal() and len(cell.value) < 10
    ]
    strings: list[str] = []
    for element in package.elements(name, "si") if used else ():
        strings.append(_words(element))
        if len(strings) > max(used):
            break
    return strings


def _table(sheet: _Sheet, strings: list[str], formats: dict[str, Shown]) -> str:
    columns = [column for row in sheet.rows for column in row if column != _ROW]
    if not columns:
        return ""
    first, last = min(columns), max(columns)
    rows = []
    for row in sheet.rows:
        cells = [_shown(row.get(column), strings, formats) for column in range(first, last + 1)]
        number = int(row[_ROW].value)
        for at in range(len(cells) if sheet.links else 0):
            if (target := sheet.links.get((number, first + at))) and cells[at]:
                cells[at] = f"[{cells[at]}]({link_target(target)})"
        rows.append(cells)
    table = table_of(rows, headed=True)
    if not sheet.is_cut:
        return table
    of = f" of {sheet.length:,}" if sheet.length > MOST_ROWS else ""
    return f"{table}\n\n*Only the first {MOST_ROWS:,}{of} rows are kept.*"


def _shown(cell: _Cell | None, strings: list[str], formats: dict[str, Shown]) -> str:
    if cell is None:
        return ""
    match cell.kind:
        case "s":
            at = int(cell.value) if cell.value.isdecimal() and len(cell.value) < 10 else -1
            text = strings[at] if 0 <= at < len(strings) else ""
        case "b":
            text = "TRUE" if cell.value == "1" else "FALSE"
        case "n":
            text = formats.get(cell.style, General())(cell.value)
        case _:
            text = cell.value
    return written("\n".join(filter(None, _lines(text))))


def _lines(text: str) -> Iterable[str]:
    return (" ".join(line.split()) for line in text.replace("\r", "\n").split("\n"))
