"""The documentation in a package's archive, unpacked without trusting it.

Files are written under numbers, so no name in an archive can lead anywhere. Links, devices and what nobody reads are
left where they are; what is too much is refused as a whole.
"""

import gzip
import lzma
import struct
import tarfile
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import IO, cast

from kept.errors import SourceUnavailable

MOST_ENTRIES = 100_000
MOST_BYTES = 256 * 1024 * 1024  # of what is unpacked
MOST_RATIO = 200  # of a whole archive, unpacked to packed
MOST_ADDED = 1024 * 1024  # to one entry of a tarball
_ADDITIONS = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_PIECE = 64 * 1024


_DAMAGED = (
    tarfile.TarError,
    zipfile.BadZipFile,
    zlib.error,
    lzma.LZMAError,
    struct.error,
    EOFError,
    OSError,
    ValueError,
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
        self._stream = max(MOST_BYTES // 16, packed * MOST_RATIO)

    def entry(self) -> None:
        self._entries -= 1
        self._check(self._entries)

    def unpacked(self, size: int) -> None:
        """Bytes of a stream, which are unpacked whether or not anybody wants them."""
        self._stream -= size
        self._check(self._stream)

    def written(self, size: int) -> None:
        self._bytes -= size
        self._check(self._bytes)

    def _check(self, left: int) -> None:
        if left < 0:
            raise TooMuch("The package's archive unpacks to more than documentation can be. It is not kept.")


Body = Callable[[], IO[bytes]]


@contextmanager
def _entries(archive: Path, budget: _Budget) -> Iterator[Iterator[tuple[str, Body]]]:
    """The regular files of an archive, without the folder that everything in a tarball lies in."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield _of_zip(opened, budget)
    else:
        with gzip.open(archive) as unpacked, _opened(_Counted(unpacked, budget)) as streamed:
            yield _of_tar(streamed, budget)


class _Counted:
    """A stream, as far as its budget goes."""

    def __init__(self, stream: gzip.GzipFile, budget: _Budget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._budget.unpacked(len(data))
        return data


class _Member(tarfile.TarInfo):
    """An entry whose long names and other additions, which are read as a whole, are no longer than such things are."""

    @property
    def size(self) -> int:
        if self.type in _ADDITIONS and not 0 <= self._size <= MOST_ADDED:
            raise TooMuch("The package's archive says more about its files than there is to say. It is not kept.")
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size


def _opened(stream: _Counted) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_Member)


def _of_zip(opened: zipfile.ZipFile, budget: _Budget) -> Iterator[tuple[str, Body]]:
    for info in opened.infolist():
        budget.entry()
        kind = (info.external_attr >> 16) & 0o170000
        if info.filename[-1:] not in ("", "/") and kind in (0, 0o100000):
            yield info.filename, partial(opened.open, info)


def _of_tar(streamed: tarfile.TarFile, budget: _Budget) -> Iterator[tuple[str, Body]]:
    for member in streamed:
        budget.entry()
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
