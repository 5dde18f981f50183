"""Manifests that Kept did not write: ``files`` by path or URL, each with a ``doc_id``.

    {"files": {"/srv/docs/a.md": {"doc_id": "doc-1", "content_hash": "…", "status": "active", "last_seen": "…",
                                  "retry_count": 0, "versions": [{"version_id": "v1", "date": "…", "hash": "…"}]}}}

Only ``doc_id`` is required. Contents are in ``documents/{doc_id}/content.md`` and, of earlier versions, in
``documents/{doc_id}/versions/{version_id}/content.md``, both also below ``knowledge_base/``. The files become a folder
source, the URLs a web source for each host. Versions have no generations there: the n-th version of every document is
in generation n.
"""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from urllib.parse import urlsplit

from kept.maintenance.export_folder import ExportFolder
from kept.maintenance.json_object import JsonObject, refuse
from kept.maintenance.manifest import check_folder_name, check_unique, check_url
from kept.model.document import Lifecycle
from kept.model.export import ExportRecord, ManifestDocument, ManifestGeneration, ManifestSource, ManifestVersion
from kept.model.generation import Tally
from kept.model.root import derive_name
from kept.model.source import SourceKind, SourceSettings
from kept.model.url import canonicalize_url, file_path, file_url

CONTENT_FOLDERS: tuple[tuple[str, ...], ...] = ((), ("knowledge_base",))  # where documents/ may be


@dataclass(frozen=True, slots=True, kw_only=True)
class _Snapshot:
    """The content of a legacy document at one time."""

    folder: tuple[str, ...]
    date: str
    hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    path: str
    place: str
    doc_id: str
    url: str
    lifecycle: Lifecycle
    retry_count: int
    last_seen: str
    snapshots: tuple[_Snapshot, ...]  # oldest first; those that have a content
    is_incomplete: bool

    @property
    def is_living(self) -> bool:
        return self.lifecycle in (Lifecycle.ACTIVE, Lifecycle.ERROR)


def upgrade(manifest: JsonObject, now: datetime) -> dict[str, object]:
    """Return a legacy manifest with all fields of today's entries."""
    defaults = {"status": "active", "last_seen": now.isoformat(timespec="microseconds"), "retry_count": 0}
    files = {
        path: {**defaults, "content_hash": entry.values.get("hash"), "versions": [], **entry.values}
        for path, entry in manifest.members("files")
    }
    return manifest.values | {"files": files}


def write_upgraded(file: Path, text: str) -> None:
    """Replace a manifest by its upgraded form. The original stays as manifest.json.bak, unless there is one already."""
    draft, backup = file.with_name(f".{file.name}.{secrets.token_hex(4)}"), file.with_name(f"{file.name}.bak")
    try:
        _write_new(draft, text.encode())
        with suppress(FileExistsError):
            _write_new(backup, file.read_bytes())
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)


def _write_new(file: Path, content: bytes) -> None:
    """Write a file that does not exist yet. What is there, a link too, is not followed and not replaced."""
    with open(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as opened:
        opened.write(content)


def parse(manifest: JsonObject, folder: ExportFolder, now: datetime) -> list[ManifestSource]:
    """Return the sources that follow from the paths of a manifest, with their documents. Raises InvalidInput."""
    groups: dict[str, list[_Entry]] = {}
    for path, entry in manifest.members("files"):
        parsed = _parse_entry(path, entry, folder, now)
        groups.setdefault(urlsplit(parsed.url).netloc, []).append(parsed)
    names: dict[str, int] = {}
    sources = []
    for entries in groups.values() or [[]]:
        source = _make_source(entries, folder, now, manifest.place)
        names[source.name] = names.get(source.name, 0) + 1
        same_name = names[source.name]
        sources.append(source if same_name == 1 else replace(source, name=f"{source.name}-{same_name}"))
    check_unique(sources)
    return sources


def _parse_entry(path: str, entry: JsonObject, folder: ExportFolder, now: datetime) -> _Entry:
    doc_id = check_folder_name(entry.text("doc_id"), entry.at("doc_id"))
    lifecycle = entry.choice("status", Lifecycle, Lifecycle.ACTIVE)
    last_seen = entry.time("last_seen", now, now.isoformat(timespec="microseconds"))
    hash = entry.optional_text("content_hash") or entry.optional_text("hash") or ""
    snapshots: list[_Snapshot] = []
    is_incomplete = False
    for listed in entry.objects("versions", optional=True):
        version_id = listed.values.get("version_id")
        if isinstance(version_id, int) and not isinstance(version_id, bool):
            version_id = str(version_id)
        elif not isinstance(version_id, str):
            refuse(listed.at("version_id"), "expected a text or a number")
        check_folder_name(version_id, listed.at("version_id"))
        date = listed.time("date", now, last_seen)
        version_hash = listed.optional_text("hash") or ""
        if found := _find_content(folder, doc_id, "versions", version_id):
            snapshots.append(_Snapshot(folder=found, date=date, hash=version_hash))
        elif not hash or version_hash != hash:  # with the same hash it is the present one
            is_incomplete = True
    snapshots.sort(key=lambda one: one.date)
    if found := _find_content(folder, doc_id):
        snapshots.append(_Snapshot(folder=found, date=last_seen, hash=hash))
    elif lifecycle in (Lifecycle.ACTIVE, Lifecycle.ERROR):
        snapshots = []  # what is shown has no content
    return _Entry(
        path=path,
        place=entry.place,
        doc_id=doc_id,
        url=_document_url(path, folder.path, entry.place),
        lifecycle=lifecycle,
        retry_count=entry.count("retry_count", 0),
        last_seen=last_seen,
        snapshots=tuple(snapshots),
        is_incomplete=is_incomplete or not snapshots,
    )


def _find_content(folder: ExportFolder, doc_id: str, *subfolder: str) -> tuple[str, ...] | None:
    for base in CONTENT_FOLDERS:
        parts = (*base, "documents", doc_id, *subfolder)
        if folder.exists(*parts, "content.md"):
            return parts
    return None


def _document_url(path: str, folder: Path, place: str) -> str:
    if "://" in path:
        url = canonicalize_url(path)
        if url is None or not url.startswith(("http:", "https:", "file:")):
            refuse(place, "expected a path, or an http, https or file URL")
    elif not path or ".." in Path(path).parts:
        refuse(place, "expected a path without '..'")
    else:
        url = file_url(os.path.abspath(folder / path))
    return check_url(url, place)


def _make_source(entries: list[_Entry], folder: ExportFolder, now: datetime, place: str) -> ManifestSource:
    urls = [entry.url for entry in entries]
    is_web = bool(urls) and not urls[0].startswith("file:")
    root = _web_root(urls) if is_web else _folder_root(urls, folder.path)
    kind = SourceKind.WEB if is_web else SourceKind.FOLDER
    settings, timestamp = SourceSettings(), now.isoformat(timespec="microseconds")
    # A document that has ended needs a generation that does not show it.
    active = max((len(entry.snapshots) + (not entry.is_living) for entry in entries if entry.snapshots), default=1)
    generations = [
        {
            "number": number,
            "base": number - 1 or None,
            "state": "active" if number == active else "retired",
            "mode": None,
            "documents": 0,
            "partial": None,
            "reason": "imported",
            "created_at": timestamp,
            "activated_at": timestamp,
            "whole": False,
            "changed": True,
            "counts": Tally().as_json(),
        }
        for number in range(1, active + 1)
    ]
    return ManifestSource(
        place=place,
        name=derive_name(root, kind),
        version="",
        kind=kind,
        root=root,
        settings=settings,
        created_at=timestamp,
        generation=active,
        generations=tuple(ManifestGeneration(settings=settings, record=record) for record in generations),
        is_legacy=True,
        documents=[_make_document(entry, active) for entry in entries],
    )


def _make_document(entry: _Entry, active: int) -> ManifestDocument:
    last = len(entry.snapshots)
    versions = [
        ManifestVersion(
            born=number,
            died=number + 1 if number < last else None if entry.is_living else active,
            folder=snapshot.folder,
            record=_version_record(entry.url, snapshot),
        )
        for number, snapshot in enumerate(entry.snapshots, 1)
    ]
    first_seen = min([entry.last_seen, *(snapshot.date for snapshot in entry.snapshots)])
    return ManifestDocument(
        path=entry.path,
        place=entry.place,
        doc_id=entry.doc_id,
        versions=tuple(versions),
        is_incomplete=entry.is_incomplete,
        record={
            "first_generation": 1,
            "lifecycle": str(entry.lifecycle),
            "missed_crawls": 0,
            "retry_count": entry.retry_count,
            "reason": None,
            "first_seen": first_seen,
            "since": None if entry.lifecycle is Lifecycle.ACTIVE else entry.last_seen,
            "verified_at": None,
        },
    )


def _version_record(url: str, snapshot: _Snapshot) -> ExportRecord:
    return {
        "read_again": False,
        "url": url,
        "content_type": "text/markdown",
        "etag": None,
        "last_modified": None,
        "raw_hash": snapshot.hash,
        "signature": "",
        "depth": 0,
        "canonical": None,
        "links": [],
        "fetched_at": snapshot.date,
    }


def _folder_root(urls: Iterable[str], folder: Path) -> str:
    """Return the folder that contains all files; of none, that of the manifest."""
    folders = [os.path.dirname(file_path(url)) for url in urls]
    return file_url(os.path.commonpath(folders) if folders else str(folder))


def _web_root(urls: list[str]) -> str:
    """Return the page, or else the folder, that all pages of one host are below."""
    folders = [urlsplit(url).path.split("/")[:-1] for url in urls]
    common = folders[0]
    for folder in folders:
        while folder[: len(common)] != common:
            common = common[:-1]
    site = urls[0][: urls[0].index("/", urls[0].index("://") + 3)]
    start = f"{site}{'/'.join(common)}/"
    in_folder = [url for url in urls if url.rpartition("/")[0] + "/" == start and "?" not in url]
    return min(in_folder, key=lambda url: (len(url), url), default=start)
