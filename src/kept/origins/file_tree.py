"""Base class of repositories and packages: a tree of files that is known as a whole once it is open.

Each file has a validator derived from its content, so unchanged files are never read.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from urllib.parse import quote

from kept.model.document import Validators
from kept.model.frontier import (
    Fetched,
    FrontierEntry,
    Gone,
    ListedUrl,
    ListingFailure,
    NotModified,
    Refused,
    Unreachable,
    Visit,
)
from kept.model.url import canonicalize_url
from kept.origins.origin import Origin


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeFile:
    """A file of a tree: the key to read it by, its validator, and its content type."""

    key: str
    etag: str
    content_type: str


class FileTooLarge(Exception):
    """The file is larger than a document may be."""


class FileUnavailable(Exception):
    """The file cannot be read now; the message says why."""


_LFS_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def tree_file_url(base_url: str, path: str) -> str | None:
    """Return the URL of a file by its path below the tree's base URL; None when no URL can name it."""
    return canonicalize_url(base_url + quote(path.encode(errors="surrogateescape"), safe="/!$&'()*+,;=:@~"))


class TreeOrigin(Origin):
    """An origin whose files are all known once it is open."""

    lists_everything = True
    concurrency = 16

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._files: dict[str, TreeFile] = {}  # by URL
        self._listing_failures: list[ListingFailure] = []

    def admits(self, url: str) -> bool:
        return self.why_excluded(url) is None

    async def list(self, *, include_excluded: bool = False) -> AsyncIterator[ListedUrl | ListingFailure]:
        for failure in self._listing_failures:
            yield failure
        for url, file in self._files.items():
            yield ListedUrl(url=url, etag=file.etag)

    async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
        file = self._files.get(entry.url)
        if file is None:
            return Gone(reason="no longer there")
        validators = Validators(etag=file.etag)
        if conditional and entry.base_version and entry.base_version.validators == validators:
            return NotModified()
        try:
            body = await self._read_file(file)
        except FileTooLarge:
            return Refused(reason=f"larger than {self._max_bytes:,} bytes", by_settings=True)
        except FileUnavailable as error:
            return Unreachable(reason=str(error))
        if body.startswith(_LFS_POINTER) and len(body) < 1024:
            return Refused(reason="a Git LFS pointer: the file itself is kept elsewhere")
        return Fetched(body=body, content_type=file.content_type, validators=validators, robots_directives=None)

    async def read_file(self, url: str) -> bytes | None:
        file = self._files.get(url)
        try:
            return await self._read_file(file) if file else None
        except (FileTooLarge, FileUnavailable):
            return None

    async def _read_file(self, file: TreeFile) -> bytes:
        """Return the bytes of a file. Raises FileTooLarge or FileUnavailable."""
        raise NotImplementedError
