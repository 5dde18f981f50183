"""Reads what an export writes, and inserts what an import reads. Records are the same on both databases."""

import json
from collections.abc import Iterable

from kept.model.document import SECTIONS_PER_CONTENT, Content, NamedEntry, PageKind, Section
from kept.model.export import ExportedDocument, ExportedVersion, ExportRecord, ManifestSource
from kept.model.generation import Tally
from kept.model.source import Authority, Source, SourceSettings
from kept.store import sections
from kept.store.compression import compress_links, decompress, decompress_links, decompress_places
from kept.store.database import Connection, Row, parse_time

FIRST_ID = "00000000-0000-0000-0000-000000000000"

_GENERATION_COLUMNS = ("number", "base", "state", "mode", "documents", "partial", "reason")
_DOCUMENT_COLUMNS = ("first_generation", "lifecycle", "missed_crawls", "retry_count", "reason")
_VERSION_COLUMNS = (
    "born",
    "died",
    "url",
    "content_type",
    "etag",
    "last_modified",
    "raw_hash",
    "signature",
    "depth",
    "canonical",
)


async def export_generations(db: Connection, source: Source) -> list[ExportRecord]:
    """Return the readable generations. One with the source's current settings does not repeat them."""
    current = source.settings.as_json()
    records = []
    for row in await db.all("exported_generations", source=source.id):
        settings = SourceSettings.from_json(json.loads(row["settings"])).as_json()
        record = _record_from_row(
            row, _GENERATION_COLUMNS, times=("created_at", "activated_at"), flags=("whole", "changed")
        )
        record["counts"] = Tally(**json.loads(row["tally"])).as_json()
        if settings != current:
            record["settings"] = settings
        records.append(record)
    return records


async def export_documents(db: Connection, source: Source, *, after: str, limit: int) -> list[ExportedDocument]:
    """Return the documents whose ids follow ``after``, with all their versions."""
    active = source.active_generation
    rows = await db.all("exported_documents", source=source.id, active=active, after=after, limit=limit)
    if not rows:
        return []
    first, last = rows[0]["id"], rows[-1]["id"]
    versions: dict[str, list[ExportedVersion]] = {row["id"]: [] for row in rows}
    for row in await db.all("exported_versions", source=source.id, active=active, first=first, last=last):
        versions[row["document_id"]].append(_exported_version(row))
    times = ("first_seen", "since", "verified_at", "last_seen")
    return [
        ExportedDocument(
            id=row["id"],
            former_id=row["former_id"],
            record=_record_from_row(row, _DOCUMENT_COLUMNS, times=times),
            versions=versions[row["id"]],
        )
        for row in rows
    ]


def _exported_version(row: Row) -> ExportedVersion:
    record = _record_from_row(row, _VERSION_COLUMNS, times=("fetched_at",), flags=("read_again",))
    return ExportedVersion(
        born=row["born"],
        died=row["died"],
        url=row["url"],
        title=row["title"],
        content_id=row["content_id"],
        content_hash=row["content_hash"],
        record=record | {"content_hash": row["content_hash"], "links": list(decompress_links(row["links"]))},
    )


async def load_content(db: Connection, id: int) -> Content:
    row = await db.one("content", id=id)
    assert row is not None, "a version has its content"
    return Content(
        hash=row["hash"],
        title=row["title"],
        markdown=decompress(row["markdown"]),
        sections=tuple(
            Section(
                position=section.position,
                parent=None if section.parent_id is None else section.parent_id % SECTIONS_PER_CONTENT,
                level=section.level,
                heading=section.heading,
                anchor=section.anchor,
                text=section.text,
                entry=section.entry,
                entries=tuple(map(NamedEntry._make, section.entries)),
            )
            for section in await sections.of_content(db, id)
        ),
        kind=PageKind(row["kind"]),
        places=decompress_places(row["places"]),
    )


async def insert_source(db: Connection, id: str, source: ManifestSource, *, is_trusted: bool) -> None:
    """Insert a source with its generations, none active yet; without trust, with a caller's authority."""
    settings, following = json.dumps(source.settings.as_json()), source.generations[-1].record["number"] + 1
    await db.run(
        "insert_imported_source",
        id=id,
        name=source.name,
        version=source.version,
        kind=source.kind,
        root=source.root,
        settings=settings,
        authority=Authority.OWNER if is_trusted else Authority.CALLER,
        next=following,
        created_at=source.created_at,
    )
    names = (*_GENERATION_COLUMNS, "created_at", "activated_at", "whole", "changed")
    await db.run_many(
        "insert_imported_generation",
        [
            {name: one.record[name] for name in names}
            | {
                "source": id,
                "settings": json.dumps(one.settings.as_json()),
                "tally": json.dumps(one.record["counts"]),
            }
            for one in source.generations
        ],
    )


async def insert_documents(
    db: Connection, source: str, documents: Iterable[tuple[str, str | None, ExportRecord]]
) -> None:
    """Insert documents, given as (id, former id, record)."""
    names = (*_DOCUMENT_COLUMNS, "first_seen", "since", "verified_at")
    await db.run_many(
        "insert_imported_document",
        [
            {name: known[name] for name in names} | {"id": id, "former_id": former_id, "source": source}
            for id, former_id, known in documents
        ],
    )


async def insert_versions(db: Connection, source: str, versions: Iterable[tuple[str, int, ExportRecord]]) -> None:
    """Insert versions, given as (document id, content id, record)."""
    await db.run_many(
        "insert_imported_version",
        [
            {name: record[name] for name in (*_VERSION_COLUMNS, "fetched_at", "read_again")}
            | {"source": source, "document": document, "content": content, "links": compress_links(record["links"])}
            for document, content, record in versions
        ],
    )


async def update_document_count(db: Connection, source: str, generation: int) -> None:
    await db.run("count_imported_documents", source=source, generation=generation)


def _record_from_row(
    row: Row, names: Iterable[str], *, times: Iterable[str] = (), flags: Iterable[str] = ()
) -> ExportRecord:
    record = {name: row[name] for name in names}
    record |= {name: parse_time(row[name]).isoformat(timespec="microseconds") if row[name] else None for name in times}
    return record | {name: bool(row[name]) for name in flags}
