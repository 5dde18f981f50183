"""Read workbooks (.xlsx): each sheet is a section with a table of its cells as displayed. Hidden sheets are left out.

Formulas have the values that were saved. Only the first rows of a sheet are read: longer ones are data, not
documentation.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import NamedTuple
from xml.etree.ElementTree import Element

from kept.extract.html.markdown_text import escape_link_target, escape_markdown
from kept.extract.html.tables import markdown_table
from kept.extract.markdown.reader import HeadingSlugs
from kept.extract.office.cell_formats import CellFormat, GeneralFormat, parse_cell_formats
from kept.extract.office.zip_container import RELATIONSHIP_NAMESPACE, ZipContainer, read_container
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable, build_section_tree

MAX_SHEETS = 200
MAX_ROWS = 1_000
MAX_COLUMNS = 50

_CELL_REFERENCE = re.compile(r"([A-Z]{1,3})(\d{1,7})$")
_LAST_ROW = re.compile(r":[A-Z]{1,3}(\d{1,7})$")


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    return read_container(body, "a workbook", _read)


class _Cell(NamedTuple):
    kind: str
    value: str
    style: str


class _Sheet(NamedTuple):
    name: str
    rows: list[dict[int, _Cell]]
    links: dict[tuple[int, int], str]  # (row, column) -> target
    length: int  # declared number of rows
    is_cut: bool


def _read(package: ZipContainer) -> Extraction | Unreadable:
    main = package.main_part_name()
    relations = package.relationships(main)
    workbook = package.read_xml(main)
    part_names = {relation.kind: relation.target for relation in relations.values()}
    sheets: list[_Sheet] = []
    for element in workbook.findall("sheets/sheet")[:MAX_SHEETS] if workbook is not None else ():
        relation = relations.get(element.get(f"{RELATIONSHIP_NAMESPACE}id", ""))
        if relation and relation.kind == "worksheet" and element.get("state", "visible") == "visible":
            sheets.append(_read_sheet(package, relation.target, element.get("name", "")))
    strings = _shared_strings(package, part_names.get("sharedStrings", ""), sheets)
    properties = workbook.find("workbookPr") if workbook is not None else None
    since_1904 = properties is not None and properties.get("date1904", "0") in ("1", "true")
    formats = parse_cell_formats(package.read_xml(part_names.get("styles", "")), since_1904=since_1904)
    slugs = HeadingSlugs()
    nodes = []
    for sheet in sheets:
        if table := _sheet_table(sheet, strings, formats):
            heading = " ".join(sheet.name.split())[:MAX_HEADING_LENGTH] or "Sheet"
            content = f"## {escape_markdown(heading)}\n\n{table}"
            nodes.append(
                SectionNode(heading=heading, level=2, anchor=slugs.next_slug(heading) or None, content=content)
            )
    if not nodes:
        return Unreadable(reason="an empty workbook")
    markdown = "\n\n".join([node.content for node in nodes])
    hrefs = list(dict.fromkeys(link for sheet in sheets for link in sheet.links.values()))
    return Extraction(
        title=package.title()[:MAX_HEADING_LENGTH], markdown=markdown, tree=build_section_tree(nodes), hrefs=hrefs
    )


def _read_sheet(package: ZipContainer, name: str, title: str) -> _Sheet:
    """Read the first rows of a sheet."""
    rows: list[dict[int, _Cell]] = []
    links: dict[tuple[int, int], str] = {}
    relations = package.relationships(name)
    length, is_cut = 0, False
    for element in package.iter_elements(name, "dimension", "row", "hyperlink"):
        if element.tag == "dimension":
            last = _LAST_ROW.search(element.get("ref", ""))
            length = int(last[1]) if last else 0
        elif element.tag == "row":
            if len(rows) >= MAX_ROWS:
                is_cut = True
                break
            rows.append(_read_row(element))
        else:
            relation = relations.get(element.get(f"{RELATIONSHIP_NAMESPACE}id", ""))
            reference = _CELL_REFERENCE.match(element.get("ref", "").partition(":")[0])
            if relation and relation.is_external and reference and relation.target.startswith(("http:", "https:")):
                links[int(reference[2]), _column_index(reference[1])] = relation.target
    return _Sheet(title, rows, links, length, is_cut)


_ROW_NUMBER_KEY = -1  # the key of a row's own number


def _read_row(element: Element) -> dict[int, _Cell]:
    number = element.get("r", "")
    row = {_ROW_NUMBER_KEY: _Cell("", number if number.isdecimal() and len(number) < 8 else "0", "")}
    column = -1
    for cell in element:
        reference = _CELL_REFERENCE.match(cell.get("r", ""))
        column = _column_index(reference[1]) if reference else column + 1
        kind = cell.get("t", "n")
        text = _string_text(cell.find("is")) if kind == "inlineStr" else cell.findtext("v") or ""
        if text.strip() and column < MAX_COLUMNS:
            row[column] = _Cell(kind, text, cell.get("s", ""))
    return row


def _column_index(letters: str) -> int:
    number = 0
    for letter in letters:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _string_text(text: Element | None) -> str:
    """Return a text, or its runs joined, without phonetic hints."""
    if text is None:
        return ""
    return "".join([child.text or "" for part in text if part.tag != "rPh" for child in part.iter("t")])


def _shared_strings(package: ZipContainer, name: str, sheets: list[_Sheet]) -> list[str]:
    """Return the shared strings up to the last one that is used."""
    used = [
        int(cell.value)
        for sheet in sheets
        for row in sheet.rows
        for cell in row.values()
        if cell.kind == "s" and cell.value.isdecimal() and len(cell.value) < 10
    ]
    strings: list[str] = []
    for element in package.iter_elements(name, "si") if used else ():
        strings.append(_string_text(element))
        if len(strings) > max(used):
            break
    return strings


def _sheet_table(sheet: _Sheet, strings: list[str], formats: dict[str, CellFormat]) -> str:
    columns = [column for row in sheet.rows for column in row if column != _ROW_NUMBER_KEY]
    if not columns:
        return ""
    first, last = min(columns), max(columns)
    rows = []
    for row in sheet.rows:
        cells = [_cell_text(row.get(column), strings, formats) for column in range(first, last + 1)]
        number = int(row[_ROW_NUMBER_KEY].value)
        for index in range(len(cells) if sheet.links else 0):
            if (target := sheet.links.get((number, first + index))) and cells[index]:
                cells[index] = f"[{cells[index]}]({escape_link_target(target)})"
        rows.append(cells)
    table = markdown_table(rows, has_header_row=True)
    if not sheet.is_cut:
        return table
    of = f" of {sheet.length:,}" if sheet.length > MAX_ROWS else ""
    return f"{table}\n\n*Only the first {MAX_ROWS:,}{of} rows are kept.*"


def _cell_text(cell: _Cell | None, strings: list[str], formats: dict[str, CellFormat]) -> str:
    if cell is None:
        return ""
    match cell.kind:
        case "s":
            index = int(cell.value) if cell.value.isdecimal() and len(cell.value) < 10 else -1
            text = strings[index] if 0 <= index < len(strings) else ""
        case "b":
            text = "TRUE" if cell.value == "1" else "FALSE"
        case "n":
            text = formats.get(cell.style, GeneralFormat())(cell.value)
        case _:
            text = cell.value
    return escape_markdown("\n".join(filter(None, _lines(text))))


def _lines(text: str) -> Iterable[str]:
    return (" ".join(line.split()) for line in text.replace("\r", "\n").split("\n"))
