"""Reading: a document as a generation shows it, and what became of it."""

from datetime import datetime
from typing import Any

from kept.crawl.sweep import Rules
from kept.errors import NoSuchThing
from kept.model.document import Lifecycle
from kept.model.generation import GenerationState
from kept.model.nouns import dataclass
from kept.search.search import name_of
from kept.service.naming import document_of, readable
from kept.service.reviewing import would_show
from kept.store import documents, generations, sections, sources
from kept.store.database import Connection, Database, Row, when, when_if
from kept.store.packing import unpack


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
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
class History:
    """What a document was."""

    document: str
    source: str
    lifecycle: Lifecycle
    first_seen: datetime
    since: datetime | None  # when it stopped being active
    reason: str | None  # and why
    versions: list[dict[str, Any]]


async def read(
    db: Database, what: str, *, section: str | None = None, generation: int | None = None, rules: Rules | None = None
) -> Page:
    """A document by its URL, path or id, as the active generation shows it, or another one that is retained.

    Or as a held one would show it; ``rules`` are those by which it would be activated.
    """
    async with db.snapshot() as snapshot:
        document_id, fragment = await document_of(snapshot, what, generation)
        document = await documents.get(snapshot, document_id)
        source = await sources.get(snapshot, document.source_id) if document else None
        if document is None or source is None:
            raise NoSuchThing(f"There is no document {what}. 'kept search' finds what is kept.")
        number = (source.active_generation or 0) if generation is None else generation
        shown = await generations.get(snapshot, source.id, number)
        if shown and shown.state is GenerationState.HELD:
            row = await would_show(snapshot, shown, document.id, rules or Rules())
        else:
            shown = await readable(snapshot, source, number)
            row = await documents.in_generation(snapshot, document.id, number)
        if row is None:
            raise NoSuchThing(
                f"Generation {number} of {source.label} does not show {what}. 'kept history' tells its story."
            )
        markdown = unpack(row["markdown"])
        if section or fragment:
            markdown = await _section_text(snapshot, row, section or fragment or "")
        return Page(
            document=document.id,
            source=source.name,
            version=source.version,
            generation=number,
            url=row["url"],
            title=row["title"] or name_of(row["url"]),
            markdown=markdown,
            lifecycle=document.lifecycle,
            fetched_at=when(row["fetched_at"]),
            verified_at=when(row["verified_at"]),
            partial=shown.partial is not None,
        )


async def history(db: Database, what: str) -> History:
    """A document's versions and moves, oldest first."""
    async with db.snapshot() as snapshot:
        document_id, _ = await document_of(snapshot, what)
        document = await documents.get(snapshot, document_id)
        source = await sources.get(snapshot, document.source_id) if document else None
        if document is None or source is None:
            raise NoSuchThing(f"There is no document {what}.")
        return History(
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
    first = next((at for at, section in enumerate(found) if section["anchor"] == anchor), None)
    if first is None:
        known = ", ".join(dict.fromkeys(section["anchor"] for section in found if section["anchor"]))
        raise NoSuchThing(f"{row['url']} has no section '{anchor}'. It has: {known or 'none'}.")
    level = found[first]["level"]
    parts = [found[first]["text"]]
    for section in found[first + 1 :]:
        if section["level"] <= level and section["anchor"] != anchor and not _announces(parts[-1]):
            break
        parts.append(section["text"])
    return "\n\n".join(part.strip("\n") for part in parts)


def _announces(text: str) -> bool:
    """Whether it is only a signature: what is said about it stands below the next one, which it shares."""
    return text.startswith("#") and text.endswith("`") and "\n" not in text


def _version(row: Row) -> dict[str, Any]:
    return {
        "version": row["born"],
        "generation": row["born"],
        "until": row["died"],
        "url": row["url"],
        "title": row["title"] or name_of(row["url"]),
        "content_hash": row["content_hash"],
        "size": row["size"],
        "read_again": bool(row["read_again"]),
        "fetched_at": when(row["fetched_at"]).isoformat(),
        "activated_at": activated.isoformat() if (activated := when_if(row["activated_at"])) else None,
        "ended_at": ended.isoformat() if (ended := when_if(row["ended_at"])) else None,
        "rolled_back": row["rolled_back"],
    }
