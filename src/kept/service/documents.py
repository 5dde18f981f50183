"""Reading: a document as a generation shows it, and what became of it."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import NotFound
from kept.model.document import Lifecycle
from kept.model.generation import GenerationState
from kept.search.search import title_from_url
from kept.service.lookup import find_document_id, find_readable_generation
from kept.service.reviewing import preview_held_document
from kept.store import documents, generations, sections, sources
from kept.store.compression import decompress
from kept.store.database import Connection, ReadableDatabase, Row, parse_optional_time, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentView:
    """A document, or a section of it, as one generation shows it."""

    document: str
    source: str
    version: str
    generation: int
    url: str
    title: str
    markdown: str
    lifecycle: Lifecycle
    fetched_at: datetime
    verified_at: datetime
    partial: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHistory:
    """What a document was."""

    document: str
    source: str
    lifecycle: Lifecycle
    first_seen: datetime
    since: datetime | None  # when it stopped being active
    reason: str | None  # and why
    versions: list[dict[str, Any]]


async def read_document(
    db: ReadableDatabase,
    what: str,
    *,
    section: str | None = None,
    generation: int | None = None,
    rules: LifecycleRules | None = None,
) -> DocumentView:
    """A document by its URL, path or id, as the active generation shows it, or another one that is retained.

    Or as a held one would show it; ``rules`` are those by which it would be activated.
    """
    async with db.snapshot() as snapshot:
        document_id, fragment = await find_document_id(snapshot, what, generation)
        document = await documents.get(snapshot, document_id)
        source = await sources.get(snapshot, document.source_id) if document else None
        if document is None or source is None:
            raise NotFound(f"There is no document {what}. 'kept search' finds what is kept.")
        number = (source.active_generation or 0) if generation is None else generation
        shown = await generations.get(snapshot, source.id, number)
        if shown and shown.state is GenerationState.HELD:
            row = await preview_held_document(snapshot, shown, document.id, rules or LifecycleRules())
        else:
            shown = await find_readable_generation(snapshot, source, number)
            row = await documents.version_in_generation(snapshot, document.id, number)
        if row is None:
            raise NotFound(
                f"Generation {number} of {source.label} does not show {what}. 'kept history' tells its story."
            )
        markdown = decompress(row["markdown"])
        if section or fragment:
            markdown = await _section_text(snapshot, row, section or fragment or "")
        return DocumentView(
            document=document.id,
            source=source.name,
            version=source.version,
            generation=number,
            url=row["url"],
            title=row["title"] or title_from_url(row["url"]),
            markdown=markdown,
            lifecycle=document.lifecycle,
            fetched_at=parse_time(row["fetched_at"]),
            verified_at=parse_time(row["verified_at"]),
            partial=shown.partial is not None,
        )


async def read_history(db: ReadableDatabase, what: str) -> DocumentHistory:
    """A document's versions and moves, oldest first."""
    async with db.snapshot() as snapshot:
        document_id, _ = await find_document_id(snapshot, what)
        document = await documents.get(snapshot, document_id)
        source = await sources.get(snapshot, document.source_id) if document else None
        if document is None or source is None:
            raise NotFound(f"There is no document {what}.")
        return DocumentHistory(
            document=document.id,
            source=source.label,
            lifecycle=document.lifecycle,
            first_seen=document.first_seen,
            since=document.since,
            reason=document.reason,
            versions=[_version(row) for row in await documents.versions_of(snapshot, document.id)],
        )


async def _section_text(db: Connection, row: Row, anchor: str) -> str:
    """A section with everything below it."""
    found = await sections.of_content(db, row["content_id"])
    first = next((at for at, section in enumerate(found) if section.anchor == anchor), None)
    if first is None:
        known = ", ".join(dict.fromkeys(section.anchor for section in found if section.anchor))
        raise NotFound(f"{row['url']} has no section '{anchor}'. It has: {known or 'none'}.")
    level = found[first].level
    parts = [found[first].text]
    for section in found[first + 1 :]:
        if section.level <= level and section.anchor != anchor and not _is_signature_only(parts[-1]):
            break
        parts.append(section.text)
    return "\n\n".join(part.strip("\n") for part in parts)


def _is_signature_only(text: str) -> bool:
    """Whether it is only a signature: what is said about it stands below the next one, which it shares."""
    return text.startswith("#") and text.endswith("`") and "\n" not in text


def _version(row: Row) -> dict[str, Any]:
    return {
        "version": row["born"],
        "generation": row["born"],
        "until": row["died"],
        "url": row["url"],
        "title": row["title"] or title_from_url(row["url"]),
        "content_hash": row["content_hash"],
        "size": row["size"],
        "read_again": bool(row["read_again"]),
        "fetched_at": parse_time(row["fetched_at"]).isoformat(),
        "activated_at": activated.isoformat() if (activated := parse_optional_time(row["activated_at"])) else None,
        "ended_at": ended.isoformat() if (ended := parse_optional_time(row["ended_at"])) else None,
        "rolled_back": row["rolled_back"],
    }
