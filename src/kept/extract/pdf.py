"""Read PDF: the entries of its outline are the sections; without one, each page is.

Every page is a place with the anchor `page=3`, which browsers open. Running heads and page numbers are dropped. Lines
in a monospaced typeface are code.
"""

from __future__ import annotations

import ctypes
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice, pairwise
from typing import Any, Final

import pypdfium2  # type: ignore[import-untyped, unused-ignore]
import pypdfium2.raw as pdfium  # type: ignore[import-untyped, unused-ignore]

from kept.extract.html.markdown_text import fenced_code_block
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable, build_section_tree
from kept.extract.text import normalize_text
from kept.model.document import Place

MAX_PAGES = 5_000
MAX_CHARACTERS = 20_000_000
MAX_OUTLINE_ENTRIES = 20_000
MIN_RUNNING_PAGES = 3
"""Pages that begin or end with the same line, numbers aside, before it counts as a running head."""


@dataclass(frozen=True, slots=True)
class PdfLine:
    text: str
    is_code: bool = False


@dataclass(frozen=True, slots=True)
class OutlineEntry:
    """An entry of the outline."""

    title: str
    level: int
    page: int  # from 0


@dataclass(slots=True)
class PdfPart:
    """The lines under one heading."""

    heading: str
    level: int
    anchor: str | None
    lines: list[PdfLine]
    page_starts: list[tuple[int, int]]  # index of the first line of a page, and that page, from 0


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    try:
        document = pypdfium2.PdfDocument(body)
    except pypdfium2.PdfiumError as error:
        return Unreadable(reason=f"a PDF that does not open: {error}")
    try:
        return _read(document)
    except pypdfium2.PdfiumError as error:
        return Unreadable(reason=f"a PDF with a page that does not open: {error}")
    finally:
        document.close()


def _read(document: Any) -> Extraction | Unreadable:
    if len(document) > MAX_PAGES:
        return Unreadable(reason=f"a PDF of more than {MAX_PAGES:,} pages")
    pages: list[list[PdfLine]] = []
    length = 0
    for page in islice(document, MAX_PAGES):
        lines = _page_lines(page)
        length += sum(len(line.text) for line in lines)
        if length > MAX_CHARACTERS:
            return Unreadable(reason=f"a PDF of more than {MAX_CHARACTERS:,} characters")
        pages.append(lines)
    if not any(pages):
        return Unreadable(reason="a PDF without text, perhaps of scanned pages")
    entries = list(_outline(document))
    pages = _without_running_heads(pages, entries)
    parts = _split_by_outline(pages, entries) if entries else _split_by_page(pages)
    return _to_extraction(parts, _title(document, entries))


def _to_extraction(parts: list[PdfPart], title: str) -> Extraction:
    nodes: list[SectionNode] = []
    places: list[Place] = []
    intro, position = "", 0
    for part in parts:
        blocks = [f"{'#' * part.level} {part.heading}"] if part.heading else []
        start = position + sum(len(block) + 2 for block in blocks)
        starts = [*part.page_starts, (len(part.lines), -1)]
        for (first, page), (end, _) in pairwise(starts):
            text = _lines_to_markdown(part.lines[first:end])
            if text:
                if part.anchor != f"page={page + 1}":
                    places.append(Place(f"page={page + 1}", start))
                blocks.append(text)
                start += len(text) + 2
        content = "\n\n".join(blocks)
        if not content:
            continue
        if part.heading:
            nodes.append(SectionNode(heading=part.heading, level=part.level, anchor=part.anchor, content=content))
        else:
            intro = content
        position += len(content) + 2
    markdown = "\n\n".join(filter(None, [intro, *[node.content for node in nodes]]))
    return Extraction(title=title, markdown=markdown, tree=build_section_tree(nodes, intro=intro), places=tuple(places))


_NO_TITLE: Final = re.compile(
    r"untitled.*|microsoft word - .*|document\d*|.*\.(?:docx?|dvi|tex|pdf|indd|odt|fm|book)", re.IGNORECASE
)


def _title(document: Any, entries: list[OutlineEntry]) -> str:
    """Return the title of its metadata; where that is missing or the name of a file, the first heading."""
    title = _clean(document.get_metadata_value("Title"))
    if not title or _NO_TITLE.fullmatch(title):
        title = next((entry.title for entry in entries), "")
    return title


def _clean(text: str) -> str:
    return " ".join(text.replace("\0", "").encode("utf-8", "replace").decode().split())[:MAX_HEADING_LENGTH]


# ── Lines of a page ───────────────────────────────────────────────────────────────────────────────────────────────────

_FIXED_PITCH: Final = 1
_MONOSPACED: Final = re.compile(
    rb"mono|cour|typewriter|cmtt|lmtt|consol|menlo|code|fixed|inconsolata|sftt", re.IGNORECASE
)


def _page_lines(page: Any) -> list[PdfLine]:
    text_page = page.get_textpage()
    try:
        lines = []
        offset = 0
        for raw in text_page.get_text_range().splitlines(keepends=True):
            text = raw.replace("\0", "").replace("\ufffe", "")  # U+FFFE: a hyphen at the end of a line
            text = normalize_text(text.encode("utf-8", "replace").decode()).strip("\n").rstrip()
            if text.strip():
                first, last = len(raw) - len(raw.lstrip()), len(raw.rstrip()) - 1
                is_code = _is_monospaced(text_page, offset + first) and _is_monospaced(text_page, offset + last)
                lines.append(PdfLine(text, is_code))
            offset += len(raw)
        return lines
    finally:
        text_page.close()
        page.close()


def _is_monospaced(text_page: Any, index: int) -> bool:
    name, flags = ctypes.create_string_buffer(100), ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text_page, index, name, 100, flags)
    return bool(flags.value & _FIXED_PITCH) or _MONOSPACED.search(name.value) is not None


def _without_running_heads(pages: list[list[PdfLine]], entries: list[OutlineEntry]) -> list[list[PdfLine]]:
    """Drop the first and last lines that are the same on several pages, numbers aside, or repeat the outline."""
    pages = [list(lines) for lines in pages]
    first_pages: dict[str, int] = {}
    for entry in entries:
        first_pages.setdefault(_key(_NUMBER.sub("", entry.title)), entry.page)
    for index in (0, -1, 0, -1):
        repeated = Counter(_NUMBER.sub("#", lines[index].text) for lines in pages if lines)
        for number, lines in enumerate(pages):
            if not lines:
                continue
            text = lines[index].text
            words = _NUMBER.sub("", text)
            is_title = first_pages.get(_key(_CHAPTER.sub("", words)), number) != number and words != text
            if is_title or repeated[_NUMBER.sub("#", text)] >= MIN_RUNNING_PAGES:
                del lines[index]
    return pages


_NUMBER: Final = re.compile(r"\d+|\b[ivxl]+\b")
_CHAPTER: Final = re.compile(r"\b(?:chapter|appendix|part|section)\b", re.IGNORECASE)


def _lines_to_markdown(lines: list[PdfLine]) -> str:
    blocks: list[str] = []
    start = 0
    while start < len(lines):
        end = start
        while end < len(lines) and lines[end].is_code == lines[start].is_code:
            end += 1
        text = "\n".join([line.text for line in lines[start:end]])
        blocks.append(fenced_code_block(text, "") if lines[start].is_code else text)
        start = end
    return "\n\n".join(blocks)


# ── Sections ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def _outline(document: Any) -> Iterator[OutlineEntry]:
    """Yield the entries of the outline in the order of their pages, as far as they lead to one."""
    last_page = 0
    for bookmark in islice(document.get_toc(), MAX_OUTLINE_ENTRIES):
        destination = bookmark.get_dest()
        page = destination.get_index() if destination is not None else None
        title = _clean(bookmark.get_title() or "")
        if title and page is not None and last_page <= page < len(document):
            last_page = page
            yield OutlineEntry(title, min(bookmark.level + 1, 6), page)


def _split_by_page(pages: list[list[PdfLine]]) -> list[PdfPart]:
    return [
        PdfPart(f"Page {number + 1}", 2, f"page={number + 1}", lines, [(0, number)])
        for number, lines in enumerate(pages)
        if lines
    ]


def _split_by_outline(pages: list[list[PdfLine]], entries: list[OutlineEntry]) -> list[PdfPart]:
    """Cut the text where the titles of the outline stand on their pages; else at the top of their pages."""
    parts = [PdfPart("", 0, None, [], [])]
    waiting = list(reversed(entries))
    for number, lines in enumerate(pages):
        start = 0
        while waiting and waiting[-1].page == number:
            entry = waiting.pop()
            found = _find_title(lines, entry.title, start)
            end, after = found or (start, start)
            _add_lines(parts[-1], number, lines[start:end])
            parts.append(PdfPart(entry.title, entry.level, f"page={number + 1}", [], []))
            start = after
        _add_lines(parts[-1], number, lines[start:])
    return parts


def _add_lines(part: PdfPart, page: int, lines: list[PdfLine]) -> None:
    if lines:
        part.page_starts.append((len(part.lines), page))
        part.lines += lines


_NOT_WORDS: Final = re.compile(r"[\W_]+")
_NUMBER_BEFORE: Final = re.compile(r"(?:chapter|appendix|part|section)?\s*[A-Z]?[\d.]*[:.]?\s*", re.IGNORECASE)
_MAX_TITLE_LINES: Final = 3


def _find_title(lines: list[PdfLine], title: str, start: int) -> tuple[int, int] | None:
    """Return the range of the lines that are this title, with or without its number."""
    wanted = {_key(title), _key(title[_number_length(title) :])} - {""}
    for first in range(start, len(lines)):
        text = ""
        for last in range(first, min(first + _MAX_TITLE_LINES, len(lines))):
            text = f"{text} {lines[last].text}".strip()
            if _key(text) in wanted or _key(text[_number_length(text) :]) in wanted:
                return first, last + 1
    return None


def _key(text: str) -> str:
    return _NOT_WORDS.sub("", text).casefold()


def _number_length(text: str) -> int:
    match = _NUMBER_BEFORE.match(text)
    return match.end() if match else 0
