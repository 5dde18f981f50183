"""Takes an export back: sources, documents, versions and contents, each with the ids and numbers that it had.

A source is imported in one transaction: all of it, or nothing. Nothing in the folder is believed: a content whose words
are not those that its hash stands for gets a hash of its own, and is read again by the next crawl.
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
from kept.model.ids import new_id
from kept.model.root import check_label
from kept.model.source import Source, SourceKind, SourceSettings, format_label
from kept.model.url import canonicalize_url, file_url
from kept.store import contents, documents, export, sources
from kept.store.database import Connection, Database, current_time
from kept.store.export import ExportRecord

BATCH_SIZE = 200

ReadMarkdown = Callable[[str, str], Awaitable[Content | None]]  # text, URL; None: it cannot be read
ImportHasher = Callable[[str, str, tuple[Section, ...]], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    sources: list[Source] = field(default_factory=list)
    documents: int = 0
    versions: int = 0
    unread: list[str] = field(default_factory=list)  # paths whose content is not there, or cannot be read


async def import_sources(db: Database, export_path: Path, *, read: ReadMarkdown, hash_of: ImportHasher) -> ImportReport:
    """Everything that an export holds. WrongCall, and nothing is changed, where one of its sources is kept already."""
    async with db.snapshot() as snapshot:
        now = await current_time(snapshot)
    file = await asyncio.to_thread(manifest.find, export_path)
    loaded = await asyncio.to_thread(manifest.load, file, now)
    imported = ImportReport()
    found = loaded.get("sources") or {"": manifest.make_legacy_source(file, loaded, now)}
    for facts in found.values():
        await _check_not_kept_yet(db, facts)
    for label, facts in found.items():
        one = _SourceImporter(file.parent, facts, read=read, hash_of=hash_of, now=now)
        files = {path: entry for path, entry in loaded["files"].items() if entry.get("source", "") == label}
        async with db.transaction(durable=True) as tx:
            source = await one.import_source(tx, files)
        imported = replace(
            imported,
            sources=[*imported.sources, source],
            documents=imported.documents + one.documents,
            versions=imported.versions + one.versions,
            unread=[*imported.unread, *one.unread],
        )
    return imported


async def _check_not_kept_yet(db: Database, facts: ExportRecord) -> None:
    try:
        SourceKind(facts["kind"])
        SourceSettings.from_json(facts["settings"])
        label, root = format_label(facts["name"], facts["version"]), canonicalize_url(facts["root"]) or facts["root"]
        check_label(facts["name"], facts["version"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InvalidInput(f"The manifest does not say all about a source that is needed: {error}.") from None
    async with db.snapshot() as snapshot:
        there = await sources.by_label(snapshot, facts["name"], facts["version"])
        there = there or await sources.by_root(snapshot, root, facts["version"])
    if there:
        raise InvalidInput(f"{there.label} is kept already, with {there.root}: '{label}' cannot be imported beside it.")


class _SourceImporter:
    """One source under way."""

    def __init__(
        self, folder: Path, facts: ExportRecord, *, read: ReadMarkdown, hash_of: ImportHasher, now: datetime
    ) -> None:
        self.documents = self.versions = 0
        self.unread: list[str] = []
        self._folder, self._facts = folder, facts
        self._read, self._hash_of, self._now = read, hash_of, now.isoformat(timespec="microseconds")

    async def import_source(self, tx: Connection, files: dict[str, ExportRecord]) -> Source:
        id, number = new_id(), self._facts["generation"]
        await export.insert_source(tx, id, self._facts, self._facts["generations"])
        waiting = iter(files.items())
        while chunk := list(islice(waiting, BATCH_SIZE)):
            await self._import_documents(tx, id, chunk)
        await sources.set_active_generation(tx, id, number)
        await export.update_document_count(tx, id, number)  # what could not be read is not there
        made = await sources.get(tx, id)
        assert made is not None, "it was made a moment ago"
        return made

    async def _import_documents(self, tx: Connection, source: str, entries: list[tuple[str, ExportRecord]]) -> None:
        found = [(path, entry, await self._read_versions(path, entry)) for path, entry in entries]
        self.unread += [path for path, _, versions in found if not versions]
        kept = [(manifest.document_id(entry["doc_id"]), entry, versions) for _, entry, versions in found if versions]
        for id, entry, _ in kept:
            if await documents.get(tx, id):
                raise InvalidInput(f"The document {entry['doc_id']} is kept already, by another source.")
        read = {content.hash: content for _, _, versions in kept for content, _ in versions}
        ids = await contents.get_or_insert(tx, read)
        await export.insert_documents(tx, source, [(id, self._document_facts(entry)) for id, entry, _ in kept])
        await export.insert_versions(
            tx, source, [(id, ids[content.hash], facts) for id, _, versions in kept for content, facts in versions]
        )
        self.documents += len(kept)
        self.versions += sum(len(versions) for _, _, versions in kept)

    def _document_facts(self, entry: ExportRecord) -> ExportRecord:
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
        """What a document was, as far as it is there: contents and what is told about them."""
        if not entry["versions"] or "version_id" not in entry["versions"][-1]:
            version = await self._read_legacy_version(path, entry)
            return [version] if version else []
        found = []
        for told in entry["versions"]:
            old = ("versions", str(int(told["version_id"]))) if told["until"] is not None else ()
            version = await asyncio.to_thread(
                self._read_version, self._folder.joinpath("documents", _folder_name(entry), *old)
            )
            found += [version] if version else []
        if found and len(found) < len(entry["versions"]):
            self.unread.append(path)
        return found

    def _read_version(self, folder: Path) -> tuple[Content, ExportRecord] | None:
        try:
            markdown = (folder / "content.md").read_bytes().decode("utf-8", "surrogatepass")
            facts = json.loads((folder / "version.json").read_text("utf-8"))
            sections = tuple(Section(**section) for section in facts["sections"])
            hash = self._hash_of(facts["title"], markdown, sections)
            if hash != facts["content_hash"]:
                facts["signature"] = ""  # not what a reader has made
            known = {name: facts[name] for name in export.VERSION_FIELDS}
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        return Content(hash=hash, title=facts["title"], markdown=markdown, sections=sections), known

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
            return (content, self._legacy_facts(entry, url, died)) if content else None
        return None

    def _legacy_facts(self, entry: ExportRecord, url: str, died: int | None) -> ExportRecord:
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
    """The folder of a document. No path leaves the export."""
    name = str(entry["doc_id"])
    if not name or name in (".", "..") or set(name) & set("/\\\0"):
        raise InvalidInput(f"The manifest has a doc_id that cannot be the name of a folder: {name!r}.")
    return name
