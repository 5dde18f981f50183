"""Uploads: a file, or a zip of files, that becomes a folder of the server and a source like any other.

An upload under the same name replaces the earlier one file by file: a concurrent crawl finds old files or new ones, and
never an empty folder.
"""

import asyncio
import os
import shutil
import stat
import tempfile
import zipfile
import zlib
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from kept.errors import InvalidInput, QuotaExceeded
from kept.model.root import check_label, derive_name
from kept.model.source import Source, SourceKind, SourceSettings, format_label
from kept.model.url import file_path, file_url
from kept.private_files import make_private_folder
from kept.service.access import Principal, check_quota
from kept.service.context import Services
from kept.service.source_options import SourceOptions
from kept.service.source_request import ResolvedSource
from kept.service.sources import AddedSource, add_resolved_source, remove_source
from kept.store import sources

MAX_FILES = 20_000
MAX_UNPACKED_BYTES = 1024**3  # of everything in a zip, unpacked
MAX_RATIO = 50  # unpacked to packed bytes, of a zip that is larger than SMALL_BYTES; documentation has about 5
SMALL_BYTES = 16 * 1024**2
SPARE_BYTES = 256 * 1024**2  # that every upload leaves free on the disk
MAX_NAME_BYTES = 200


async def add_upload(
    services: Services,
    principal: Principal,
    uploads_folder: Path,
    file: BinaryIO,
    filename: str,
    *,
    name: str | None,
    version: str,
    max_bytes: int = 0,
) -> AddedSource:
    """Store a file, or the contents of a zip, in the server's folder, and add that as a source.

    ``max_bytes``: of all uploads together; 0: no limit. Raises InvalidInput and QuotaExceeded; nothing is changed then.
    """
    plain = _check_name(_base_name(filename) or "upload")
    name = name or derive_name(file_url("/" + (plain.removesuffix(".zip") or "upload")))
    check_label(name, version)
    root = file_url(str(uploads_folder / format_label(name, version)))
    async with services.db.snapshot() as snapshot:
        known = await sources.by_root(snapshot, root, version)
        same_label = await sources.by_label(snapshot, name, version)
    await check_quota(services.db, principal, adds_source=known is None)
    if same_label and same_label.root != root:
        raise InvalidInput(
            f"There is already a source named '{same_label.label}', and it was not uploaded. Choose another name."
        )
    await asyncio.to_thread(store_upload, file, filename, Path(file_path(root)), max_bytes)
    resolved = ResolvedSource(
        kind=SourceKind.FOLDER,
        root=root,
        root_settings=SourceSettings(),
        options=SourceOptions(),
        authority=principal.authority,
    )
    return await add_resolved_source(services, principal, resolved, name=name, version=version)


async def remove_source_and_upload(services: Services, label: str, uploads_folder: Path) -> Source:
    """Remove a source, and the files that were uploaded for it to the server's folder."""
    source = await remove_source(services.db, label, services.secrets)
    await asyncio.to_thread(delete_upload, uploads_folder, source)
    return source


def store_upload(file: BinaryIO, filename: str, home: Path, max_bytes: int = 0) -> None:
    """Replace the contents of a folder by a file, or by the contents of a zip. Blocks while it copies.

    Raises InvalidInput, and QuotaExceeded where all uploads would take more than ``max_bytes``.
    """
    plain = _base_name(filename)
    make_private_folder(home.parent)
    space = shutil.disk_usage(home.parent).free - SPARE_BYTES
    if max_bytes:
        space = min(space, max_bytes - _size(home.parent) + _size(home))
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".new-") as fresh:
        if zipfile.is_zipfile(file) and plain.lower().endswith(".zip"):
            _unpack(file, Path(fresh), space)
        else:
            _check_space(file.seek(0, os.SEEK_END), space)
            file.seek(0)
            with open(Path(fresh) / _check_name(plain or "upload"), "wb") as copy:
                shutil.copyfileobj(file, copy)
        home.mkdir(mode=0o700, exist_ok=True)
        _replace_contents(Path(fresh), home)


def _base_name(filename: str) -> str:
    return PurePosixPath(filename.replace("\\", "/")).name


def delete_upload(folder: Path, source: Source) -> None:
    """Delete the files that were uploaded for a source; a source that was not uploaded loses none."""
    home = folder / source.label
    if source.kind is SourceKind.FOLDER and file_path(source.root) == str(home):
        shutil.rmtree(home, ignore_errors=True)


def _size(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*")) if folder.is_dir() else 0


def _check_space(size: int, space: int) -> None:
    if size > space:
        raise QuotaExceeded(
            "There is no space for this upload. Remove sources that were uploaded, or have the operator of the server "
            "raise serve.uploads_mb."
        )


def _unpack(file: BinaryIO, into: Path, space: int) -> None:
    """Unpack a zip. Raises InvalidInput for one that is damaged, too large, or names paths outside of itself."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            unpacked = sum(one.file_size for one in members)
            if len(members) > MAX_FILES or unpacked > MAX_UNPACKED_BYTES:
                raise InvalidInput(
                    f"The zip holds too much: {MAX_FILES} files and {MAX_UNPACKED_BYTES // 1024**2} MB are allowed."
                )
            if unpacked > max(SMALL_BYTES, MAX_RATIO * sum(one.compress_size for one in members)):
                raise InvalidInput(f"The zip unpacks to more than {MAX_RATIO} times its size: no documentation does.")
            _check_space(unpacked, space)
            for member in members:
                if stat.S_ISLNK(member.external_attr >> 16):
                    continue
                at = into.joinpath(*(_check_name(part) for part in member.filename.split("/") if part))
                at.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, open(at, "xb") as copy:
                    _copy_limited(packed, copy, member.file_size)
    except FileExistsError:
        raise InvalidInput("The zip cannot be unpacked: two of its files have the same name.") from None
    except OSError as error:  # its text would show a path of this machine
        raise InvalidInput(f"The zip cannot be unpacked: {error.strerror or 'it is damaged'}.") from None
    except (zipfile.BadZipFile, zlib.error, NotImplementedError, RuntimeError, EOFError) as error:
        raise InvalidInput(f"The zip cannot be unpacked: {error}.") from None


def _copy_limited(packed: IO[bytes], copy: BinaryIO, size: int) -> None:
    """Copy at most the announced size: a zip bomb announces less than it holds."""
    left = size
    while chunk := packed.read(1024 * 1024):
        left -= len(chunk)
        if left < 0:
            raise InvalidInput("The zip cannot be unpacked: a file is larger than it says.")
        copy.write(chunk)


def _check_name(part: str) -> str:
    """Return the name of a file or folder. Raises InvalidInput for one that could lead elsewhere."""
    if part in (".", "..") or not part.isprintable() or set(part) & set("\\:") or len(part.encode()) > MAX_NAME_BYTES:
        raise InvalidInput(f"A file cannot be called {part[:100]!r} here.")
    return part


def _replace_contents(fresh: Path, home: Path) -> None:
    """Move the new files over the old ones, then delete the old ones that are left."""
    wanted = {path.relative_to(fresh) for path in fresh.rglob("*")}
    for path in sorted(wanted):
        source, target = fresh / path, home / path
        if target.exists() and target.is_dir() != source.is_dir():
            shutil.rmtree(target) if target.is_dir() else target.unlink()
        if source.is_dir():
            target.mkdir(exist_ok=True)
        else:
            os.replace(source, target)
    for path in sorted(home.rglob("*"), reverse=True):
        if path.relative_to(home) not in wanted:
            path.rmdir() if path.is_dir() else path.unlink()
