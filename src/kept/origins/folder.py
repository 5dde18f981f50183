"""A folder on this machine, or a single file, as an origin. It lists everything, so an unlisted file is gone.

A file's times, size and inode form its ETag; where that differs, the content decides. What stays equal in it when a
file is renamed tells where a file that is missing is now. Only regular files inside the root are read, without those
that ``.gitignore`` and ``.keptignore`` name.
"""

import asyncio
import errno
import hashlib
import os
import re
import stat
import time
from collections import defaultdict
from collections.abc import AsyncIterator, Callable, Iterable, Iterator, Mapping, Sequence
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
RECENT_MARK = "-recent"  # ends the ETag of a file that was written just before: no listed ETag equals it
_ETAG = re.compile(r"(-?[0-9a-f]+)-(-?[0-9a-f]+)-([0-9a-f]+)-([0-9a-f]+)")  # as _etag() writes it
PendingFolders: TypeAlias = list[tuple[str, IgnoreRules]]  # paths below the root with their slash, still to be listed
ROOT_MARKER = ".kept-root"
"""A file whose content identifies a root: a copy of the folder is the same root, another folder is not."""


class FolderOrigin(Origin):
    """The files below a root that a reader exists for, without hidden files and folders."""

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
        if not url.startswith("file:"):
            return False
        path = file_path(url)
        return path == self._root or self._is_selected(os.path.relpath(path, self._root))

    def why_excluded(self, url: str) -> str | None:
        if not url.startswith("file:"):
            return "not a file of this machine"
        path = file_path(url)
        if not f"{path}/".startswith(f"{self._root.rstrip('/')}/"):
            return "outside the source's folder"
        relative = os.path.relpath(path, self._root)
        if any(part.startswith(".") for part in relative.split(os.sep) if part != "."):
            return "hidden, or in a hidden folder"
        if self._type_of(path) is None:
            return "not a kind of file that can be read"
        if not self.admits(url):
            return "left out by the source's patterns"
        try:
            return "left out by an ignore file" if self._is_ignored(relative) else None
        except gitignore.TooManyPatterns as error:
            return str(error)

    async def list(self, *, include_excluded: bool = False) -> AsyncIterator[ListedUrl | ListingFailure]:
        files = self._list_files()
        while chunk := await asyncio.to_thread(lambda: list(islice(files, LISTING_CHUNK))):
            for listed in chunk:
                yield listed

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        return await asyncio.to_thread(self._read_file, file_path(entry.url))

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        """Return the new URLs of files that only have another path. Of hard links no one is known to be the other."""
        old = _by_identity((url, validators.own_etag) for url, validators in missing.items())
        new = await asyncio.to_thread(lambda: _by_identity((url, self._etag_now(url)) for url in new_urls))
        pairs = ((urls, new.get(identity, [])) for identity, urls in old.items())
        return {before[0]: after[0] for before, after in pairs if len(before) == len(after) == 1}

    def _etag_now(self, url: str) -> str:
        try:
            return _etag(os.stat(file_path(url)))
        except OSError:  # it is gone again
            return ""

    async def read_file(self, url: str) -> bytes | None:
        if not url.startswith("file:"):
            return None
        try:
            path = os.path.normpath(file_path(url))
        except ValueError:  # no path of a file
            return None
        visit = await asyncio.to_thread(self._read_included, path)
        return visit.body if isinstance(visit, Fetched) else None

    def _read_included(self, path: str) -> Visit | None:
        relative = os.path.relpath(path, self._root)
        parts = relative.split(os.sep)
        try:
            if any(part.startswith(".") for part in parts) or self._is_ignored(relative) or not os.path.isfile(path):
                return None
        except gitignore.TooManyPatterns:
            return None
        return self._read_file(path)

    # Listing

    def _list_files(self) -> Iterator[ListedUrl | ListingFailure]:
        if not os.path.isdir(self._root):
            try:
                yield ListedUrl(file_url(self._root), _etag(os.stat(self._root)))
            except OSError as error:
                yield ListingFailure(url=file_url(self._root), reason=_reason(error))
            return
        folders: PendingFolders = [("", IgnoreRules())]
        while folders:
            relative, rules = folders.pop()
            yield from self._list_folder(relative, rules, folders)

    def _list_folder(
        self, relative: str, rules: IgnoreRules, folders: PendingFolders
    ) -> Iterator[ListedUrl | ListingFailure]:
        folder = os.path.join(self._root, relative)
        base_url = file_url(folder.rstrip("/") or "/").rstrip("/") + "/"
        try:
            with os.scandir(folder) as scan:
                entries = sorted(scan, key=attrgetter("name"))
        except OSError as error:
            yield ListingFailure(url=base_url, reason=_reason(error))
            return
        ignore_files = {entry.name for entry in entries if entry.name in gitignore.IGNORE_FILES}
        try:
            rules = rules.with_folder(relative, gitignore.read_rules(folder, ignore_files))
        except gitignore.TooManyPatterns as error:
            yield ListingFailure(url=base_url, reason=str(error))
            return
        for entry in entries:
            name = entry.name
            if name[0] == ".":
                continue
            try:
                if entry.is_dir(follow_symlinks=False):
                    if not (rules.rules_by_folder and rules.is_ignored(relative + name, is_folder=True)):
                        folders.append((f"{relative}{name}/", rules))
                elif self._is_selected(relative + name) and not (
                    rules.rules_by_folder and rules.is_ignored(relative + name, is_folder=False)
                ):
                    status = self._regular_file_status(entry)
                    url = base_url + quote_file_name(name)
                    if status and len(url) <= MAX_URL_LENGTH:
                        yield ListedUrl(url, _etag(status))
            except OSError as error:
                if error.errno != errno.ENOENT:
                    yield ListingFailure(url=base_url + quote_file_name(name), reason=_reason(error))

    def _regular_file_status(self, entry: os.DirEntry[str]) -> os.stat_result | None:
        """Return the status of a regular file, or of a link to one inside the root; None for anything else."""
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

    def _is_ignored(self, relative: str) -> bool:
        rules, path = IgnoreRules(), ""
        parts = relative.split(os.sep)
        for number, part in enumerate(parts):
            folder = os.path.join(self._root, path)
            ignore_files = {name for name in gitignore.IGNORE_FILES if os.path.isfile(os.path.join(folder, name))}
            rules = rules.with_folder(path, gitignore.read_rules(folder, ignore_files))
            if rules.is_ignored(path + part, is_folder=number < len(parts) - 1):
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
        """Read a whole file. A file that is written to meanwhile is Unreachable, never a mixture of two states."""
        try:
            if not stat.S_ISREG(os.stat(path).st_mode):
                return Refused(reason="not a regular file")
            # Without O_NONBLOCK, opening a named pipe that replaced the file would block for ever.
            with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb") as file:
                before = os.fstat(file.fileno())
                if not stat.S_ISREG(before.st_mode):
                    return Refused(reason="not a regular file")
                if not self._is_inside(path):  # replaced by a link, or a folder above it was
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
    """Formatted with %, once per file of a large folder: an f-string takes three times as long."""
    return "%x-%x-%x-%x" % (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)  # noqa: UP031


def _by_identity(etags: Iterable[tuple[str, str]]) -> dict[tuple[str, ...], list[str]]:
    """Group URLs by what stays equal of a file's ETag when the file is renamed: all but the time of the status change.

    The inode alone is no evidence: file systems soon give it to another file.
    """
    urls: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
    for url, etag in etags:
        if match := _ETAG.match(etag):
            urls[match.group(1, 3, 4)].append(url)
    return urls


def _validators(status: os.stat_result) -> Validators:
    """Mark the ETag of a recently written file: another write within the clock's resolution would not show."""
    is_recent = status.st_mtime > time.time() - RECENT_MTIME_SECONDS
    return Validators(etag=_etag(status) + (RECENT_MARK if is_recent else ""))


def _reason(error: OSError) -> str:
    return f"cannot be read: {error.strerror}"
