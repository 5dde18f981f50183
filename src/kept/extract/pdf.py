"""Read PDF: the text of each page is one section. Its anchor is `page=3`, which browsers open."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pypdfium2  # type: ignore[import-untyped, unused-ignore]

from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable, build_section_tree
from kept.extract.text import normalize_text

MAX_PAGES = 5_000
MAX_CHARACTERS = 20_000_000


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
    nodes: list[SectionNode] = []
    length = 0
    for number, page in enumerate(islice(document, MAX_PAGES), start=1):
        text = _page_text(page)
        length += len(text)
        if length > MAX_CHARACTERS:
            return Unreadable(reason=f"a PDF of more than {MAX_CHARACTERS:,} characters")
        if text:
            heading = f"Page {number}"
            content = f"## {heading}\n\n{text}"
            nodes.append(SectionNode(heading=heading, level=2, anchor=f"page={number}", content=content))
    if not nodes:
        return Unreadable(reason="a PDF without text, perhaps of scanned pages")
    title = " ".join(document.get_metadata_value("Title").replace("\0", "").split())[:MAX_HEADING_LENGTH]
    return Extraction(
        title=title, markdown="\n\n".join([node.content for node in nodes]), tree=build_section_tree(nodes)
    )


def _page_text(page: Any) -> str:
    text_page = page.get_textpage()
    try:
        text = (
            text_page.get_text_bounded().replace("\0", "").replace("\ufffe", "")
        )  # U+FFFE: a hyphen at the end of a line
        return normalize_text(text.encode("utf-8", "replace").decode()).strip()
    finally:
        text_page.close()
        page.close()
