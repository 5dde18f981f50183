"""Loads the manifest of an export, and upgrades one in the legacy format.

A legacy manifest has only ``files`` by path, each with a ``doc_id`` and a ``hash``. It is upgraded in place, with a
copy in ``manifest.json.bak``: every entry gets the fields it lacks (``status`` active, ``last_seen`` now,
``retry_count`` 0, no versions).
"""

import json
import os
import uuid
from datetime import datetime
from pathlib import Path
from typing import Any

from kept.errors import InvalidInput, NotFound
from kept.maintenance.export import EXPORT_FORMAT, MANIFEST_NAME
from kept.model.generation import Tally
from kept.model.root import derive_name
from kept.model.source import SourceKind, SourceSettings
from kept.model.url import file_url

_ID_NAMESPACE = uuid.UUID("5b0ddf2c-0c3c-4b4e-9a55-6f3f3b8a7f11")  # for ids that are not UUIDs


def find(path: Path) -> Path:
    """Return the manifest file in a folder, or the file itself if it is one. Raises NotFound."""
    file = path / MANIFEST_NAME if path.is_dir() else path
    if not file.is_file():
        raise NotFound(f"There is no {file}. 'kept import' takes a folder that 'kept export' wrote, or its manifest.")
    return file


def load(file: Path, now: datetime) -> dict[str, Any]:
    """Return the manifest in a file, upgraded in place if it is a legacy one. Raises InvalidInput."""
    try:
        manifest = json.loads(file.read_text("utf-8"))
        files = manifest["files"]
        assert isinstance(files, dict)
        assert all(isinstance(entry, dict) and isinstance(entry["doc_id"], str) for entry in files.values())
    except (ValueError, KeyError, TypeError, AssertionError):
        raise InvalidInput(
            f"{file} is not the manifest of an export: it does not list files and their doc_ids."
        ) from None
    if manifest.get("tree"):
        raise InvalidInput(f"{file} belongs to an export with --tree, which is for reading. Export again without it.")
    if manifest.get("format", EXPORT_FORMAT) != EXPORT_FORMAT:
        raise InvalidInput(f"{file} is a '{manifest['format']}', and this Kept reads a '{EXPORT_FORMAT}'.")
    if "format" in manifest:
        return dict(manifest)
    upgraded = upgrade(manifest, now)
    backup = file.with_name(f"{file.name}.bak")
    if upgraded != manifest and not backup.exists():
        backup.write_bytes(file.read_bytes())
    if upgraded != manifest:
        draft = file.with_name(f".{file.name}.draft")
        draft.write_text(json.dumps(upgraded, indent=1), "utf-8")
        os.replace(draft, file)
    return upgraded


def upgrade(manifest: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return a legacy manifest with all fields of today's entries."""
    defaults = {"status": "active", "last_seen": now.isoformat(timespec="microseconds"), "retry_count": 0}
    files = {
        path: {**defaults, "content_hash": entry.get("hash"), "versions": [], **entry}
        for path, entry in manifest["files"].items()
    }
    return manifest | {"files": files}


def make_legacy_source(file: Path, manifest: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the record of the single source of a legacy manifest: the folder that contains all its paths."""
    paths = [os.path.abspath(os.path.join(file.parent, path)) for path in manifest["files"]]
    root = file_url(os.path.commonpath([os.path.dirname(path) for path in paths]) if paths else str(file.parent))
    timestamp = now.isoformat(timespec="microseconds")
    generation = {
        "number": 2,  # generation 1 had the documents that are deleted
        "base": None,
        "state": "active",
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
    return {
        "name": derive_name(root),
        "version": "",
        "kind": SourceKind.FOLDER,
        "root": root,
        "settings": SourceSettings().as_json(),
        "created_at": timestamp,
        "generation": 2,
        "generations": [generation],
    }


def document_id(doc_id: str) -> str:
    """Return the id of an imported document: its own if it is a UUID, else one derived from it."""
    try:
        return str(uuid.UUID(doc_id))
    except ValueError:
        return str(uuid.uuid5(_ID_NAMESPACE, doc_id))
