"""What was left behind on this machine: by exports that were killed, by clones whose source is gone.

An export notes its folder in the user's cache folder, so that what a killed one left beside it is found again.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from kept.maintenance import atomic_folder

EXPORTS_FOLDER = "exports"
CLONES_FOLDER = "git"  # of repositories: each a folder, and beside it a lock that is touched by every use
UNUSED_SECONDS = 30 * 86400


@dataclass(frozen=True, slots=True)
class Leftover:
    path: Path
    why: str


def record_export_folder(cache: Path, folder: Path) -> None:
    """That exports go there."""
    notes = cache / EXPORTS_FOLDER
    notes.mkdir(parents=True, exist_ok=True)
    note = notes / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    note.write_bytes(os.fsencode(folder))


def find(cache: Path) -> list[Leftover]:
    """Everything here that belongs to nothing. Another kind of cache is another line."""
    return [*_find_export_leftovers(cache), *_find_unused_clones(cache)]


def remove(found: Iterable[Leftover]) -> int:
    removed = 0
    for one in found:
        if one.path.is_dir():
            shutil.rmtree(one.path, ignore_errors=True)
        else:
            one.path.unlink(missing_ok=True)
        removed += not one.path.exists()
    return removed


def _find_export_leftovers(cache: Path) -> list[Leftover]:
    found = []
    for note in sorted((cache / EXPORTS_FOLDER).glob("*")):
        folder = Path(os.fsdecode(note.read_bytes()))
        found += [Leftover(path, "an export was killed") for path in atomic_folder.find_leftovers(folder)]
        if not folder.exists() and folder.parent.exists():
            found.append(Leftover(note, "there is no export there any more"))
    return found


def _find_unused_clones(cache: Path) -> list[Leftover]:
    """Several databases may share a copy, so none of them knows whether it is needed. It can be fetched again."""
    unused = [
        lock for lock in (cache / CLONES_FOLDER).glob("*.lock") if time.time() - lock.stat().st_mtime > UNUSED_SECONDS
    ]
    copies = [lock.with_suffix("") for lock in unused]  # the locks stay: somebody may be waiting for one
    return [Leftover(copy, "no crawl used it for 30 days") for copy in copies if copy.exists()]
