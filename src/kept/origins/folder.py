"""A folder on this machine, or a single file: it can list everything it has, so absence is evidence.

The quick check is a file's times, size and inode, spelled as an ETag; its bytes decide when they differ.
"""

import asyncio
import errno
import os
import re
import stat
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import translate
from itertools import islice

from kept.errors import SourceMissing, SourceUnavailable
from kept.model.document import Validators
from kept.model.frontier import Entry, Fetched, Gone, Listed, Refused, Unlisted, Unreachable, Visit
from kept.model.source import Limits, Scope
from kept.model.url import LONGEST, file_path, file_url
from kept.origins.origin import Budget

CHUNK = 1000


class FolderOrigin:
    """The files below a root that a reader exists for. Hidden files and folders are left out."""

    lists_everything = True
    concurrency = 16

    def __init__(self, root: str, *, scope: Scope, limits: Limits, type_of: Callable[[str], str | None]) -> None:
        self._root = file_path(root)
        self._limits = limits
        self._type_of = type_of
        self._included = [re.compile(translate(glob)) for glob in scope.include]
        self._excluded = [re.compile(translate(glob)) for glob in scope.exclude]

    async def share(self, budget: Budget) -> None:
        pass  # no host is asked

    async def open(self) -> None:
        try:
            if stat.S_ISDIR((await asyncio.to_thread(os.stat, self._root)).st_mode):
                with await asyncio.to_thread(os.scandir, self._root):
                    pass
        except (FileNotFoundError, NotADirectoryError):
            raise SourceMissing(f"There is no file or folder {self._root}.") from None
        except OSError as error:
            raise SourceUnavailable(f"{self._root} cannot be read: {error.strerror}.") from None

    async def close(self) -> None:
        pass

    def admits(self, url: str) -> bool:
        """Whether the source's own settings have it in."""
        path = file_path(url)
        return path == self._root or self._wants(os.path.relpath(path, self._root))

    def why_not(self, url: str) -> str | None:
        """Why a file is none of this source; None: it would be."""
        if not url.startswith("file:"):
            return "not a file of this machine"
        path = file_path(url)
        if not f"{path}/".startswith(f"{self._root.rstrip('/')}/"):
            return "outside the source's folder"
        if any(part.startswith(".") for part in os.path.relpath(path, self._root).split(os.sep) if part != "."):
            return "hidden, or in a hidden folder"
        if self._type_of(path) is None:
            return "not a kind of file that can be read"
        return None if self.admits(url) else "left out by the source's patterns"

    async def list(self) -> AsyncIterator[Listed | Unlisted]:
        walk = self._walk()
        while chunk := await asyncio.to_thread(lambda: list(islice(walk, CHUNK))):
            for one in chunk:
                yield one

    async def renamed(self, absent: Mapping[str, Validators], arrived: Sequence[str]) -> Mapping[str, str]:
        return {}  # a folder does not remember names

    async def visit(self, entry: Entry, *, conditional: bool) -> Visit:
        return await asyncio.to_thread(self._read, file_path(entry.url))

    async def render(self, entry: Entry, fetched: Fetched) -> Visit | None:
        return None

    def _walk(self) -> Iterator[Listed | Unlisted]:
        if not os.path.isdir(self._root):
            try:
                yield _listed(self._root, os.stat(self._root))
            except OSError as error:
                yield Unlisted(url=file_url(self._root), reason=_reason(error))
            return
        folders = [self._root]
        while folders:
            folder = folders.pop()
            try:
                with os.scandir(folder) as found:
                    entries = sorted(found, key=lambda entry: entry.name)
            except OSError as error:
                yield Unlisted(url=file_url(folder) + "/", reason=_reason(error))
                continue
            for entry in entries:
                if entry.name.startswith("."):
                    continue
                try:
                    if entry.is_dir(follow_symlinks=False):
                        folders.append(entry.path)
                    elif self._keeps(entry):
                        yield _listed(entry.path, entry.stat())
                except OSError as error:
                    if error.errno != errno.ENOENT:
                        yield Unlisted(url=file_url(entry.path), reason=_reason(error))

    def _keeps(self, entry: os.DirEntry[str]) -> bool:
        if not entry.is_file() or not self._wants(os.path.relpath(entry.path, self._root)):
            return False
        if entry.is_symlink() and not self._is_inside(entry.path):
            return False
        return len(file_url(entry.path)) <= LONGEST

    def _wants(self, path: str) -> bool:
        path = path.replace(os.sep, "/")
        if self._type_of(path) is None or (self._included and not any(glob.match(path) for glob in self._included)):
            return False
        return not any(glob.match(path) for glob in self._excluded)

    def _is_inside(self, path: str) -> bool:
        root = os.path.realpath(self._root)
        return os.path.commonpath([root, os.path.realpath(path)]) == root

    def _read(self, path: str) -> Visit:
        """The whole file, or why not. Never a mixture of two states of it."""
        try:
            # Without O_NONBLOCK a named pipe that took the file's place would keep us waiting for ever.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                before = os.fstat(file.fileno())
                if not stat.S_ISREG(before.st_mode):
                    return Refused(reason="not a regular file")
                if before.st_size > self._limits.max_bytes:
                    return Refused(reason=f"larger than {self._limits.max_bytes:,} bytes", by_settings=True)
                body = file.read(self._limits.max_bytes + 1)
                after = os.fstat(file.fileno())
        except FileNotFoundError:
            return Gone(reason="no longer there")
        except OSError as error:
            return Unreachable(reason=_reason(error), retry=False)
        if _etag(before) != _etag(after) or len(body) != after.st_size:
            return Unreachable(reason="it was written to while it was read")
        return Fetched(
            body=body, content_type=self._type_of(path) or "text/plain", validators=Validators(etag=_etag(after))
        )


def _listed(path: str, status: os.stat_result) -> Listed:
    modified = datetime.fromtimestamp(status.st_mtime, UTC)
    return Listed(url=file_url(path), validators=Validators(etag=_etag(status)), modified_at=modified)


def _etag(status: os.stat_result) -> str:
    return f"{status.st_mtime_ns:x}-{status.st_ctime_ns:x}-{status.st_size:x}-{status.st_ino:x}"


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"
