"""Uploads: a file, or a zip of files, that becomes a folder of the server and is kept like any other.

What is uploaded under the same name again takes the place of what was there, file by file: a crawl that looks meanwhile
finds old files or new ones, and never an empty folder.
"""

import os
import shutil
import stat
import tempfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO

from kept.errors import InvalidInput
from kept.model.root import check_label, derive_name
from kept.model.source import Source, SourceKind, SourceSettings, format_label
from kept.model.url import file_path, file_url
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest

MAX_FILES = 20_000
MAX_UNPACKED_BYTES = 1024**3  # of everything in a zip, unpacked
MAX_NAME_BYTES = 200


def build_request(folder: Path, filename: str, *, name: str | None, version: str) -> tuple[str, SourceRequest]:
    """What is to be uploaded as a wish to keep it, and its name."""
    name = name or derive_name(file_url("/" + (_base_name(filename).removesuffix(".zip") or "upload")))
    check_label(name, version)
    root = file_url(str(folder / format_label(name, version)))
    return name, SourceRequest(
        kind=SourceKind.FOLDER, root=root, root_settings=SourceSettings(), options=SourceOptions()
    )


def store_upload(file: BinaryIO, filename: str, request: SourceRequest) -> None:
    """The file, or what is in a zip, is now where the wish has its root. Blocks while it copies."""
    plain, home = _base_name(filename), Path(file_path(request.root))
    home.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=home.parent, prefix=".new-") as fresh:
        if zipfile.is_zipfile(file) and plain.lower().endswith(".zip"):
            _unpack(file, Path(fresh))
        else:
            file.seek(0)
            with open(Path(fresh) / _check_name(plain or "upload"), "wb") as copy:
                shutil.copyfileobj(file, copy)
        home.mkdir(mode=0o700, exist_ok=True)
        _replace_contents(Path(fresh), home)


def _base_name(filename: str) -> str:
    return PurePosixPath(filename.replace("\\", "/")).name


def delete_upload(folder: Path, source: Source) -> None:
    """Deletes what was uploaded for a source; nothing of a source that was not."""
    home = folder / source.label
    if source.kind is SourceKind.FOLDER and file_path(source.root) == str(home):
        shutil.rmtree(home, ignore_errors=True)


def _unpack(file: BinaryIO, into: Path) -> None:
    """WrongCall for a zip that is broken, too large, or that names places outside of itself."""
    try:
        with zipfile.ZipFile(file) as archive:
            members = [one for one in archive.infolist() if not one.is_dir()]
            if len(members) > MAX_FILES or sum(one.file_size for one in members) > MAX_UNPACKED_BYTES:
                raise InvalidInput(
                    f"The zip holds too much: {MAX_FILES} files and {MAX_UNPACKED_BYTES // 1024**2} MB are allowed."
                )
            for member in members:
                if stat.S_ISLNK(member.external_attr >> 16):
                    continue
                at = into.joinpath(*(_check_name(part) for part in member.filename.split("/") if part))
                at.parent.mkdir(parents=True, exist_ok=True)
                with archive.open(member) as packed, open(at, "xb") as copy:
                    _copy_limited(packed, copy, member.file_size)
    except (zipfile.BadZipFile, NotImplementedError, RuntimeError, EOFError, OSError) as error:
        raise InvalidInput(f"The zip cannot be unpacked: {error}.") from None


def _copy_limited(packed: IO[bytes], copy: BinaryIO, size: int) -> None:
    """No more than the zip said; a bomb says less than it holds."""
    left = size
    while chunk := packed.read(1024 * 1024):
        left -= len(chunk)
        if left < 0:
            raise InvalidInput("The zip cannot be unpacked: a file is larger than it says.")
        copy.write(chunk)


def _check_name(part: str) -> str:
    """A name of a file or folder that lies where it seems to."""
    if part in (".", "..") or not part.isprintable() or set(part) & set("\\:") or len(part.encode()) > MAX_NAME_BYTES:
        raise InvalidInput(f"A file cannot be called {part[:100]!r} here.")
    return part


def _replace_contents(fresh: Path, home: Path) -> None:
    """What is new takes the place of what was there, then what is left over goes."""
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
