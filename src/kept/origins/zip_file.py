"""A zip file as an origin, read like a folder without unpacking it to disk.

A member's URL is the archive's followed by its path: ``file:///srv/docs.zip/guide/start.md``. Members whose names lead
out of the archive are skipped; limits apply to the bytes actually unpacked, not to the sizes that the archive claims.
"""

import asyncio
import lzma
import os
import stat
import struct
import zipfile
import zlib
from collections.abc import AsyncIterator, Iterable, Mapping

from kept.errors import SourceMissing, SourceUnavailable
from kept.model.document import Validators
from kept.model.frontier import Fetched, FrontierEntry, Gone, ListedUrl, ListingFailure, Refused, Unreachable, Visit
from kept.model.url import MAX_URL_LENGTH, file_path, file_url, quote_file_name
from kept.origins.folder import FolderOrigin

MAX_MEMBERS = 200_000
MAX_RATIO = 200  # unpacked bytes to packed bytes
RATIO_CHECKED_ABOVE = 1024 * 1024  # unpacked bytes
CHUNK_BYTES = 64 * 1024
_ZIP_ERRORS = (
    *(OSError, EOFError, ValueError, RuntimeError, NotImplementedError),
    *(zipfile.BadZipFile, zlib.error, lzma.LZMAError, struct.error),
)


def is_zip_root(root: str) -> bool:
    """Return whether a root is an archive: by its name, unless that is a folder."""
    return root.lower().endswith(".zip") and not os.path.isdir(file_path(root))


class ZipOrigin(FolderOrigin):
    """The files in an archive that a reader exists for, without hidden ones."""

    _archive: zipfile.ZipFile | None = None
    _members: Mapping[str, zipfile.ZipInfo]

    async def open(self) -> str | None:
        try:
            self._archive = await asyncio.to_thread(zipfile.ZipFile, self._root)
        except FileNotFoundError:
            raise SourceMissing(f"There is no file {self._root}.") from None
        except _ZIP_ERRORS as error:
            raise SourceUnavailable(f"{self._root} cannot be read as a zip file: {error}.") from None
        members = self._archive.infolist()
        if len(members) > MAX_MEMBERS:
            raise SourceUnavailable(f"{self._root} has more than {MAX_MEMBERS:,} files in it.")
        self._members = _safe_members(members)
        return None

    async def close(self) -> None:
        if self._archive:
            self._archive.close()

    async def list(self, *, include_excluded: bool = False) -> AsyncIterator[ListedUrl | ListingFailure]:
        for path, member in self._members.items():
            if not self._is_selected(path):
                continue
            url = self._url(path)
            if len(url) <= MAX_URL_LENGTH:
                yield ListedUrl(url=url, etag=_etag(member))

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        path = os.path.relpath(file_path(entry.url), self._root)
        member = self._members.get(path)
        return await asyncio.to_thread(self._unpack, path, member) if member else Gone(reason="no longer there")

    def _read_included(self, path: str) -> Visit | None:
        relative = os.path.relpath(path, self._root)
        member = self._members.get(relative)
        return self._unpack(relative, member) if member else None

    def _is_ignored(self, relative: str) -> bool:
        return False

    def _url(self, path: str) -> str:
        return "/".join([file_url(self._root), *map(quote_file_name, path.split("/"))])

    def _unpack(self, path: str, member: zipfile.ZipInfo) -> Visit:
        limit = self._limits.max_bytes
        if member.flag_bits & 1:
            return Refused(reason="encrypted")
        if member.file_size > limit:
            return Refused(reason=f"larger than {limit:,} bytes", by_settings=True)
        assert self._archive is not None, "the origin is open"
        body = bytearray()
        try:
            with self._archive.open(member) as file:
                while chunk := file.read(CHUNK_BYTES):
                    body += chunk
                    if len(body) > limit:
                        return Refused(reason=f"larger than {limit:,} bytes", by_settings=True)
                    if len(body) > max(RATIO_CHECKED_ABOVE, MAX_RATIO * member.compress_size):
                        return Refused(reason=f"unpacks to more than {MAX_RATIO} times its size")
        except _ZIP_ERRORS as error:
            return Unreachable(reason=f"cannot be unpacked: {error}", is_retryable=False)
        kind = self._type_of(path) or "text/plain"
        return Fetched(body=bytes(body), content_type=kind, validators=Validators(etag=_etag(member)))


def _safe_members(infos: Iterable[zipfile.ZipInfo]) -> dict[str, zipfile.ZipInfo]:
    """Return regular files by path. Of several with one name the last counts, as in every unzip program."""
    members = {}
    for info in infos:
        parts = info.filename.replace("\\", "/").split("/")
        is_link = stat.S_ISLNK(info.external_attr >> 16)
        leads_out = any(part in ("", ".", "..") or "\0" in part or part.startswith(".") for part in parts)
        if not is_link and not leads_out:
            members["/".join(parts)] = info  # a folder's name ends in a slash, and so has an empty part
    return members


def _etag(member: zipfile.ZipInfo) -> str:
    return f"{member.CRC:x}-{member.file_size:x}-{member.compress_size:x}"
