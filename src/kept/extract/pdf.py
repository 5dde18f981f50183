"""PDF: the words of each page, a section a page. Browsers open `#page=3`, so that is its anchor."""

from __future__ import annotations

from itertools import islice
from typing import Any

import pypdfium2  # type: ignore[import-untyped, unused-ignore]

from kept.extract.sections import LONGEST_HEADING, Extracted, SectionData, Unreadable, tree_of
from kept.extract.text import normalise

MOST_PAGES = 5_000
MOST_CHARACTERS = 20_000_000


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
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


def _read(document: Any) -> Extracted | Unreadable:
    if len(document) > MOST_PAGES:
        return Unreadable(reason=f"a PDF of more than {MOST_PAGES:,} pages")
    nodes: list[SectionData] = []
    length = 0
    for number, page in enumerate(islice(document, MOST_PAGES), start=1):
        words = _words(page)
        length += len(words)
        if length > MOST_CHARACTERS:
            return Unreadable(reason=f"a PDF of more than {MOST_CHARACTERS:,} characters")
        if words:
            heading = f"Page {number}"
            content = f"## {heading}\n\n{words}"
            nodes.append(SectionData(heading=heading, level=2, anchor=f"page={number}", content=content))
    if not nodes:
        return Unreadable(reason="a PDF without words: pictures of pages, perhaps")
    title = " ".join(document.get_metadata_value("Title").replace("\0", "").split())[:LONGEST_HEADING]
    return Extracted(title=title, markdown="\n\n".join([node.content for node in nodes]), tree=tree_of(nodes))


def _words(page: Any) -> str:
    text = page.get_textpage()
    try:
        words = text.get_text_bounded().replace("\0", "").replace("\ufffe", "")  # the latter for hyphens at line ends
        return normalise(words.encode("utf-8", "replace").decode()).strip()
    finally:
        text.close()
        page.close()
