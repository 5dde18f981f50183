"""What a repository and a package have in common as origins: a tree of files that is known as a whole.

Each file has a validator that is as good as its bytes, so what has not changed is never read.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from urllib.parse import quote

from kept.model.document import Validators
from kept.model.frontier import Entry, Fetched, Gone, Listed, NotModified, Refused, Unlisted, Unreachable, Visit
from kept.model.nouns import dataclass
from kept.model.url import canonical
from kept.origins.origin import Budget


@dataclass(frozen=True, slots=True, kw_only=True)
class File:
    """A file of a tree: where its bytes are to be had, what they are known by, and how to read them."""

    key: str
    etag: str
    content_type: str


class TooLarge(Exception):
    """It has more bytes than a document may have."""


class NotHad(Exception):
    """Its bytes cannot be had now: the sentence says why."""


_POINTER = b"version https://git-lfs.github.com/spec/v1\n"


def url_below(beginning: str, path: str) -> str | None:
    """The URL of a file, by its path below what all of its tree begin with; None: no URL can name it."""
    return canonical(beginning + quote(path.encode(errors="surrogateescape"), safe="/!$&'()*+,;=:@~"))


class TreeOrigin:
    """An origin whose files are known once it is open."""

    lists_everything = True
    concurrency = 16

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._files: dict[str, File] = {}  # by URL
        self._unlisted: list[Unlisted] = []

    async def share(self, budget: Budget) -> None:
        pass  # files are fetched together, not one by one

    async def open(self) -> None:
        raise NotImplementedError

    async def close(self) -> None:
        raise NotImplementedError

    def admits(self, url: str) -> bool:
        """Whether the source's own settings have it in."""
        return self.why_not(url) is None

    def why_not(self, url: str) -> str | None:
        """Why a URL is none of this source, by its settings; None: it could be."""
        raise NotImplementedError

    async def list(self) -> AsyncIterator[Listed | Unlisted]:
        for unlisted in self._unlisted:
            yield unlisted
        for url, file in self._files.items():
            yield Listed(url=url, etag=file.etag)

    async def renamed(self, absent: Mapping[str, Validators], arrived: Sequence[str]) -> Mapping[str, str]:
        return {}

    async def visit(self, entry: Entry, *, conditional: bool) -> Visit:
        file = self._files.get(entry.url)
        if file is None:
            return Gone(reason="no longer there")
        validators = Validators(etag=file.etag)
        if conditional and entry.held and entry.held.validators == validators:
            return NotModified()
        try:
            body = await self._read(file)
        except TooLarge:
            return Refused(reason=f"larger than {self._max_bytes:,} bytes", by_settings=True)
        except NotHad as error:
            return Unreachable(reason=str(error))
        if body.startswith(_POINTER) and len(body) < 1024:
            return Refused(reason="a Git LFS pointer: the file itself is kept elsewhere")
        return Fetched(body=body, content_type=file.content_type, validators=validators, wishes=None)

    async def render(self, entry: Entry, fetched: Fetched) -> Visit | None:
        return None

    async def _read(self, file: File) -> bytes:
        """Its bytes. Raises TooLarge or NotHad."""
        raise NotImplementedError
