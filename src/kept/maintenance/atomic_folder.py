"""A folder that is replaced as a whole: whoever looks sees the old tree or the new one, at any moment, after any kill.

The new tree is written beside the old one and the two change places in one step. What a killed writer leaves behind is
recognised by its name and taken away by the next one.
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

_STAGING, _PREVIOUS = "kept-staging", "kept-former"
_AT_FDCWD, _RENAME_EXCHANGE = -100, 2


@contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """An empty folder for the new tree. At the end it takes the place of the old one; after an error it goes."""
    restore_previous(folder)
    for leftover in find_leftovers(folder):
        shutil.rmtree(leftover, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    staging = folder.with_name(f".{folder.name}.{_STAGING}-{os.getpid()}-{secrets.token_hex(4)}")
    staging.mkdir()
    try:
        yield staging
        _move_into_place(staging, folder)
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def restore_previous(folder: Path) -> None:
    """Where two steps were needed and only the first was done: the old tree is put back."""
    former = folder.with_name(f".{folder.name}.{_PREVIOUS}")
    if former.exists() and not folder.exists():
        former.rename(folder)


def find_leftovers(folder: Path) -> list[Path]:
    """What writers that are no more have left beside a folder."""
    found = list(folder.parent.glob(f".{_escape_glob(folder.name)}.{_STAGING}-*")) if folder.parent.is_dir() else []
    former = folder.with_name(f".{folder.name}.{_PREVIOUS}")
    return [one for one in found if not _is_writer_alive(one)] + (
        [former] if former.exists() and folder.exists() else []
    )


def _move_into_place(staging: Path, folder: Path) -> None:
    if not folder.exists() or not any(folder.iterdir()):
        staging.rename(folder)  # an empty folder gives way
    elif not _swap(staging, folder):
        former = folder.with_name(f".{folder.name}.{_PREVIOUS}")
        shutil.rmtree(former, ignore_errors=True)
        folder.rename(former)
        staging.rename(folder)
        shutil.rmtree(former, ignore_errors=True)


def _swap(one: Path, other: Path) -> bool:
    """True if the two have changed places, in one step. False where the system cannot."""
    try:
        library = ctypes.CDLL(None, use_errno=True)
        if sys.platform == "darwin":
            failed = library.renamex_np(os.fsencode(one), os.fsencode(other), _RENAME_EXCHANGE)
        else:
            failed = library.renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE)
    except (AttributeError, OSError):
        return False
    if failed and ctypes.get_errno() not in (errno.EINVAL, errno.ENOSYS, errno.ENOTSUP):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()), str(other))
    return not failed


def _is_writer_alive(staging: Path) -> bool:
    """Whether the process that writes it is there. Another process of that number only delays the cleaning."""
    try:
        os.kill(int(staging.name.rpartition(f"{_STAGING}-")[2].partition("-")[0]), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        pass
    return True


def _escape_glob(name: str) -> str:
    return "".join(f"[{character}]" if character in "*?[" else character for character in name)
