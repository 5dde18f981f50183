"""Writes what is kept into a folder that people, other programs and ``kept import`` can read.

    manifest.json                                  the sources and, by path, every document: see docs/upkeep.md
    documents/{doc_id}/content.md                  what the active generation shows
    documents/{doc_id}/versions/{version_id}/…     what it was before, by the generation that brought it
    …/version.json                                 beside each content.md: its sections, links and validators

The folder is replaced as a whole (``staging``). What an earlier export wrote and still holds is linked, not written.
"""

import json
import os
import shutil
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Any

from kept.errors import WrongCall
from kept.model.nouns import dataclass
from kept.model.source import Source
from kept.model.url import file_path
from kept.store import mirror, sources
from kept.store.database import Connection, Database, Row
from kept.store.mirror import FIRST_ID, Facts
from kept.upkeep.staging import replacing
from kept.upkeep.tree import tree_paths

FORMAT = "kept export 1"
MANIFEST = "manifest.json"
AT_ONCE = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Exported:
    sources: int = 0
    documents: int = 0  # that the folder shows
    written: int = 0  # contents; the others were there already
    linked: int = 0


async def export(db: Database, folder: Path, labels: Sequence[str] = (), *, tree: bool = False) -> Exported:
    """Writes these sources (none named: all) as they are at this moment. Sources that have nothing yet are left out."""
    former = read_manifest(folder)
    with replacing(folder) as staging:
        async with db.snapshot() as snapshot:
            wanted = [
                source
                for source in await sources.all(snapshot)
                if source.active_generation and (not labels or source.label in labels)
            ]
            writing = _Writing(folder, staging, former, tree=tree)
            for source in wanted:
                await writing.source(snapshot, source)
        writing.finish()
        return replace(writing.exported, sources=len(wanted))


def read_manifest(folder: Path) -> dict[str, Any]:
    """What an export has written here; nothing where nothing is. WrongCall for a folder that is something else."""
    if not folder.exists() or (folder.is_dir() and not any(folder.iterdir())):
        return {}
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
        if manifest["format"] == FORMAT:
            return dict(manifest)
    except (OSError, ValueError, KeyError, TypeError):
        pass
    raise WrongCall(f"{folder} is neither empty nor an export of Kept, and would be replaced. Name another folder.")


class _Writing:
    """One export under way."""

    def __init__(self, folder: Path, staging: Path, former: Mapping[str, Any], *, tree: bool) -> None:
        self.exported = Exported()
        self._folder, self._staging, self._tree = folder, staging, tree
        self._sources: dict[str, Facts] = {}
        self._files: dict[str, Facts] = {}
        known = former.get("files", {}).values() if former.get("tree", False) == tree else ()
        self._former = {entry["doc_id"]: entry for entry in known}

    async def source(self, db: Connection, source: Source) -> None:
        self._sources[source.label] = {
            "name": source.name,
            "version": source.version,
            "kind": source.kind,
            "root": source.root,
            "settings": source.settings.as_json(),
            "created_at": source.created_at.isoformat(timespec="microseconds"),
            "generation": source.active_generation,
            "generations": await mirror.generations(db, source),
        }
        shown: list[tuple[str, Facts]] = []
        hidden: list[tuple[str, Facts]] = []
        async for id, facts, rows in _documents(db, source):
            lives = rows[-1]["died"] is None
            if self._tree and not lives:
                continue
            entry = {"doc_id": id, "source": source.label, "url": rows[-1]["url"], "title": rows[-1]["title"]}
            entry |= {"status": facts.pop("lifecycle"), "content_hash": rows[-1]["content_hash"], **facts}
            entry["versions"] = [] if self._tree else [_version(row) for row in rows]
            if not self._tree:
                for row, told in zip(rows, entry["versions"], strict=True):
                    await self._write_version(db, id, row, told)
            else:
                entry["rows"] = rows
            (shown if lives else hidden).append((_path(entry["url"]), entry))
        if self._tree:
            await self._write_tree(db, source, [entry for _, entry in shown])
        for path, entry in [*sorted(shown, key=_first), *sorted(hidden, key=_first)]:
            # A path may have been another document's before, or be of several sources: the first has it to itself.
            self._files[path if path not in self._files else f"{path}#{entry['doc_id']}"] = entry
        self.exported = replace(self.exported, documents=self.exported.documents + len(shown))

    def finish(self) -> None:
        told = {"format": FORMAT, "tree": self._tree, "sources": self._sources, "files": self._files}
        with (self._staging / MANIFEST).open("w", encoding="utf-8") as file:
            json.dump(told, file, indent=1, sort_keys=False)

    async def _write_version(self, db: Connection, id: str, row: Row, told: Facts) -> None:
        place = Path("documents", id, *(() if row["died"] is None else ("versions", str(row["born"]))))
        former = next(
            (one for one in self._former.get(id, {}).get("versions", ()) if one["version_id"] == row["born"]), None
        )
        if former == told and self._link(place, ("content.md", "version.json"), told["date"]):
            return
        facts, content = mirror.version(row), await mirror.content(db, row["content_id"])
        told_sections = [section._asdict() for section in content.sections]
        beside = json.dumps({"title": content.title, **facts, "sections": told_sections}, indent=1)
        self._write(place / "content.md", content.markdown, told["date"])
        self._write(place / "version.json", beside, told["date"])
        self.exported = replace(self.exported, written=self.exported.written + 1)

    async def _write_tree(self, db: Connection, source: Source, entries: Iterable[Facts]) -> None:
        told = {entry["doc_id"]: entry for entry in entries}
        paths = tree_paths(source, {id: entry["url"] for id, entry in told.items()})
        for id, path in paths.items():
            entry, rows = told[id], told[id].pop("rows")
            date = _version(rows[-1])["date"]
            entry |= {"file": path, "date": date}
            former = self._former.get(id, {})
            same = all(former.get(name) == entry[name] for name in ("file", "content_hash", "date"))
            if same and self._link(Path(path).parent, (Path(path).name,), date):
                continue
            content = await mirror.content(db, rows[-1]["content_id"])
            self._write(Path(path), content.markdown, date)
            self.exported = replace(self.exported, written=self.exported.written + 1)

    def _write(self, path: Path, text: str, date: str) -> None:
        """A file as old as what it holds: one that was touched since is recognised by its time."""
        file = self._staging / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(text.encode("utf-8", "surrogatepass"))
        os.utime(file, ns=(_nanoseconds(date),) * 2)

    def _link(self, place: Path, names: Iterable[str], date: str) -> bool:
        """True if these files are still there as they were written, and now here too."""
        for name in names:
            file, here = self._folder / place / name, self._staging / place / name
            try:
                if file.is_symlink() or file.stat().st_mtime_ns != _nanoseconds(date):
                    return False
                here.parent.mkdir(parents=True, exist_ok=True)
                _link_or_copy(file, here)
            except OSError:
                return False
        self.exported = replace(self.exported, linked=self.exported.linked + 1)
        return True


async def _documents(db: Connection, source: Source) -> AsyncIterator[tuple[str, Facts, list[Row]]]:
    after = FIRST_ID
    while chunk := await mirror.documents(db, source, after=after, limit=AT_ONCE):
        for one in chunk:
            yield one
        after = chunk[-1][0]


def _version(row: Row) -> Facts:
    """A version as the manifest names it; ``facts`` changes whenever anything that is told about it does."""
    facts = mirror.version(row)
    digest = sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:16]
    return {
        "version_id": row["born"],
        "date": facts["fetched_at"],
        "hash": row["content_hash"],
        "until": row["died"],
        "facts": digest,
    }


def _path(url: str) -> str:
    """How people call it: a file by its path, unless that is no text."""
    if not url.startswith("file:"):
        return url
    path = file_path(url)
    return path if path.isprintable() else url


def _first(pair: tuple[str, Facts]) -> tuple[str, str]:
    return pair[0], pair[1]["doc_id"]


def _nanoseconds(date: str) -> int:
    return int(datetime.fromisoformat(date).timestamp()) * 10**9


def _link_or_copy(file: Path, here: Path) -> None:
    try:
        os.link(file, here)
    except OSError:
        shutil.copy2(file, here)
