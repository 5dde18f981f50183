"""Cleanup of this machine: staging folders of killed exports, and clones that are no longer used.

An export records its folder in the user's cache folder, so that the staging folders beside it can be found.
"""

import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from kept.maintenance import atomic_folder
from kept.private_files import create_private_file, make_private_folder

EXPORTS_FOLDER = "exports"
CLONES_FOLDER = "git"  # each clone has a lock file beside it, which every use touches
UNUSED_SECONDS = 30 * 86400


@dataclass(frozen=True, slots=True)
class Leftover:
    path: Path
    why: str


def record_export_folder(cache: Path, folder: Path) -> None:
    """Record that exports are written to a folder."""
    notes = cache / EXPORTS_FOLDER
    make_private_folder(notes)
    note = notes / hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    with suppress(FileExistsError):
        create_private_file(note)
    note.write_bytes(os.fsencode(folder))


def find(cache: Path) -> list[Leftover]:
    """Return everything in and around the cache that is no longer used."""
    return [*_find_export_leftovers(cache), *_find_unused_clones(cache)]


def remove(leftovers: Iterable[Leftover]) -> int:
    removed = 0
    for leftover in leftovers:
        if leftover.path.is_dir():
            shutil.rmtree(leftover.path, ignore_errors=True)
        else:
            leftover.path.unlink(missing_ok=True)
        removed += not leftover.path.exists()
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
    """Clones are removed by age: several databases may share one, and it can be fetched again."""
    unused = [
        lock for lock in (cache / CLONES_FOLDER).glob("*.lock") if time.time() - lock.stat().st_mtime > UNUSED_SECONDS
    ]
    clones = [lock.with_suffix("") for lock in unused]  # the locks stay: a process may be waiting for one
    return [Leftover(clone, "no crawl used it for 30 days") for clone in clones if clone.exists()]
