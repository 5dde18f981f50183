"""Unpacks the documentation of an untrusted package archive.

Files are written under numbers, so no name in the archive can become a path. Links, devices and unwanted files are
skipped; an archive that exceeds a limit is refused as a whole.
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
MAX_BYTES = 256 * 1024 * 1024  # of all unpacked files
MAX_RATIO = 200  # unpacked to packed bytes, of the whole archive
MAX_EXTENDED_HEADER_BYTES = 1024 * 1024  # of one entry of a tarball
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
    """The archive exceeds a limit."""


def unpack_archive(archive: Path, folder: Path, is_wanted: Callable[[str], bool]) -> dict[str, Path]:
    """Unpack the wanted files: path in the package -> file written. Raises SourceUnavailable for a damaged archive."""
    budget = _UnpackBudget(archive.stat().st_size)
    files: dict[str, Path] = {}
    try:
        with _open_entries(archive, budget) as entries:
            for name, body in entries:
                path = _safe_path(name)
                if path and path not in files and is_wanted(path):
                    files[path] = folder / f"{len(files):06d}"
                    _write_file(body(), files[path], budget)
    except _ARCHIVE_ERRORS:
        raise SourceUnavailable(f"{archive.name} cannot be unpacked: it is not a valid archive.") from None
    return files


class _UnpackBudget:
    def __init__(self, packed: int) -> None:
        self._entries = MAX_ENTRIES
        self._bytes = MAX_BYTES
        self._stream = max(MAX_BYTES // 16, packed * MAX_RATIO)

    def count_entry(self) -> None:
        self._entries -= 1
        self._check(self._entries)

    def count_unpacked(self, size: int) -> None:
        """Count bytes of a stream, which has to be decompressed even where no file is wanted."""
        self._stream -= size
        self._check(self._stream)

    def count_written(self, size: int) -> None:
        self._bytes -= size
        self._check(self._bytes)

    def _check(self, left: int) -> None:
        if left < 0:
            raise ArchiveTooLarge("The package's archive unpacks to more than documentation can be, so it is not kept.")


OpenMember = Callable[[], IO[bytes]]


@contextmanager
def _open_entries(archive: Path, budget: _UnpackBudget) -> Iterator[Iterator[tuple[str, OpenMember]]]:
    """Yield the regular files of an archive, without the top folder of a tarball."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as zipped:
            yield _zip_entries(zipped, budget)
    else:
        with gzip.open(archive) as stream, _open_tar(_LimitedStream(stream, budget)) as tar:
            yield _tar_entries(tar, budget)


class _LimitedStream:
    """A stream that counts what it reads against a budget."""

    def __init__(self, stream: gzip.GzipFile, budget: _UnpackBudget) -> None:
        self._stream = stream
        self._budget = budget

    def read(self, size: int) -> bytes:
        data = self._stream.read(size)
        self._budget.count_unpacked(len(data))
        return data


class _BoundedTarInfo(tarfile.TarInfo):
    """A tar entry whose extended header is bounded: tarfile reads it into memory as a whole."""

    @property
    def size(self) -> int:
        if self.type in _EXTENDED_HEADER_TYPES and not 0 <= self._size <= MAX_EXTENDED_HEADER_BYTES:
            raise ArchiveTooLarge("The package's archive has an entry with an oversized header, so it is not kept.")
        return self._size

    @size.setter
    def size(self, size: int) -> None:
        self._size = size


def _open_tar(stream: _LimitedStream) -> tarfile.TarFile:
    return tarfile.open(fileobj=cast(IO[bytes], stream), mode="r|", tarinfo=_BoundedTarInfo)


def _zip_entries(zipped: zipfile.ZipFile, budget: _UnpackBudget) -> Iterator[tuple[str, OpenMember]]:
    for info in zipped.infolist():
        budget.count_entry()
        file_type = (info.external_attr >> 16) & 0o170000
        if info.filename[-1:] not in ("", "/") and file_type in (0, 0o100000):
            yield info.filename, partial(zipped.open, info)


def _tar_entries(tar: tarfile.TarFile, budget: _UnpackBudget) -> Iterator[tuple[str, OpenMember]]:
    for member in tar:
        budget.count_entry()
        if member.isreg():
            yield member.name.removeprefix("./").partition("/")[2], partial(_extract_member, tar, member)


def _extract_member(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    file = tar.extractfile(member)
    assert file is not None, "a regular file has content"
    return file


def _safe_path(name: str) -> str | None:
    """Return a relative path inside the package; None where the name leads out of it or is not valid."""
    parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or name.startswith("/") or ".." in parts or not name.isprintable() or ":" in parts[0]:
        return None
    return "/".join(parts)


def _write_file(body: IO[bytes], to: Path, budget: _UnpackBudget) -> None:
    with body, to.open("xb") as file:
        while data := body.read(_CHUNK_BYTES):
            budget.count_written(len(data))
            file.write(data)
