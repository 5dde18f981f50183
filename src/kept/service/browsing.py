"""Browsing: the documents of a source, the outline of one, and which of its links are kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from kept.errors import NotFound
from kept.model.document import Lifecycle
from kept.search.search import title_from_url
from kept.service.lookup import find_readable_generation, find_source
from kept.store import documents, sections
from kept.store.database import ReadableDatabase, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSummary:
    """A document as a list shows it."""

    document: str
    url: str
    title: str
    lifecycle: Lifecycle
    fetched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHeading:
    """A heading of a document, and the anchor it is found by."""

    level: int
    text: str
    anchor: str


async def list_document_summaries(
    db: ReadableDatabase, label: str, *, generation: int | None = None, after: str = "", limit: int = 1000
) -> list[DocumentSummary]:
    """What a generation of a source shows (the active one, unless another is named), by URL, from a URL on."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        number = generation if generation is not None else source.active_generation
        if number is None:
            return []
        await find_readable_generation(snapshot, source, number)
        rows = await documents.of_generation(snapshot, source.id, number, after=after, limit=limit)
    return [
        DocumentSummary(
            document=str(row["id"]),
            url=row["url"],
            title=row["title"] or title_from_url(row["url"]),
            lifecycle=Lifecycle(row["lifecycle"]),
            fetched_at=parse_time(row["fetched_at"]),
        )
        for row in rows
    ]


async def get_outline(db: ReadableDatabase, document: str, generation: int) -> list[DocumentHeading]:
    """The headings of a document that can be pointed at, in its order."""
    async with db.snapshot() as snapshot:
        row = await documents.version_in_generation(snapshot, document, generation)
        if row is None:
            raise NotFound(f"Generation {generation} does not show {document}.")
        found = await sections.of_content(snapshot, row["content_id"])
    headings: dict[str, DocumentHeading] = {}  # the parts of a long section share its anchor
    for section in found:
        if section.anchor and section.heading:
            heading = DocumentHeading(level=section.level, text=section.heading, anchor=section.anchor)
            headings.setdefault(heading.anchor, heading)
    return list(headings.values())


async def find_documents_at(db: ReadableDatabase, label: str, generation: int, urls: Sequence[str]) -> dict[str, str]:
    """The ids of the documents that a generation shows at these URLs; none for what it does not show."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        return await documents.document_ids_by_url(snapshot, source.id, generation, urls)
