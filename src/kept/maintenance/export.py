"""Writes sources into a folder that people, other programs and ``kept import`` can read.

    manifest.json                                  the sources and, by path, every document: see docs/maintenance.md
    documents/{doc_id}/content.md                  the version in the active generation, as Markdown
    documents/{doc_id}/versions/{version_id}/…     earlier versions, by the generation that introduced them
    …/version.json                                 beside each content.md: its sections, links and validators

The folder is replaced atomically. Unchanged files of an earlier export are linked instead of written.
"""

import json
import os
import shutil
import stat
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from kept.errors import InvalidInput
from kept.maintenance.atomic_folder import replace_folder
from kept.maintenance.export_paths import tree_paths
from kept.model.export import ExportedDocument, ExportedVersion, ExportRecord
from kept.model.source import Source
from kept.model.url import file_path
from kept.private_files import PRIVATE_FOLDER_MODE, create_private_file
from kept.store import export as export_store
from kept.store import sources
from kept.store.database import Connection, Database
from kept.store.export import FIRST_ID

EXPORT_FORMAT = "kept export 1"
MANIFEST_NAME = "manifest.json"
BATCH_SIZE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    sources: int = 0
    documents: int = 0  # in the active generations
    written: int = 0  # contents that are new or changed
    linked: int = 0  # contents of the previous export


async def export_sources(db: Database, folder: Path, labels: Sequence[str] = (), *, tree: bool = False) -> ExportReport:
    """Export these sources, or all, from one snapshot. Sources without an active generation are skipped."""
    previous = read_previous_manifest(folder)
    with replace_folder(folder) as staging:
        async with db.snapshot() as snapshot:
            exported = [
                source
                for source in await sources.all(snapshot)
                if source.active_generation and (not labels or source.label in labels)
            ]
            writer = _ExportWriter(folder, staging, previous, tree=tree)
            for source in exported:
                await writer.write_source(snapshot, source)
        writer.write_manifest()
        return replace(writer.report, sources=len(exported))


def read_previous_manifest(folder: Path) -> dict[str, Any]:
    """Return the manifest of the export in a folder; empty if there is none. Raises InvalidInput for other folders."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return {}
    try:
        manifest = json.loads((folder / MANIFEST_NAME).read_text("utf-8"))
        if manifest["format"] == EXPORT_FORMAT:
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise InvalidInput(f"{folder} is neither empty nor an export of Kept, and would be replaced. Name another folder.")


class _ExportWriter:
    """Writes one export into its staging folder."""

    def __init__(self, folder: Path, staging: Path, previous: Mapping[str, Any], *, tree: bool) -> None:
        self.report = ExportReport()
        self._folder, self._staging, self._tree = folder, staging, tree
        self._sources: dict[str, ExportRecord] = {}
        self._files: dict[str, ExportRecord] = {}
        self._doc_ids: set[str] = set()
        # An earlier export keeps its mode: its owner may have opened it to others, such as a web server.
        self._folder_mode = stat.S_IMODE(folder.stat().st_mode) if previous else PRIVATE_FOLDER_MODE
        self._file_mode = self._folder_mode & 0o666
        known = previous.get("files", {}).values() if previous.get("tree", False) == tree else ()
        self._previous = {entry["doc_id"]: entry for entry in known}

    async def write_source(self, db: Connection, source: Source) -> None:
        self._sources[source.label] = {
            "name": source.name,
            "version": source.version,
            "kind": source.kind,
            "root": source.root,
            "settings": source.settings.as_json(),
            "created_at": source.created_at.isoformat(timespec="microseconds"),
            "generation": source.active_generation,
            "generations": await export_store.export_generations(db, source),
        }
        live: list[tuple[str, ExportRecord]] = []
        deleted: list[tuple[str, ExportRecord]] = []
        live_documents: list[tuple[ExportedDocument, ExportRecord]] = []
        async for document in _iterate_documents(db, source):
            is_live = document.latest.died is None
            if self._tree and not is_live:
                continue
            entry = await self._make_entry(db, source, document)
            (live if is_live else deleted).append((_display_path(document.latest.url), entry))
            if is_live:
                live_documents.append((document, entry))
        if self._tree:
            await self._write_tree(db, source, live_documents)
        for path, entry in [*sorted(live, key=_sort_key), *sorted(deleted, key=_sort_key)]:
            # Several documents may have a path: others had it before, or other sources have it too. The first gets it.
            self._files[path if path not in self._files else f"{path}#{entry['doc_id']}"] = entry
        self.report = replace(self.report, documents=self.report.documents + len(live))

    async def _make_entry(self, db: Connection, source: Source, document: ExportedDocument) -> ExportRecord:
        """Return the manifest entry of a document, and write its versions unless this is a tree."""
        latest, facts = document.latest, dict(document.record)
        # Manifests that were imported side by side may have used the same doc_id. The first document keeps it.
        doc_id = document.doc_id if document.doc_id not in self._doc_ids else document.id
        self._doc_ids.add(doc_id)
        entry: ExportRecord = {"doc_id": doc_id, "source": source.label, "url": latest.url, "title": latest.title}
        entry |= {"status": facts.pop("lifecycle"), "content_hash": latest.record["raw_hash"] or None, **facts}
        entry["versions"] = []
        if not self._tree:
            for version in document.versions:
                version_entry = _make_version_entry(version)
                entry["versions"].append(version_entry)
                await self._write_version(db, doc_id, version, version_entry)
        return entry

    def write_manifest(self) -> None:
        manifest = {"format": EXPORT_FORMAT, "tree": self._tree, "sources": self._sources, "files": self._files}
        file = self._staging / MANIFEST_NAME
        create_private_file(file, self._file_mode)
        with file.open("w", encoding="utf-8") as opened:
            json.dump(manifest, opened, indent=1, sort_keys=False)
        os.chmod(self._staging, self._folder_mode)

    async def _write_version(self, db: Connection, doc_id: str, version: ExportedVersion, entry: ExportRecord) -> None:
        subfolder = () if version.died is None else ("versions", str(version.born))
        folder = Path("documents", doc_id, *subfolder)
        entries = self._previous.get(doc_id, {}).get("versions", ())
        previous = next((one for one in entries if one["version_id"] == version.born), None)
        if previous == entry and self._link_unchanged(folder, ("content.md", "version.json"), entry["date"]):
            return
        content = await export_store.load_content(db, version.content_id)
        sections = [section._asdict() for section in content.sections]
        described = {"title": content.title, "kind": content.kind, "places": content.places, "sections": sections}
        details = json.dumps(described | version.record, indent=1)
        self._write(folder / "content.md", content.markdown, entry["date"])
        self._write(folder / "version.json", details, entry["date"])
        self.report = replace(self.report, written=self.report.written + 1)

    async def _write_tree(
        self, db: Connection, source: Source, documents: Sequence[tuple[ExportedDocument, ExportRecord]]
    ) -> None:
        paths = tree_paths(source, {document.id: document.latest.url for document, _ in documents})
        for document, entry in documents:
            version = _make_version_entry(document.latest)
            path, date = paths[document.id], version["date"]
            entry |= {"file": path, "date": date, "facts": version["facts"]}
            previous = self._previous.get(entry["doc_id"], {})
            is_same = all(previous.get(name) == entry[name] for name in ("file", "date", "facts"))
            if is_same and self._link_unchanged(Path(path).parent, (Path(path).name,), date):
                continue
            content = await export_store.load_content(db, document.latest.content_id)
            self._write(Path(path), content.markdown, date)
            self.report = replace(self.report, written=self.report.written + 1)

    def _write(self, path: Path, text: str, date: str) -> None:
        """Write a file with the time of its content as its own, so that later modifications can be detected."""
        file = self._staging / path
        self._make_folder(file.parent)
        create_private_file(file, self._file_mode)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        os.utime(file, ns=(_nanoseconds(date),) * 2)

    def _make_folder(self, folder: Path) -> None:
        if not folder.exists():
            self._make_folder(folder.parent)
            folder.mkdir()
            folder.chmod(self._folder_mode)

    def _link_unchanged(self, folder: Path, names: Iterable[str], date: str) -> bool:
        """Link files of the previous export into this one. Returns False if one is missing or was modified."""
        for name in names:
            file, link = self._folder / folder / name, self._staging / folder / name
            try:
                if file.is_symlink() or file.stat().st_mtime_ns != _nanoseconds(date):
                    return False
                self._make_folder(link.parent)
                _link_or_copy(file, link)
            except OSError:
                return False
        self.report = replace(self.report, linked=self.report.linked + 1)
        return True


async def _iterate_documents(db: Connection, source: Source) -> AsyncIterator[ExportedDocument]:
    after = FIRST_ID
    while batch := await export_store.export_documents(db, source, after=after, limit=BATCH_SIZE):
        for document in batch:
            yield document
        after = batch[-1].id


def _make_version_entry(version: ExportedVersion) -> ExportRecord:
    """Return a version's entry in the manifest. Its ``facts`` change whenever its record does."""
    digest = sha256(json.dumps(version.record, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "version_id": version.born,
        "date": version.record["fetched_at"],
        "hash": version.record["raw_hash"] or None,
        "until": version.died,
        "facts": digest,
    }


def _display_path(url: str) -> str:
    """Return the key of a document in the manifest: a file by its path if that is printable, else its URL."""
    if not url.startswith("file:"):
        return url
    path = file_path(url)
    return path if path.isprintable() else url


def _sort_key(pair: tuple[str, ExportRecord]) -> tuple[str, str]:
    return pair[0], pair[1]["doc_id"]


def _nanoseconds(date: str) -> int:
    return int(datetime.fromisoformat(date).timestamp()) * 10**9


def _link_or_copy(file: Path, link: Path) -> None:
    try:
        os.link(file, link)
    except OSError:
        shutil.copy2(file, link)
