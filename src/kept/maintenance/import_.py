"""Imports an export: sources, documents, versions and contents, with their ids and numbers.

Everything is imported in one transaction, or nothing. The folder is not trusted: the manifest is checked as a whole
(``manifest``), files are opened without following links (``export_folder``), and what needs the owner's word is left
out without it (``import_trust``). A content that does not match its hash gets a new hash, and is read again by the next
crawl.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import islice
from pathlib import Path

from kept.errors import InvalidInput
from kept.maintenance import import_trust, legacy_manifest, manifest
from kept.maintenance.export_folder import ExportFolder
from kept.maintenance.import_trust import Confirm, refuse_all
from kept.maintenance.json_object import JsonObject, parse_json, refuse
from kept.model.document import SECTIONS_PER_CONTENT, Content, NamedEntry, PageKind, Place, Section
from kept.model.export import ExportRecord, ManifestDocument, ManifestSource, ManifestVersion
from kept.model.ids import new_id
from kept.model.source import Source, SourceSettings
from kept.store import contents, documents, export, sources
from kept.store.database import Connection, Database, current_time

BATCH_SIZE = 200
MAX_SECTION_CHARACTERS = 100_000  # readers make sections of 4,000; PostgreSQL cannot index one of a million words

ReadMarkdown = Callable[[str, str], Awaitable[Content | None]]  # text, URL; None if it cannot be read
ImportHasher = Callable[[Content], str]


def accept_settings(_settings: SourceSettings) -> None:
    """Accept all settings that have the right types."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportReport:
    sources: list[Source] = field(default_factory=list)
    documents: int = 0
    versions: int = 0
    unread: list[str] = field(default_factory=list)  # paths whose content is missing or unreadable
    left_out: dict[str, list[str]] = field(default_factory=dict)  # by source: what was not confirmed


async def import_sources(
    db: Database,
    export_path: Path,
    *,
    read: ReadMarkdown,
    hash_of: ImportHasher,
    confirm: Confirm = refuse_all,
    check_settings: manifest.CheckSettings = accept_settings,
) -> ImportReport:
    """Import all sources of an export, or none. Raises InvalidInput, before any change, with the place and the reason.

    ``confirm`` is asked once about everything that needs the owner's word; what it refuses is left out.
    """
    async with db.snapshot() as snapshot:
        now = await current_time(snapshot)
        taken_secrets = {
            name: source.label
            for source in await sources.all(snapshot)
            for name in import_trust.secret_names(source.settings)
        }
    file = await asyncio.to_thread(manifest.find, export_path)
    loaded = await asyncio.to_thread(manifest.read, file)
    folder, is_legacy = ExportFolder(file.parent), "format" not in loaded.values
    listed = await asyncio.to_thread(
        lambda: legacy_manifest.parse(loaded, folder, now) if is_legacy else manifest.parse(loaded, now, check_settings)
    )
    await _check_new(db, listed)
    listed, left_out, is_trusted = _withhold(listed, confirm, taken_secrets)
    report = ImportReport(left_out=left_out)
    async with db.transaction(durable=True) as tx:
        for source in listed:
            importer = _SourceImporter(folder, source, is_trusted=is_trusted, read=read, hash_of=hash_of, now=now)
            imported = await importer.import_source(tx)
            report = replace(
                report,
                sources=[*report.sources, imported],
                documents=report.documents + importer.documents,
                versions=report.versions + importer.versions,
                unread=[*report.unread, *importer.unread],
            )
    if is_legacy and (upgraded := legacy_manifest.upgrade(loaded, now)) != loaded.values:
        await asyncio.to_thread(legacy_manifest.write_upgraded, file, json.dumps(upgraded, indent=1))
    return report


async def _check_new(db: Database, listed: Sequence[ManifestSource]) -> None:
    """Raise InvalidInput if one of the sources exists already."""
    async with db.snapshot() as snapshot:
        for source in listed:
            existing = await sources.by_label(snapshot, source.name, source.version)
            existing = existing or await sources.by_root(snapshot, source.root, source.version)
            if existing:
                raise InvalidInput(
                    f"{existing.label} is kept already, with {existing.root}: '{source.label}' cannot be imported "
                    "beside it. Nothing was imported."
                )


def _withhold(
    listed: list[ManifestSource], confirm: Confirm, taken_secrets: dict[str, str]
) -> tuple[list[ManifestSource], dict[str, list[str]], bool]:
    """Return the sources as they are imported, what is left out of each, and whether the owner vouches for the rest."""
    found = {source.label: names for source in listed if (names := import_trust.find_authority(source))}
    if not (found and confirm(found)):
        without = import_trust.without_authority
        return [_with_settings(source, without) for source in listed], found, False
    # A secret has one source: removing either would delete it.
    taken = {
        source.label: [f"secret {name}, which belongs to {taken_secrets[name]}" for name in sorted(shared)]
        for source in listed
        if (shared := import_trust.secret_names(source.settings) & taken_secrets.keys())
    }
    return (
        [_with_settings(source, lambda one: import_trust.without_secrets(one, taken_secrets)) for source in listed],
        taken,
        True,
    )


def _with_settings(source: ManifestSource, change: Callable[[SourceSettings], SourceSettings]) -> ManifestSource:
    generations = tuple(replace(one, settings=change(one.settings)) for one in source.generations)
    return replace(source, settings=change(source.settings), generations=generations)


class _SourceImporter:
    """Imports one source, in the transaction of the caller."""

    def __init__(
        self,
        folder: ExportFolder,
        source: ManifestSource,
        *,
        is_trusted: bool,
        read: ReadMarkdown,
        hash_of: ImportHasher,
        now: datetime,
    ) -> None:
        self.documents = self.versions = 0
        self.unread: list[str] = []
        self._folder, self._source, self._is_trusted = folder, source, is_trusted
        self._read, self._hash_of, self._now = read, hash_of, now
        self._living: dict[str, str] = {}  # URL -> the place of the document that has it

    async def import_source(self, tx: Connection) -> Source:
        id, listed = new_id(), self._source
        await export.insert_source(tx, id, listed, is_trusted=self._is_trusted)
        remaining = iter(listed.documents)
        while batch := list(islice(remaining, BATCH_SIZE)):
            await self._import_documents(tx, id, batch)
        await sources.set_active_generation(tx, id, listed.generation)
        numbers = [one.record["number"] for one in listed.generations] if listed.is_legacy else [listed.generation]
        for number in numbers:
            await export.update_document_count(tx, id, number)  # unreadable documents are missing
        source = await sources.get(tx, id)
        assert source is not None, "inserted above"
        return source

    async def _import_documents(self, tx: Connection, source: str, entries: list[ManifestDocument]) -> None:
        readable: list[tuple[str, ManifestDocument, list[tuple[Content, ExportRecord]]]] = []
        for entry in entries:
            versions = await self._read_versions(entry)
            if entry.is_incomplete or len(versions) < len(entry.versions):
                self.unread.append(entry.path)
            if versions:
                id = entry.doc_id.lower() if manifest.is_uuid(entry.doc_id) else new_id()
                await self._check_unknown(tx, id, entry)
                readable.append((id, entry, versions))
        by_hash = {content.hash: content for _, _, versions in readable for content, _ in versions}
        ids = await contents.get_or_insert(tx, by_hash)
        await export.insert_documents(
            tx,
            source,
            [(id, entry.doc_id if entry.doc_id != id else None, entry.record) for id, entry, _ in readable],
        )
        await export.insert_versions(
            tx,
            source,
            [(id, ids[content.hash], record) for id, _, versions in readable for content, record in versions],
        )
        self.documents += len(readable)
        self.versions += sum(len(versions) for _, _, versions in readable)

    async def _check_unknown(self, tx: Connection, id: str, entry: ManifestDocument) -> None:
        known = await documents.get(tx, id) if manifest.is_uuid(entry.doc_id) else None
        if known is None:
            return
        owner = await sources.get(tx, known.source_id)
        whose = (
            f"it belongs to {owner.label}" if owner else "its source was removed; 'kept gc' takes away the rest of it"
        )
        refuse(f"{entry.place}['doc_id']", f"the document {entry.doc_id} is kept already: {whose}")

    async def _read_versions(self, entry: ManifestDocument) -> list[tuple[Content, ExportRecord]]:
        """Return the contents and records of a document's versions, as far as they can be read.

        Without its last version a document is left out: its state would not be true.
        """
        versions: list[tuple[Content, ExportRecord]] = []
        for listed in reversed(entry.versions):
            version = await (
                asyncio.to_thread(self._read_version, listed) if listed.record is None else self._read_legacy(listed)
            )
            if version is None and not versions:
                return []
            if version is not None:
                versions.append(version)
        newest = versions[0][1] if versions else None
        if newest and newest["died"] is None:
            other = self._living.setdefault(newest["url"], entry.place)
            if other != entry.place:
                refuse(entry.place, f"{other} is shown at the same URL, {newest['url']}")
        return versions[::-1]

    def _read_version(self, listed: ManifestVersion) -> tuple[Content, ExportRecord] | None:
        """Return a version by its two files; None if one of them is missing or is not text."""
        markdown = self._read_text(*listed.folder, "content.md")
        text = self._folder.read(*listed.folder, "version.json")
        if markdown is None or text is None:
            return None
        place = "/".join([*listed.folder, "version.json"])
        details = JsonObject(parse_json(text, place), place)
        if (details.count("born"), details.optional_count("died")) != (listed.born, listed.died):
            refuse(place, f"its numbers are not those of the manifest, from {listed.born} until {listed.died}")
        content = Content(
            hash="",
            title=details.text("title"),
            markdown=markdown,
            sections=_parse_sections(details),
            kind=_parse_kind(details),
            places=_parse_places(details, len(markdown)),
        )
        content = content._replace(hash=self._hash_of(content))
        record = _parse_version_record(details, self._now)
        if content.hash != details.text("content_hash"):
            record["signature"] = ""  # it was edited: no reader has produced it
        return content, record

    async def _read_legacy(self, listed: ManifestVersion) -> tuple[Content, ExportRecord] | None:
        assert listed.record is not None, "asked before"
        text = await asyncio.to_thread(self._folder.read, *listed.folder, "content.md")
        content = await self._read(text.decode("utf-8", "replace"), listed.record["url"]) if text is not None else None
        return (content, listed.record | {"born": listed.born, "died": listed.died}) if content else None

    def _read_text(self, *parts: str) -> str | None:
        content = self._folder.read(*parts)
        try:
            return None if content is None else content.decode("utf-8")
        except UnicodeDecodeError:
            return None


def _parse_sections(details: JsonObject) -> tuple[Section, ...]:
    sections = []
    for position, section in enumerate(details.objects("sections")):
        parent = section.optional_count("parent")
        if section.count("position") != position or (parent is not None and parent >= position):
            refuse(section.place, "sections should be numbered from 0, and follow the section they belong to")
        if section.values.keys() | {"entry", "entries"} != set(Section._fields):  # older exports have no entries
            refuse(section.place, f"expected {', '.join(Section._fields)}")
        text = section.text("text")
        if len(text) > MAX_SECTION_CHARACTERS or position >= SECTIONS_PER_CONTENT:
            refuse(section.place, "it is longer than a section, or a list of sections, can be")
        sections.append(
            Section(
                position=position,
                parent=parent,
                level=section.count("level"),
                heading=section.text("heading"),
                anchor=section.optional_text("anchor"),
                text=text,
                entry=section.text("entry") if "entry" in section.values else "",
                entries=_parse_entries(section) if "entries" in section.values else (),
            )
        )
    return tuple(sections)


def _parse_entries(section: JsonObject) -> tuple[NamedEntry, ...]:
    entries = section.values["entries"]
    if not isinstance(entries, list) or not all(_is_row(entry, (str, str)) for entry in entries):
        refuse(section.at("entries"), "expected pairs of a name and an anchor")
    return tuple([NamedEntry(name, anchor) for name, anchor in entries])


def _parse_kind(details: JsonObject) -> PageKind:
    kind = details.text("kind") if "kind" in details.values else PageKind.PAGE
    if kind not in list(PageKind):
        refuse(details.at("kind"), f"expected one of {', '.join(PageKind)}")
    return PageKind(kind)


def _parse_places(details: JsonObject, length: int) -> tuple[Place, ...]:
    """Return the places of a version; older exports have none."""
    places = details.values.get("places", [])
    if not isinstance(places, list) or not all(
        _is_row(place, (str, int, int, str)) and 0 <= place[1] <= place[2] <= length for place in places
    ):
        refuse(details.at("places"), "expected anchor, start, end and name, the numbers within the text")
    return tuple(map(Place._make, places))


def _is_row(value: object, types: tuple[type, ...]) -> bool:
    """Return whether a JSON value is an array of values of these types."""
    return isinstance(value, list) and tuple(map(type, value)) == types


def _parse_version_record(details: JsonObject, now: datetime) -> ExportRecord:
    canonical = details.optional_text("canonical")
    links = details.texts("links")
    if any("\n" in link for link in links):
        refuse(details.at("links"), "a link has a line break in it")
    return {
        "born": details.count("born"),
        "died": details.optional_count("died"),
        "url": manifest.check_url(details.text("url"), details.at("url")),
        "content_type": details.text("content_type"),
        "etag": details.header_value("etag"),
        "last_modified": details.header_value("last_modified"),
        "raw_hash": details.text("raw_hash"),
        "signature": details.text("signature"),
        "depth": details.count("depth"),
        "canonical": manifest.check_url(canonical, details.at("canonical")) if canonical else None,
        "fetched_at": details.time("fetched_at", now),
        "read_again": details.flag("read_again"),
        "links": links,
    }
