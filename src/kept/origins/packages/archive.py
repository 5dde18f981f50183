"""The documentation in a package's archive, unpacked without trusting it.

Files are written under numbers, so no name in an archive can lead anywhere. Links, devices and what nobody reads are
left where they are; what is too much is refused as a whole.
"""

import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO

from kept.errors import SourceUnavailable

MOST_ENTRIES = 100_000
MOST_BYTES = 256 * 1024 * 1024  # of what is unpacked
MOST_RATIO = 200  # of a whole archive, unpacked to packed
_PIECE = 64 * 1024


_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    EOFError,
    OSError,
    RuntimeError,
    NotImplementedError,
)


class TooMuch(SourceUnavailable):
    """The archive unpacks to more than documentation can be."""


def unpack(archive: Path, folder: Path, wanted: Callable[[str], bool]) -> dict[str, Path]:
    """The wanted files of an archive: path in the package -> where it was written. SourceUnavailable if it is none."""
    budget = _Budget(archive.stat().st_size)
    found: dict[str, Path] = {}
    try:
        with _entries(archive, budget) as entries:
            for name, body in entries:
                path = _path(name)
                if path and path not in found and wanted(path):
                    found[path] = folder / f"{len(found):06d}"
                    _write(body(), found[path], budget)
    except _DAMAGED:
        raise SourceUnavailable(f"{archive.name} is no archive that can be unpacked.") from None
    return found


class _Budget:
    def __init__(self, packed: int) -> None:
        self._entries = MOST_ENTRIES
        self._bytes = MOST_BYTES
        self._read = max(MOST_BYTES // 16, packed * MOST_RATIO)

    def entry(self, size: int) -> None:
        """One more entry; in a stream its bytes are unpacked whether or not anybody wants them."""
        self._entries -= 1
        self._read -= size
        if self._entries < 0 or self._read < 0:
            raise TooMuch("The package's archive unpacks to more than documentation can be. It is not kept.")

    def written(self, size: int) -> None:
        self._bytes -= size
        if self._bytes < 0:
            raise TooMuch("The package's archive unpacks to more than documentation can be. It is not kept.")


Body = Callable[[], IO[bytes]]


@contextmanager
def _entries(archive: Path, budget: _Budget) -> Iterator[Iterator[tuple[str, Body]]]:
    """The regular files of an archive, without the folder that everything in a tarball lies in."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield _of_zip(opened, budget)
    else:
        with tarfile.open(archive, "r|*") as streamed:
            yield _of_tar(streamed, budget)


def _of_zip(opened: zipfile.ZipFile, budget: _Budget) -> Iterator[tuple[str, Body]]:
    for info in opened.infolist():
        budget.entry(0)
        kind = (info.external_attr >> 16) & 0o170000
        if not info.is_dir() and kind in (0, 0o100000):
            yield info.filename, partial(opened.open, info)


def _of_tar(streamed: tarfile.TarFile, budget: _Budget) -> Iterator[tuple[str, Body]]:
    for member in streamed:
        budget.entry(member.size)
        if member.isreg():
            yield member.name.removeprefix("./").partition("/")[2], partial(_extracted, streamed, member)


def _extracted(streamed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = streamed.extractfile(member)
    assert file is not None, "a regular file has bytes"
    return file


def _path(name: str) -> str | None:
    """A path below the package; None for what would lead out of it, or cannot be a name."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or not name.isprintable() or ":" in parts[0]:
        return None
    return "/".join(parts)


def _write(body: IO[bytes], to: Path, budget: _Budget) -> None:
    with body, to.open("xb") as file:
        while data := body.read(_PIECE):
            budget.written(len(data))
            file.write(data)
