"""Documents: read one, its history and its outline; list those of a source."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import InvalidInput, NotFound
from kept.model.document import Lifecycle, PastVersion, Place, ShownDocument
from kept.model.generation import GenerationState
from kept.search.search import title_from_url
from kept.service.cursor import decode_cursor, encode_cursor
from kept.service.generations import preview_held_document
from kept.service.lookup import find_document_id, find_readable_generation, find_source
from kept.service.places import read_place
from kept.store import contents, documents, generations, sections, sources
from kept.store.database import ReadableDatabase


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
    """The versions of a document, and its present state."""

    document: str
    source: str
    lifecycle: Lifecycle
    first_seen: datetime
    since: datetime | None  # when it stopped being active
    reason: str | None  # and why
    versions: list[PastVersion]


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentSummary:
    """A document as a list shows it."""

    document: str
    url: str
    title: str
    content_type: str
    lifecycle: Lifecycle
    first_seen: datetime
    fetched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """Some of the documents that a generation shows, by URL, and the cursor of the next page."""

    source: str
    generation: int
    documents: list[DocumentSummary]
    next: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentHeading:
    """A heading of a document, and its anchor."""

    level: int
    text: str
    anchor: str


async def read_document(
    db: ReadableDatabase,
    what: str,
    *,
    section: str | None = None,
    generation: int | None = None,
    rules: LifecycleRules | None = None,
) -> DocumentView:
    """Return a document by its URL, path or id, as the active generation shows it, or another one. Raises NotFound.

    Of a held generation: as it would show the document if it were activated by the ``rules``.
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
            version = await preview_held_document(snapshot, shown, document.id, rules or LifecycleRules())
        else:
            shown = await find_readable_generation(snapshot, source, number)
            version = await documents.version_in_generation(snapshot, document.id, number)
        if version is None:
            raise NotFound(
                f"Generation {number} of {source.label} does not show {what}. 'kept history' tells its story."
            )
        markdown = version.markdown
        if section or fragment:
            markdown = await read_place(snapshot, version, section or fragment or "")
        return DocumentView(
            document=document.id,
            source=source.name,
            version=source.version,
            generation=number,
            url=version.url,
            title=version.title or title_from_url(version.url),
            markdown=markdown,
            lifecycle=document.lifecycle,
            fetched_at=version.fetched_at,
            verified_at=version.verified_at,
            partial=shown.partial is not None,
        )


async def read_history(db: ReadableDatabase, what: str) -> DocumentHistory:
    """Return the versions and moves of a document, oldest first. Raises NotFound."""
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
            versions=[
                replace(one, title=one.title or title_from_url(one.url))
                for one in await documents.versions_of(snapshot, document.id)
            ],
        )


async def list_documents(
    db: ReadableDatabase,
    label: str,
    *,
    generation: int | None = None,
    cursor: str | None = None,
    after: str = "",
    limit: int = 100,
) -> DocumentPage:
    """List the documents of a source by URL, as the active generation shows them, or another one.

    A cursor names the generation that its first page was of: so are all the others, whatever is activated meanwhile.
    ``after`` begins behind a URL instead.
    """
    number, url = _decode_position(cursor) if cursor else (generation, after)
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        number = (source.active_generation or 0) if number is None else number
        await find_readable_generation(snapshot, source, number)
        found = await documents.of_generation(snapshot, source.id, number, after=url, limit=limit + 1)
    return DocumentPage(
        source=source.label,
        generation=number,
        documents=[_summary(one) for one in found[:limit]],
        next=encode_cursor([number, found[limit - 1].url]) if len(found) > limit else None,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentOutline:
    """The headings of a document that have an anchor, and all its places, in order."""

    headings: list[DocumentHeading]
    places: tuple[Place, ...]


async def get_outline(db: ReadableDatabase, document: str, generation: int) -> DocumentOutline:
    """Return the headings and places of a document. Raises NotFound."""
    async with db.snapshot() as snapshot:
        version = await documents.version_in_generation(snapshot, document, generation)
        if version is None:
            raise NotFound(f"Generation {generation} does not show {document}.")
        found = await sections.of_content(snapshot, version.content_id)
        places = await contents.get_places(snapshot, version.content_id)
    headings: dict[str, DocumentHeading] = {}  # the parts of a long section share its anchor
    for one in found:
        is_heading = not one.entry or one.text.startswith("#")
        if one.anchor and one.heading and is_heading:
            heading = DocumentHeading(level=one.level, text=one.heading, anchor=one.anchor)
            headings.setdefault(heading.anchor, heading)
    return DocumentOutline(headings=list(headings.values()), places=places)


async def find_documents_at(db: ReadableDatabase, label: str, generation: int, urls: Sequence[str]) -> dict[str, str]:
    """Return the ids of the documents that a generation shows at these URLs; URLs that it does not show are missing."""
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        return await documents.document_ids_by_url(snapshot, source.id, generation, urls)


async def content_token(db: ReadableDatabase, labels: list[str] | None = None) -> str:
    """Return a text that stays the same as long as these sources (or all) show the same, under the same names."""
    async with db.snapshot() as snapshot:
        chosen = {(await find_source(snapshot, label)).id for label in labels or ()}
        active = await sources.list_active_numbers(snapshot)
    return " ".join(f"{id}:{name}:{number}" for id, (name, number) in active.items() if not chosen or id in chosen)


def _summary(one: ShownDocument) -> DocumentSummary:
    return DocumentSummary(
        document=one.id,
        url=one.url,
        title=one.title or title_from_url(one.url),
        content_type=one.content_type,
        lifecycle=one.lifecycle,
        first_seen=one.first_seen,
        fetched_at=one.fetched_at,
    )


def _decode_position(cursor: str) -> tuple[int, str]:
    try:
        number, url = decode_cursor(cursor)
        if not (isinstance(number, int) and 0 <= number < 10**9 and url.isprintable()):
            raise ValueError
        return number, url
    except (ValueError, TypeError, AttributeError):
        raise InvalidInput("This is no cursor. Say the 'next' of the page before, or none.") from None
