"""A folder on this machine, or a single file: it can list everything it has, so absence is evidence.

The quick check is a file's times, size and inode, spelled as an ETag; its bytes decide when they differ. Nothing
outside the root is read, nothing but regular files is opened, what ``.gitignore`` and ``.keptignore`` name is left out.
"""

import asyncio
import errno
import hashlib
import os
import re
import stat
import time
from collections.abc import AsyncIterator, Callable, Iterator
from fnmatch import translate
from itertools import islice
from operator import attrgetter
from typing import TypeAlias

from kept.errors import SourceMissing, SourceUnavailable
from kept.model.document import Validators
from kept.model.frontier import Fetched, FrontierEntry, Gone, ListedUrl, ListingFailure, Refused, Unreachable, Visit
from kept.model.source import Limits, Scope
from kept.model.url import MAX_URL_LENGTH, file_path, file_url, quote_file_name
from kept.origins import gitignore
from kept.origins.gitignore import IgnoreRules
from kept.origins.origin import Origin

LISTING_CHUNK = 2000
RECENT_MTIME_SECONDS = 2.0
PendingFolders: TypeAlias = list[
    tuple[str, IgnoreRules]
]  # that are still to be walked, below the root, each with its slash
ROOT_MARKER = ".kept-root"
"""A file by which a folder is known wherever it lies: a copy of it is the same folder, another one is not."""


class FolderOrigin(Origin):
    """The files below a root that a reader exists for. Hidden files and folders are left out."""

    lists_everything = True
    concurrency = 16

    def __init__(self, root: str, *, scope: Scope, limits: Limits, type_of: Callable[[str], str | None]) -> None:
        self._root = file_path(root)
        self._limits = limits
        self._type_of = type_of
        self._included = [re.compile(translate(glob)) for glob in scope.include]
        self._excluded = [re.compile(translate(glob)) for glob in scope.exclude]
        self._has_patterns = bool(self._included or self._excluded)

    async def open(self) -> str | None:
        try:
            status = await asyncio.to_thread(os.stat, self._root)
            if not stat.S_ISDIR(status.st_mode):
                return None
            with await asyncio.to_thread(os.scandir, self._root):
                pass
            return await asyncio.to_thread(self._root_identity, status)
        except (FileNotFoundError, NotADirectoryError):
            raise SourceMissing(f"There is no file or folder {self._root}.") from None
        except OSError as error:
            raise SourceUnavailable(f"{self._root} cannot be read: {error.strerror}.") from None

    async def close(self) -> None:
        pass

    def admits(self, url: str) -> bool:
        """Whether the source's own settings have it in."""
        path = file_path(url)
        return path == self._root or self._is_selected(os.path.relpath(path, self._root))

    def why_excluded(self, url: str) -> str | None:
        """Why a file is none of this source; None: it would be."""
        if not url.startswith("file:"):
            return "not a file of this machine"
        path = file_path(url)
        if not f"{path}/".startswith(f"{self._root.rstrip('/')}/"):
            return "outside the source's folder"
        below = os.path.relpath(path, self._root)
        if any(part.startswith(".") for part in below.split(os.sep) if part != "."):
            return "hidden, or in a hidden folder"
        if self._type_of(path) is None:
            return "not a kind of file that can be read"
        if not self.admits(url):
            return "left out by the source's patterns"
        return "left out by an ignore file" if self._is_ignored(below) else None

    async def list(self, *, include_excluded: bool = False) -> AsyncIterator[ListedUrl | ListingFailure]:
        walk = self._walk()
        while chunk := await asyncio.to_thread(lambda: list(islice(walk, LISTING_CHUNK))):
            for one in chunk:
                yield one

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        return await asyncio.to_thread(self._read_file, file_path(entry.url))

    # Walking

    def _walk(self) -> Iterator[ListedUrl | ListingFailure]:
        if not os.path.isdir(self._root):
            try:
                yield ListedUrl(file_url(self._root), _etag(os.stat(self._root)))
            except OSError as error:
                yield ListingFailure(url=file_url(self._root), reason=_reason(error))
            return
        folders: PendingFolders = [("", IgnoreRules())]
        while folders:
            below, ignored = folders.pop()
            yield from self._walk_folder(below, ignored, folders)

    def _walk_folder(
        self, below: str, ignored: IgnoreRules, folders: PendingFolders
    ) -> Iterator[ListedUrl | ListingFailure]:
        folder = os.path.join(self._root, below)
        here = file_url(folder.rstrip("/") or "/").rstrip("/") + "/"
        try:
            with os.scandir(folder) as found:
                entries = sorted(found, key=attrgetter("name"))
        except OSError as error:
            yield ListingFailure(url=here, reason=_reason(error))
            return
        said = gitignore.read_rules(folder, {entry.name for entry in entries if entry.name in gitignore.IGNORE_FILES})
        ignored = ignored.with_folder(below, said)
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not (ignored.rules_by_folder and ignored.is_ignored(below + name, is_folder=True)):
                        folders.append((f"{below}{name}/", ignored))
                elif self._is_selected(below + name) and not (
                    ignored.rules_by_folder and ignored.is_ignored(below + name, is_folder=False)
                ):
                    status = self._regular_file_status(entry)
                    url = here + quote_file_name(name)
                    if status and len(url) <= MAX_URL_LENGTH:
                        yield ListedUrl(url, _etag(status))
            except OSError as error:
                if error.errno != errno.ENOENT:
                    yield ListingFailure(url=here + quote_file_name(name), reason=_reason(error))

    def _regular_file_status(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Of a regular file, or of a link to one inside the root; None: it is something else."""
        if entry.is_symlink() and not self._is_inside(entry.path):
            return None
        status = entry.stat()
        return status if stat.S_ISREG(status.st_mode) else None

    def _is_selected(self, path: str) -> bool:
        if self._type_of(path) is None:
            return False
        if not self._has_patterns:
            return True
        path = path.replace(os.sep, "/")
        if self._included and not any(glob.match(path) for glob in self._included):
            return False
        return not any(glob.match(path) for glob in self._excluded)

    def _is_ignored(self, below: str) -> bool:
        ignored, path = IgnoreRules(), ""
        parts = below.split(os.sep)
        for number, part in enumerate(parts):
            folder = os.path.join(self._root, path)
            there = {name for name in gitignore.IGNORE_FILES if os.path.isfile(os.path.join(folder, name))}
            ignored = ignored.with_folder(path, gitignore.read_rules(folder, there))
            if ignored.is_ignored(path + part, is_folder=number < len(parts) - 1):
                return True
            path += f"{part}/"
        return False

    def _is_inside(self, path: str) -> bool:
        root = os.path.realpath(self._root)
        return os.path.commonpath([root, os.path.realpath(path)]) == root

    def _root_identity(self, status: os.stat_result) -> str:
        try:
            with open(os.path.join(self._root, ROOT_MARKER), "rb", opener=gitignore.open_regular_file) as marker:
                return f"marker {hashlib.sha256(marker.read(4096)).hexdigest()[:16]}"
        except OSError:
            return f"folder {status.st_dev:x}-{status.st_ino:x}"

    # Reading

    def _read_file(self, path: str) -> Visit:
        """The whole file, or why not. Never a mixture of two states of it."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return Refused(reason="not a regular file")
            # Without O_NONBLOCK a named pipe that took the file's place would keep us waiting for ever.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                before = os.fstat(file.fileno())
                if not stat.S_ISREG(before.st_mode):
                    return Refused(reason="not a regular file")
                if not self._is_inside(path):  # a link took its place, or that of a folder above it
                    return Refused(reason="leads out of the source's folder")
                if before.st_size > self._limits.max_bytes:
                    return Refused(reason=f"larger than {self._limits.max_bytes:,} bytes", by_settings=True)
                body = file.read(self._limits.max_bytes + 1)
                after = os.fstat(file.fileno())
                if not os.path.samestat(after, os.stat(path)):
                    return Unreachable(reason="another file took its place while it was read")
        except FileNotFoundError:
            return Gone(reason="no longer there")
        except OSError as error:
            return Unreachable(reason=_reason(error), is_retryable=False)
        if _etag(before) != _etag(after) or len(body) != after.st_size:
            return Unreachable(reason="it was written to while it was read")
        return Fetched(body=body, content_type=self._type_of(path) or "text/plain", validators=_validators(after))


def _etag(status: os.stat_result) -> str:
    """Spelled with % because a large folder has many, and an f-string takes three times as long."""
    return "%x-%x-%x-%x" % (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)  # noqa: UP031


def _validators(status: os.stat_result) -> Validators:
    """Of a file that was just read. Just written, it may be written again without a trace: its time is too coarse."""
    is_fresh = status.st_mtime > time.time() - RECENT_MTIME_SECONDS
    return Validators() if is_fresh else Validators(etag=_etag(status))


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"
