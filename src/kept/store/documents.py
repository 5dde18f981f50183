"""Documents and their versions."""

from collections.abc import Iterable, Mapping, Sequence

from kept.model.document import (
    BornVersion,
    DifferingVersion,
    Document,
    DocumentAtUrl,
    ExceptionalDocument,
    FormerDocument,
    Lifecycle,
    LifecycleChange,
    MatchTier,
    NewPage,
    NewVersion,
    PastVersion,
    ShownDocument,
    ShownVersion,
    UpcomingVersion,
    Validators,
)
from kept.store.compression import compress_links, decompress
from kept.store.database import Connection, Row, parse_optional_time, parse_time

URLS_PER_QUERY = 1000


async def insert_document(db: Connection, rows: Iterable[tuple[str, str]], *, generation: int) -> None:
    """Insert documents for new URLs: (id, source)."""
    await db.run_many(
        "insert_document", [{"id": id, "source": source, "generation": generation} for id, source in rows]
    )


async def insert_versions(db: Connection, source: str, versions: Iterable[NewVersion]) -> None:
    await db.run_many(
        "insert_version",
        [
            {
                "source": source,
                "document": version.document_id,
                "born": version.born,
                "pending": version.pending,
                "read_again": version.read_again,
                "url": version.url,
                "content": version.content_id,
                "content_type": version.content_type,
                "etag": version.validators.etag,
                "last_modified": version.validators.last_modified,
                "raw_hash": version.raw_hash,
                "signature": version.signature,
                "depth": version.depth,
                "links": compress_links(version.links),
                "canonical": version.canonical,
            }
            for version in versions
        ],
    )


async def get(db: Connection, id: str) -> Document | None:
    row = await db.one("document", id=id)
    return (
        None
        if row is None
        else Document(
            id=row["id"],
            source_id=row["source_id"],
            first_seen=parse_time(row["first_seen"]),
            lifecycle=Lifecycle(row["lifecycle"]),
            retry_count=row["retry_count"],
            since=parse_optional_time(row["since"]),
            missed_crawls=row["missed_crawls"],
            reason=row["reason"],
            verified_at=parse_optional_time(row["verified_at"]),
        )
    )


async def of_generation(
    db: Connection, source: str, generation: int, *, after: str = "", limit: int = 1000
) -> list[ShownDocument]:
    """Return a page of the documents that a generation shows, by URL."""
    rows = await db.all("documents_of_generation", source=source, generation=generation, after=after, limit=limit)
    return [
        ShownDocument(
            id=str(row["id"]),
            url=row["url"],
            title=row["title"],
            content_type=row["content_type"],
            content_hash=row["content_hash"],
            lifecycle=Lifecycle(row["lifecycle"]),
            first_seen=parse_time(row["first_seen"]),
            fetched_at=parse_time(row["fetched_at"]),
        )
        for row in rows
    ]


async def versions_of(db: Connection, document: str) -> list[PastVersion]:
    """Return the versions of a document that were ever shown, the oldest first."""
    return [
        PastVersion(
            born=row["born"],
            died=row["died"],
            url=row["url"],
            title=row["title"],
            content_hash=row["content_hash"],
            size=row["size"],
            read_again=bool(row["read_again"]),
            fetched_at=parse_time(row["fetched_at"]),
            activated_at=parse_optional_time(row["activated_at"]),
            ended_at=parse_optional_time(row["ended_at"]),
            rolled_back=row["rolled_back"],
            end_reason=row["end_reason"],
        )
        for row in await db.all("versions_of_document", document=document)
    ]


async def visible_by_url(db: Connection, url: str) -> list[DocumentAtUrl]:
    """Return the documents that active generations show at this URL."""
    return [_at_url(row) for row in await db.all("visible_versions_by_url", url=url)]


async def past_by_url(db: Connection, url: str) -> list[DocumentAtUrl]:
    """Return the documents that were ever shown at this URL, the latest first."""
    return [_at_url(row) for row in await db.all("past_versions_by_url", url=url)]


async def id_by_former_id(db: Connection, former_id: str, source: str | None = None) -> str | None:
    """Return the document that had this id in the manifest it was imported from; of several, the latest import's."""
    rows = await db.all("documents_by_former_id", former_id=former_id)
    return next((row["id"] for row in rows if source in (None, row["source_id"])), None)


async def held_by_url(db: Connection, url: str) -> list[DocumentAtUrl]:
    """Return the documents that held generations have at this URL."""
    return [_at_url(row) for row in await db.all("held_versions_by_url", url=url)]


def _at_url(row: Row) -> DocumentAtUrl:
    return DocumentAtUrl(document_id=str(row["document_id"]), source_id=str(row["source_id"]))


async def version_in_generation(db: Connection, document: str, generation: int) -> ShownVersion | None:
    """Return the version of a document that a generation shows."""
    return _shown_version(await db.one("version_in_generation", document=document, generation=generation))


async def version_born_in(db: Connection, document: str, generation: int) -> ShownVersion | None:
    """Return the version that a generation adds to a document, whether or not it is active yet."""
    return _shown_version(await db.one("version_born_in", document=document, generation=generation))


def _shown_version(row: Row | None) -> ShownVersion | None:
    if row is None:
        return None
    return ShownVersion(
        url=row["url"],
        title=row["title"],
        markdown=decompress(row["markdown"]),
        content_id=row["content_id"],
        content_hash=row["content_hash"],
        fetched_at=parse_time(row["fetched_at"]),
        verified_at=parse_time(row["verified_at"]),
    )


async def differing_versions(db: Connection, source: str, a: int, b: int) -> list[DifferingVersion]:
    """Return the versions that exactly one of two generations shows."""
    return [
        DifferingVersion(
            document_id=str(row["document_id"]),
            url=row["url"],
            content_hash=row["content_hash"],
            is_first=row["side"] == "a",
            is_edited=bool(row["news"]),
        )
        for row in await db.all("differing_versions", source=source, a=a, b=b, first=min(a, b), last=max(a, b))
    ]


async def versions_born_in(db: Connection, source: str, generation: int) -> list[BornVersion]:
    """Return the versions that a generation adds."""
    return [
        BornVersion(
            document_id=str(row["document_id"]),
            url=row["url"],
            replaces=bool(row["pending"]),
            read_again=bool(row["read_again"]),
        )
        for row in await db.all("versions_born_in", source=source, generation=generation)
    ]


async def list_exceptional(db: Connection, source: str, job: str | None) -> list[ExceptionalDocument]:
    return [
        ExceptionalDocument(
            id=row["id"],
            lifecycle=Lifecycle(row["lifecycle"]),
            since=parse_optional_time(row["since"]),
            missed_crawls=row["missed_crawls"],
            retry_count=row["retry_count"],
            reason=row["reason"],
            verified_at=parse_optional_time(row["verified_at"]),
            url=row["url"],
            outcome=row["outcome"],
            reached=bool(row["reached"]),
        )
        for row in await db.all("exceptional_documents", source=source, job=job)
    ]


async def has_former(db: Connection, source: str) -> bool:
    return await db.one("has_former_documents", source=source) is not None


async def new_matching_former(db: Connection, source: str, generation: int) -> list[tuple[NewPage, FormerDocument]]:
    """Return new pages, each with a missing or deleted document that last had the same content or URL."""
    return [
        (
            _new_page(row),
            FormerDocument(
                document=row["former_id"],
                url=row["former_url"],
                content_id=row["former_content_id"],
                tier=MatchTier.MISSING if row["former_lifecycle"] == Lifecycle.MISSING else MatchTier.DELETED,
                born=row["former_born"],
            ),
        )
        for row in await db.all("new_matching_former_documents", source=source, generation=generation)
    ]


async def list_new(db: Connection, source: str, generation: int) -> list[NewPage]:
    return [_new_page(row) for row in await db.all("new_documents", source=source, generation=generation)]


async def new_by_url(db: Connection, source: str, generation: int, url: str) -> NewPage | None:
    row = await db.one("new_document_by_url", source=source, generation=generation, url=url)
    return None if row is None else _new_page(row)


async def new_with_content(db: Connection, source: str, generation: int, content_id: int) -> list[NewPage]:
    rows = await db.all("new_documents_with_content", source=source, generation=generation, content=content_id)
    return [_new_page(row) for row in rows]


async def upcoming_by_url(
    db: Connection, source: str, urls: Sequence[str], *, generation: int
) -> list[UpcomingVersion]:
    """Return the versions that a generation under construction has at these URLs, its own or its base's."""
    rows: list[Row] = []
    for start in range(0, len(urls), URLS_PER_QUERY):
        chunk = list(urls[start : start + URLS_PER_QUERY])
        rows += await db.all("upcoming_versions_by_url", source=source, urls=chunk, generation=generation)
    return [
        UpcomingVersion(
            url=row["url"],
            document_id=row["document_id"],
            content_id=row["content_id"],
            content_type=row["content_type"],
            fetched_at=parse_time(row["fetched_at"]),
        )
        for row in rows
    ]


async def discard_new(db: Connection, new_versions: Iterable[tuple[int, str]]) -> None:
    """Delete versions and documents that no generation has shown or will show."""
    dropped = list(new_versions)
    await db.run_many("delete_version", [{"id": version_id} for version_id, _ in dropped])
    await db.run_many("delete_document", [{"id": document} for _, document in dropped])


async def reassign_version(
    db: Connection, *, version_id: int, provisional_id: str, document_id: str, generation: int
) -> None:
    """Give the version at a new URL to a document that existed before, and delete its provisional document."""
    await db.run("delete_pending_version", document=document_id, generation=generation)  # of a page that is given up
    await db.run("end_version", document=document_id, generation=generation, reason=None)
    await db.run("reassign_version", version=version_id, document=document_id)
    await db.run("delete_document", id=provisional_id)


async def end_versions(db: Connection, reasons: Mapping[str, str], *, generation: int) -> None:
    """End the versions of documents, each with the reason: from this generation on they are not visible."""
    rows = [{"document": document, "generation": generation} for document in reasons]
    await db.run_many("delete_pending_version", rows)
    await db.run_many("end_version", [row | {"reason": reasons[str(row["document"])]} for row in rows])


async def replace_changed(db: Connection, source: str, *, generation: int) -> None:
    """End the old versions of changed documents and publish the new ones."""
    await db.run("end_replaced_versions", source=source, generation=generation)
    await db.run("publish_pending_versions", source=source, generation=generation)


async def apply_metadata_updates(db: Connection, job: str) -> None:
    await db.run("apply_metadata_updates", job=job)


async def replaced_validators(
    db: Connection, source: str, generation: int, *, limit: int = 1000
) -> list[tuple[Validators, Validators]]:
    """Return the validators of pages that a generation changed, before and after."""
    return [
        (
            Validators(etag=row["etag_before"], last_modified=row["last_modified_before"]),
            Validators(etag=row["etag"], last_modified=row["last_modified"]),
        )
        for row in await db.all("replaced_validators", source=source, generation=generation, limit=limit)
    ]


async def has_validators(db: Connection, source: str, *, limit: int = 1000) -> bool | None:
    """Return whether any of the first visible pages has validators; None if no page is visible."""
    row = await db.one("has_validators", source=source, limit=limit)
    return None if row is None or row["some"] is None else bool(row["some"])


async def set_lifecycles(db: Connection, changes: Iterable[LifecycleChange]) -> None:
    await db.run_many(
        "set_lifecycle",
        [
            {
                "id": change.document,
                "lifecycle": change.lifecycle,
                "since": change.since,
                "missed_crawls": change.missed_crawls,
                "retry_count": change.retry_count,
                "reason": change.reason,
                "verified_at": change.verified_at,
            }
            for change in changes
        ],
    )


async def roll_back(db: Connection, source: str, *, target: int, number: int, reason: str) -> None:
    """Make generation ``number`` show exactly what ``target`` showed."""
    await db.run("end_versions_since", source=source, target=target, number=number)
    await db.run("restore_versions", source=source, target=target, number=number)
    await db.run("set_rollback_reason", source=source, number=number, reason=reason)
    await db.run("show_rolled_back_documents", source=source)
    await db.run("hide_rolled_back_documents", source=source, reason=reason)


async def delete_by_generation(db: Connection, source: str, generation: int, *, limit: int) -> int:
    """Delete rows of an abandoned generation. Returns how many; 0 when none are left."""
    deleted = await db.run("delete_versions_of_generation", source=source, generation=generation, limit=limit)
    return deleted or await db.run("delete_documents_of_generation", source=source, generation=generation, limit=limit)


async def delete_by_source(db: Connection, source: str, *, limit: int) -> int:
    deleted = await db.run("delete_versions_of_source", source=source, limit=limit)
    return deleted or await db.run("delete_documents_of_source", source=source, limit=limit)


async def delete_dead_versions(db: Connection, source: str, *, oldest: int, limit: int) -> int:
    """Delete versions that no retained generation shows. Returns how many."""
    return await db.run("delete_dead_versions", source=source, oldest=oldest, limit=limit)


async def delete_orphaned(db: Connection, source: str, *, limit: int) -> int:
    return await db.run("delete_orphaned_documents", source=source, limit=limit)


async def document_ids_by_url(db: Connection, source: str, generation: int, urls: Sequence[str]) -> dict[str, str]:
    """Return the ids of the documents that a generation shows at these URLs, by URL."""
    found: dict[str, str] = {}
    for start in range(0, len(urls), URLS_PER_QUERY):
        chunk = list(urls[start : start + URLS_PER_QUERY])
        rows = await db.all("document_ids_by_url", source=source, generation=generation, urls=chunk)
        found |= {row["url"]: str(row["document_id"]) for row in rows}
    return found


def _new_page(row: Row) -> NewPage:
    return NewPage(
        version_id=row["version_id"],
        document=row["document_id"],
        url=row["url"],
        depth=row["depth"],
        content_id=row["content_id"],
        size=row["size"],
    )
