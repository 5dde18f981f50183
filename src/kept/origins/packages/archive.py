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

MAX_ENTRIES = 100_000
MAX_BYTES = 256 * 1024 * 1024  # of what is unpacked
MAX_RATIO = 200  # of a whole archive, unpacked to packed
MAX_EXTENDED_HEADER_BYTES = 1024 * 1024  # to one entry of a tarball
_EXTENDED_HEADER_TYPES = (
    *(tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE),
    *(tarfile.GNUTYPE_LONGNAME, tarfile.GNUTYPE_LONGLINK),
)
_CHUNK_BYTES = 64 * 1024


_ARCHIVE_ERRORS = (
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


class ArchiveTooLarge(SourceUnavailable):
    """The archive unpacks to more than documentation can be."""


def unpack_archive(archive: Path, folder: Path, is_wanted: Callable[[str], bool]) -> dict[str, Path]:
    """The wanted files of an archive: path in the package -> where it was written. SourceUnavailable if it is none."""
    budget = _UnpackBudget(archive.stat().st_size)
    found: dict[str, Path] = {}
    try:
        with _open_entries(archive, budget) as entries:
            for name, body in entries:
                path = _safe_path(name)
                if path and path not in found and is_wanted(path):
                    found[path] = folder / f"{len(found):06d}"
                    _write_file(body(), found[path], budget)
    except _ARCHIVE_ERRORS:
        raise SourceUnavailable(f"{archive.name} is no archive that can be unpacked.") from None
    return found


class _UnpackBudget:
    def __init__(self, packed: int) -> None:
        self._entries = MAX_ENTRIES
        self._bytes = MAX_BYTES
        self._stream = max(MAX_BYTES // 16, packed * MAX_RATIO)

    def count_entry(self) -> None:
        self._entries -= 1
        self._check(self._entries)

    def count_unpacked(self, size: int) -> None:
        """Bytes of a stream, which are unpacked whether or not anybody wants them."""
        self._stream -= size
        self._check(self._stream)

    def count_written(self, size: int) -> None:
        self._bytes -= size
        self._check(self._bytes)

    def _check(self, left: int) -> None:
        if left < 0:
            raise ArchiveTooLarge("The package's archive unpacks to more than documentation can be. It is not kept.")


OpenMember = Callable[[], IO[bytes]]


@contextmanager
def _open_entries(archive: Path, budget: _UnpackBudget) -> Iterator[Iterator[tuple[str, OpenMember]]]:
    """The regular files of an archive, without the folder that everything in a tarball lies in."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as opened:
            yield _zip_entries(opened, budget)
    else:
        with gzip.open(archive) as unpacked, _open_tar(_LimitedStream(unpacked, budget)) as streamed:
            yield _tar_entries(streamed, budget)


class _LimitedStream:
    """A stream, as far as its budget goes."""

    def __init__(self, stream: gzip.GzipFile, budget: _UnpackBudget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._budget.count_unpacked(len(data))
        return data


class _BoundedTarInfo(tarfile.TarInfo):
    """An entry whose long names and other additions, which are read as a whole, are no longer than such things are."""

    @property
    def size(self) -> int:
        if self.type in _EXTENDED_HEADER_TYPES and not 0 <= self._size <= MAX_EXTENDED_HEADER_BYTES:
            raise ArchiveTooLarge(
                "The package's archive says more about its files than there is to say. It is not kept."
            )
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size


def _open_tar(stream: _LimitedStream) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_BoundedTarInfo)


def _zip_entries(opened: zipfile.ZipFile, budget: _UnpackBudget) -> Iterator[tuple[str, OpenMember]]:
    for info in opened.infolist():
        budget.count_entry()
        kind = (info.external_attr >> 16) & 0o170000
        if info.filename[-1:] not in ("", "/") and kind in (0, 0o100000):
            yield info.filename, partial(opened.open, info)


def _tar_entries(streamed: tarfile.TarFile, budget: _UnpackBudget) -> Iterator[tuple[str, OpenMember]]:
    for member in streamed:
        budget.count_entry()
        if member.isreg():
            yield member.name.removeprefix("./").partition("/")[2], partial(_extract_member, streamed, member)


def _extract_member(streamed: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = streamed.extractfile(member)
    assert file is not None, "a regular file has bytes"
    return file


def _safe_path(name: str) -> str | None:
    """A path below the package; None for what would lead out of it, or cannot be a name."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or not name.isprintable() or ":" in parts[0]:
        return None
    return "/".join(parts)


def _write_file(body: IO[bytes], to: Path, budget: _UnpackBudget) -> None:
    with body, to.open("xb") as file:
        while data := body.read(_CHUNK_BYTES):
            budget.count_written(len(data))
            file.write(data)
