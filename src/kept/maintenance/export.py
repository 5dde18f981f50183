"""Writes what is kept into a folder that people, other programs and ``kept import`` can read.

    manifest.json                                  the sources and, by path, every document: see docs/maintenance.md
    documents/{doc_id}/content.md                  what the active generation shows
    documents/{doc_id}/versions/{version_id}/…     what it was before, by the generation that brought it
    …/version.json                                 beside each content.md: its sections, links and validators

The folder is replaced as a whole (``staging``). What an earlier export wrote and still holds is linked, not written.
"""

import json
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from kept.errors import InvalidInput
from kept.maintenance.atomic_folder import replace_folder
from kept.maintenance.export_paths import tree_paths
from kept.model.source import Source
from kept.model.url import file_path
from kept.store import export as export_store
from kept.store import sources
from kept.store.database import Connection, Database, Row
from kept.store.export import FIRST_ID, ExportRecord

EXPORT_FORMAT = "kept export 1"
MANIFEST_NAME = "manifest.json"
BATCH_SIZE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class ExportReport:
    sources: int = 0
    documents: int = 0  # that the folder shows
    written: int = 0  # contents; the others were there already
    linked: int = 0


async def export_sources(db: Database, folder: Path, labels: Sequence[str] = (), *, tree: bool = False) -> ExportReport:
    """Writes these sources (none named: all) as they are at this moment. Sources that have nothing yet are left out."""
    former = read_previous_manifest(folder)
    with replace_folder(folder) as staging:
        async with db.snapshot() as snapshot:
            wanted = [
                source
                for source in await sources.all(snapshot)
                if source.active_generation and (not labels or source.label in labels)
            ]
            writing = _ExportWriter(folder, staging, former, tree=tree)
            for source in wanted:
                await writing.write_source(snapshot, source)
        writing.write_manifest()
        return replace(writing.report, sources=len(wanted))


def read_previous_manifest(folder: Path) -> dict[str, Any]:
    """What an export has written here; nothing where nothing is. WrongCall for a folder that is something else."""
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
    """One export under way."""

    def __init__(self, folder: Path, staging: Path, previous: Mapping[str, Any], *, tree: bool) -> None:
        self.report = ExportReport()
        self._folder, self._staging, self._tree = folder, staging, tree
        self._sources: dict[str, ExportRecord] = {}
        self._files: dict[str, ExportRecord] = {}
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
        shown: list[tuple[str, ExportRecord]] = []
        hidden: list[tuple[str, ExportRecord]] = []
        async for id, facts, rows in _iterate_documents(db, source):
            lives = rows[-1]["died"] is None
            if self._tree and not lives:
                continue
            entry = {"doc_id": id, "source": source.label, "url": rows[-1]["url"], "title": rows[-1]["title"]}
            entry |= {"status": facts.pop("lifecycle"), "content_hash": rows[-1]["content_hash"], **facts}
            entry["versions"] = [] if self._tree else [_make_version_entry(row) for row in rows]
            if not self._tree:
                for row, told in zip(rows, entry["versions"], strict=True):
                    await self._write_version(db, id, row, told)
            else:
                entry["rows"] = rows
            (shown if lives else hidden).append((_display_path(entry["url"]), entry))
        if self._tree:
            await self._write_tree(db, source, [entry for _, entry in shown])
        for path, entry in [*sorted(shown, key=_sort_key), *sorted(hidden, key=_sort_key)]:
            # A path may have been another document's before, or be of several sources: the first has it to itself.
            self._files[path if path not in self._files else f"{path}#{entry['doc_id']}"] = entry
        self.report = replace(self.report, documents=self.report.documents + len(shown))

    def write_manifest(self) -> None:
        manifest = {"format": EXPORT_FORMAT, "tree": self._tree, "sources": self._sources, "files": self._files}
        with (self._staging / MANIFEST_NAME).open("w", encoding="utf-8") as file:
            json.dump(manifest, file, indent=1, sort_keys=False)

    async def _write_version(self, db: Connection, id: str, row: Row, entry: ExportRecord) -> None:
        folder = Path("documents", id, *(() if row["died"] is None else ("versions", str(row["born"]))))
        former = next(
            (one for one in self._previous.get(id, {}).get("versions", ()) if one["version_id"] == row["born"]), None
        )
        if former == entry and self._link_unchanged(folder, ("content.md", "version.json"), entry["date"]):
            return
        facts, content = export_store.version_record(row), await export_store.load_content(db, row["content_id"])
        told_sections = [section._asdict() for section in content.sections]
        beside = json.dumps({"title": content.title, **facts, "sections": told_sections}, indent=1)
        self._write(folder / "content.md", content.markdown, entry["date"])
        self._write(folder / "version.json", beside, entry["date"])
        self.report = replace(self.report, written=self.report.written + 1)

    async def _write_tree(self, db: Connection, source: Source, entries: Iterable[ExportRecord]) -> None:
        told = {entry["doc_id"]: entry for entry in entries}
        paths = tree_paths(source, {id: entry["url"] for id, entry in told.items()})
        for id, path in paths.items():
            entry, rows = told[id], told[id].pop("rows")
            date = _make_version_entry(rows[-1])["date"]
            entry |= {"file": path, "date": date}
            former = self._previous.get(id, {})
            same = all(former.get(name) == entry[name] for name in ("file", "content_hash", "date"))
            if same and self._link_unchanged(Path(path).parent, (Path(path).name,), date):
                continue
            content = await export_store.load_content(db, rows[-1]["content_id"])
            self._write(Path(path), content.markdown, date)
            self.report = replace(self.report, written=self.report.written + 1)

    def _write(self, path: Path, text: str, date: str) -> None:
        """A file as old as what it holds: one that was touched since is recognised by its time."""
        file = self._staging / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        os.utime(file, ns=(_nanoseconds(date),) * 2)

    def _link_unchanged(self, folder: Path, names: Iterable[str], date: str) -> bool:
        """True if these files are still there as they were written, and now here too."""
        for name in names:
            file, here = self._folder / folder / name, self._staging / folder / name
            try:
                if file.is_symlink() or file.stat().st_mtime_ns != _nanoseconds(date):
                    return False
                here.parent.mkdir(parents=True, exist_ok=True)
                _link_or_copy(file, here)
            except OSError:
                return False
        self.report = replace(self.report, linked=self.report.linked + 1)
        return True


async def _iterate_documents(db: Connection, source: Source) -> AsyncIterator[tuple[str, ExportRecord, list[Row]]]:
    after = FIRST_ID
    while chunk := await export_store.export_documents(db, source, after=after, limit=BATCH_SIZE):
        for one in chunk:
            yield one
        after = chunk[-1][0]


def _make_version_entry(row: Row) -> ExportRecord:
    """A version as the manifest names it; ``facts`` changes whenever anything that is told about it does."""
    facts = export_store.version_record(row)
    digest = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "version_id": row["born"],
        "date": facts["fetched_at"],
        "hash": row["content_hash"],
        "until": row["died"],
        "facts": digest,
    }


def _display_path(url: str) -> str:
    """How people call it: a file by its path, unless that is no text."""
    if not url.startswith("file:"):
        return url
    path = file_path(url)
    return path if path.isprintable() else url


def _sort_key(pair: tuple[str, ExportRecord]) -> tuple[str, str]:
    return pair[0], pair[1]["doc_id"]


def _nanoseconds(date: str) -> int:
    return int(datetime.fromisoformat(date).timestamp()) * 10**9


def _link_or_copy(file: Path, here: Path) -> None:
    try:
        os.link(file, here)
    except OSError:
        shutil.copy2(file, here)
