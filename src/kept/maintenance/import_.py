"""Imports an export: sources, documents, versions and contents, with their ids and numbers.

A source is imported in one transaction. The folder is not trusted: a content that does not match its hash gets a new
hash, and is read again by the next crawl.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from kept.errors import InvalidInput
from kept.maintenance import manifest
from kept.model.document import Content, Lifecycle, Section
from kept.model.export import ExportRecord
from kept.model.ids import new_id
from kept.model.root import check_label
from kept.model.source import Source, SourceKind, SourceSettings, format_label
from kept.model.url import canonicalize_url, file_url
from kept.store import contents, documents, export, sources
from kept.store.database import Connection, Database, current_time

BATCH_SIZE = 200

ReadMarkdown = Callable[[str, str], Awaitable[Content | None]]  # text, URL; None if it cannot be read
ImportHasher = Callable[[str, str, tuple[Section, ...]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    sources: list[Source] = field(default_factory=list)
    documents: int = 0
    versions: int = 0
    unread: list[str] = field(default_factory=list)  # paths whose content is missing or unreadable


async def import_sources(db: Database, export_path: Path, *, read: ReadMarkdown, hash_of: ImportHasher) -> ImportReport:
    """Import all sources of an export. Raises InvalidInput, before any change, if one of them exists already."""
    async with db.snapshot() as snapshot:
        now = await current_time(snapshot)
    file = await asyncio.to_thread(manifest.find, export_path)
    loaded = await asyncio.to_thread(manifest.load, file, now)
    imported = ImportReport()
    records = loaded.get("sources") or {"": manifest.make_legacy_source(file, loaded, now)}
    for record in records.values():
        await _check_new(db, record)
    for label, record in records.items():
        importer = _SourceImporter(file.parent, record, read=read, hash_of=hash_of, now=now)
        files = {path: entry for path, entry in loaded["files"].items() if entry.get("source", "") == label}
        async with db.transaction(durable=True) as tx:
            source = await importer.import_source(tx, files)
        imported = replace(
            imported,
            sources=[*imported.sources, source],
            documents=imported.documents + importer.documents,
            versions=imported.versions + importer.versions,
            unread=[*imported.unread, *importer.unread],
        )
    return imported


async def _check_new(db: Database, record: ExportRecord) -> None:
    """Raise InvalidInput if a source record is incomplete, or if the source exists already."""
    try:
        SourceKind(record["kind"])
        SourceSettings.from_json(record["settings"])
        name, version = record["name"], record["version"]
        label, root = format_label(name, version), canonicalize_url(record["root"]) or record["root"]
        check_label(name, version)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"The manifest does not say all about a source that is needed: {error}.") from None
    async with db.snapshot() as snapshot:
        existing = await sources.by_label(snapshot, name, version)
        existing = existing or await sources.by_root(snapshot, root, version)
    if existing:
        raise InvalidInput(
            f"{existing.label} is kept already, with {existing.root}: '{label}' cannot be imported beside it."
        )


class _SourceImporter:
    """Imports one source, in the transaction of the caller."""

    def __init__(
        self, folder: Path, record: ExportRecord, *, read: ReadMarkdown, hash_of: ImportHasher, now: datetime
    ) -> None:
        self.documents = self.versions = 0
        self.unread: list[str] = []
        self._folder, self._record = folder, record
        self._read, self._hash_of, self._now = read, hash_of, now.isoformat(timespec="microseconds")

    async def import_source(self, tx: Connection, files: dict[str, ExportRecord]) -> Source:
        id, number = new_id(), self._record["generation"]
        await export.insert_source(tx, id, self._record, self._record["generations"])
        remaining = iter(files.items())
        while batch := list(islice(remaining, BATCH_SIZE)):
            await self._import_documents(tx, id, batch)
        await sources.set_active_generation(tx, id, number)
        await export.update_document_count(tx, id, number)  # unreadable documents are missing
        source = await sources.get(tx, id)
        assert source is not None, "inserted above"
        return source

    async def _import_documents(self, tx: Connection, source: str, entries: list[tuple[str, ExportRecord]]) -> None:
        read = [(path, entry, await self._read_versions(path, entry)) for path, entry in entries]
        self.unread += [path for path, _, versions in read if not versions]
        readable = [(manifest.document_id(entry["doc_id"]), entry, versions) for _, entry, versions in read if versions]
        for id, entry, _ in readable:
            if await documents.get(tx, id):
                raise InvalidInput(f"The document {entry['doc_id']} is kept already, by another source.")
        by_hash = {content.hash: content for _, _, versions in readable for content, _ in versions}
        ids = await contents.get_or_insert(tx, by_hash)
        await export.insert_documents(tx, source, [(id, self._document_record(entry)) for id, entry, _ in readable])
        await export.insert_versions(
            tx,
            source,
            [(id, ids[content.hash], record) for id, _, versions in readable for content, record in versions],
        )
        self.documents += len(readable)
        self.versions += sum(len(versions) for _, _, versions in readable)

    def _document_record(self, entry: ExportRecord) -> ExportRecord:
        status = Lifecycle(entry["status"])
        since = None if status is Lifecycle.ACTIVE else entry.get("since") or self._now
        return {
            "first_generation": entry.get("first_generation", 1),
            "lifecycle": status,
            "missed_crawls": entry.get("missed_crawls", 0),
            "retry_count": entry["retry_count"],
            "reason": entry.get("reason"),
            "first_seen": entry.get("first_seen") or entry["last_seen"],
            "since": since,
            "verified_at": entry.get("verified_at"),
        }

    async def _read_versions(self, path: str, entry: ExportRecord) -> list[tuple[Content, ExportRecord]]:
        """Return the contents and records of a document's versions, as far as they can be read."""
        if not entry["versions"] or "version_id" not in entry["versions"][-1]:
            version = await self._read_legacy_version(path, entry)
            return [version] if version else []
        versions = []
        for listed in entry["versions"]:
            subfolder = ("versions", str(int(listed["version_id"]))) if listed["until"] is not None else ()
            folder = self._folder.joinpath("documents", _folder_name(entry), *subfolder)
            version = await asyncio.to_thread(self._read_version, folder)
            versions += [version] if version else []
        if versions and len(versions) < len(entry["versions"]):
            self.unread.append(path)
        return versions

    def _read_version(self, folder: Path) -> tuple[Content, ExportRecord] | None:
        try:
            markdown = (folder / "content.md").read_bytes().decode("utf-8", "surrogatepass")
            details = json.loads((folder / "version.json").read_text("utf-8"))
            sections = tuple(Section(**section) for section in details["sections"])
            hash = self._hash_of(details["title"], markdown, sections)
            if hash != details["content_hash"]:
                details["signature"] = ""  # it was edited: no reader has produced it
            record = {name: details[name] for name in export.VERSION_FIELDS}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return Content(hash=hash, title=details["title"], markdown=markdown, sections=sections), record

    async def _read_legacy_version(self, path: str, entry: ExportRecord) -> tuple[Content, ExportRecord] | None:
        url = file_url((self._folder / path).absolute().as_posix()) if "://" not in path else canonicalize_url(path)
        if url is None or ".." in Path(path).parts:
            return None
        for folder in (self._folder, self._folder / "knowledge_base"):
            try:
                text = (folder / "documents" / _folder_name(entry) / "content.md").read_text("utf-8", errors="replace")
            except OSError:
                continue
            content = await self._read(text, url)
            died = None if entry["status"] in ("active", "error") else 2
            return (content, self._legacy_record(entry, url, died)) if content else None
        return None

    def _legacy_record(self, entry: ExportRecord, url: str, died: int | None) -> ExportRecord:
        return {
            "born": 1,
            "died": died,
            "read_again": False,
            "url": url,
            "content_type": "text/markdown",
            "etag": None,
            "last_modified": None,
            "raw_hash": str(entry.get("content_hash") or ""),
            "signature": "",
            "depth": 0,
            "canonical": None,
            "links": [],
            "fetched_at": entry["last_seen"],
        }


def _folder_name(entry: ExportRecord) -> str:
    """Return the folder name of a document. Raises InvalidInput if it could lead out of the export."""
    name = str(entry["doc_id"])
    if not name or name in (".", "..") or set(name) & set("/\\\0"):
        raise InvalidInput(f"The manifest has a doc_id that cannot be the name of a folder: {name!r}.")
    return name
