"""Atomic replacement of a folder: readers see the old tree or the new one, even after the writer was killed.

The new tree is written beside the old one, and the two are exchanged in one system call. Staging folders of killed
writers are recognised by their names and removed by the next one.
"""

import ctypes
import errno
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from kept.private_files import PRIVATE_FOLDER_MODE, make_private_folder

_STAGING, _PREVIOUS = "kept-staging", "kept-former"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Yield an empty staging folder. Afterwards it replaces the folder; after an error it is removed."""
    restore_previous(folder)
    for leftover in find_leftovers(folder):
        shutil.rmtree(leftover, ignore_errors=True)
    make_private_folder(folder.parent)
    staging = folder.with_name(f".{folder.name}.{_STAGING}-{os.getpid()}-{secrets.token_hex(4)}")
    staging.mkdir(PRIVATE_FOLDER_MODE)
    try:
        yield staging
        _move_into_place(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def restore_previous(folder: Path) -> None:
    """Put the old tree back if a writer was killed between the two steps of a replacement without exchange."""
    previous = folder.with_name(f".{folder.name}.{_PREVIOUS}")
    if previous.exists() and not folder.exists():
        previous.rename(folder)


def find_leftovers(folder: Path) -> list[Path]:
    """Return what killed writers have left beside a folder."""
    staging = list(folder.parent.glob(f".{_escape_glob(folder.name)}.{_STAGING}-*")) if folder.parent.is_dir() else []
    previous = folder.with_name(f".{folder.name}.{_PREVIOUS}")
    return [path for path in staging if not _is_writer_alive(path)] + (
        [previous] if previous.exists() and folder.exists() else []
    )


def _move_into_place(staging: Path, folder: Path) -> None:
    if not folder.exists() or not any(folder.iterdir()):
        staging.rename(folder)  # rename replaces an empty folder
    elif not _swap(staging, folder):
        previous = folder.with_name(f".{folder.name}.{_PREVIOUS}")
        shutil.rmtree(previous, ignore_errors=True)
        folder.rename(previous)
        staging.rename(folder)
        shutil.rmtree(previous, ignore_errors=True)


def _swap(one: Path, other: Path) -> bool:
    """Exchange two folders atomically. Returns False if the system cannot."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            status = library.renamex_np(os.fsencode(one), os.fsencode(other), _RENAME_EXCHANGE)
        else:
            status = library.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    except (AttributeError, OSError):
        return False
    if status and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return not status


def _is_writer_alive(staging: Path) -> bool:
    """Whether the writing process is alive. Another process with its number only delays the cleanup."""
    try:
        os.kill(int(staging.name.rpartition(f"{_STAGING}-")[2].partition("-")[0]), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


def _escape_glob(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)
