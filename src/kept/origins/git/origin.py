"""A git repository, and its wiki: it lists everything it has, and the ids of its files are perfect validators.

    1. ask       one question: where the branch or tag is now
    2. fetch     that commit, without files, if the copy does not have it yet
    3. list      its tree, as the URLs that people open
    4. visit     the first file that is missing brings all that are, in a few requests

What is asked over http and https passes the gate (``web.proxy``); ssh is the user's own.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote_to_bytes

from kept.errors import SourceMissing, SourceUnavailable
from kept.log import Log
from kept.model.document import Validators
from kept.model.frontier import Unlisted
from kept.model.repository import Ref, RefKind, Repository
from kept.model.source import SourceSettings
from kept.origins.git.copy import Blob, Copy
from kept.origins.git.outcomes import Trouble, error_of, trouble_of
from kept.origins.git.program import Git
from kept.origins.git.reading import BlobReader
from kept.origins.git.way import Way
from kept.origins.programs import ProgramFailed
from kept.origins.selection import Selection
from kept.origins.tree import File, NotHad, TreeOrigin, url_below

log = Log(__name__)

FETCHED_AT_ONCE = 2000
WIKI = "wiki"  # the folder that patterns find its pages in


@dataclass(slots=True, kw_only=True)
class _Part:
    """A repository of the source: the one that was named, or its wiki."""

    url: str  # what the URLs of its documents begin with
    commit: str
    copy: Copy
    blobs: BlobReader
    missing: dict[str, None] | None = None  # blobs that are wanted and not there, in order; None: nobody has looked
    turn: asyncio.Lock


class GitOrigin(TreeOrigin):
    def __init__(
        self,
        repository: Repository,
        settings: SourceSettings,
        *,
        way: Way,
        cache: Path,
        type_of: Callable[[str], str | None],
    ) -> None:
        super().__init__(settings.limits.max_bytes)
        self._repository = repository
        self._settings = settings
        self._way = way
        self._cache = cache
        self._type_of = type_of
        self._parts: dict[str, _Part] = {}  # by the beginning of their URLs
        self._opened = AsyncExitStack()

    async def open(self) -> None:
        try:
            await self._open()
        except ProgramFailed as failed:
            raise error_of(self._repository.remote, failed.said) from None
        if self._repository.wiki:
            await self._open_wiki(self._repository.wiki)

    async def _open(self) -> None:
        git = await self._opened.enter_async_context(self._way.to(self._repository.remote))
        copy = Copy(self._cache, self._repository.remote, git)
        ref, commit, below = await self._find(copy)
        blobs = {blob.path: blob for blob in await copy.take(commit, self._repository.at)}
        if below and not any(path == below or path.startswith(f"{below}/") for path in blobs):
            raise SourceMissing(f"There is no '{below}' in {ref.name} of {self._repository.remote}.")
        chosen = Selection(self._settings.scope, self._type_of, below=below).of(blobs)
        part = self._part(copy, git, self._repository.folder_url(ref), commit)
        self._take(part, {path: blobs[path] for path in chosen})

    async def close(self) -> None:
        for part in self._parts.values():
            await part.blobs.close()
        self._parts.clear()
        await self._opened.aclose()

    def why_not(self, url: str) -> str | None:
        selection, wiki = Selection(self._settings.scope, self._type_of), self._repository.wiki
        if wiki and url.startswith(f"{wiki.web}/"):
            return selection.why_not(f"{WIKI}/{_unquoted(url.removeprefix(f'{wiki.web}/'))}.md")
        for beginning in (*self._parts, f"{self._repository.web}/"):
            if url.startswith(beginning):
                return selection.why_not(_unquoted(url.removeprefix(beginning)))
        return "no file of this repository"

    async def renamed(self, absent: Mapping[str, Validators], arrived: Sequence[str]) -> Mapping[str, str]:
        """As git finds them between what was and what is: also where a file was changed as well."""
        moved: dict[str, str] = {}
        for part in self._parts.values():
            here = [url for url, of in absent.items() if of.etag and self._is_of(url, part)]
            old = {_unquoted(url.removeprefix(part.url)): url for url in here}
            new = {_unquoted(url.removeprefix(part.url)): url for url in arrived if url.startswith(part.url)}
            before = {name: absent[url].etag or "" for name, url in old.items()}
            after = {name: self._files[url].etag for name, url in new.items()}
            if not before or not after:
                continue
            try:
                await self._fetch(part, list(after.values()))
                moved |= {old[was]: new[now] for was, now in (await part.copy.renames(before, after)).items()}
            except (ProgramFailed, NotHad):  # what was is in nobody's hands any more: then the content tells
                log.warning("renames not told", remote=self._repository.remote, files=len(before))
        return moved

    def _is_of(self, url: str, part: _Part) -> bool:
        """Whether a document that is gone belonged to this part, perhaps under another branch."""
        beginning = f"{self._repository.wiki.web}/" if self._repository.wiki else None
        return (part.url == beginning) == bool(beginning and url.startswith(beginning))

    async def _find(self, copy: Copy) -> tuple[Ref, str, str]:
        """The state that is wanted, its commit, and the path in it. Names may have slashes: the longest counts."""
        at = self._repository.at
        if not at:
            found = await copy.offered(["HEAD"])
            branch = found.get("@HEAD", "").removeprefix("ref: refs/heads/")
            if "HEAD" not in found:
                raise SourceUnavailable(
                    f"{self._repository.remote} has nothing to keep: it is empty, or its default branch is, or it is "
                    "no git repository. Push something to it, name another branch (…@BRANCH), or check the address."
                )
            return Ref(kind=RefKind.BRANCH, name=branch or "HEAD"), found["HEAD"], ""
        parts = at.split("/")
        names = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        kinds = {RefKind.BRANCH: "refs/heads/", RefKind.TAG: "refs/tags/"}
        found = await copy.offered([f"{prefix}{name}" for name in names for prefix in kinds.values()])
        for name in names:
            for kind, prefix in kinds.items():
                if commit := found.get(f"{prefix}{name}"):
                    return Ref(kind=kind, name=name), commit, at[len(name) + 1 :]
        if len(parts[0]) in (40, 64) and set(parts[0]) <= set("0123456789abcdef"):
            return Ref(kind=RefKind.COMMIT, name=parts[0]), parts[0], at[len(parts[0]) + 1 :]
        raise SourceMissing(
            f"There is no branch or tag '{parts[0] if len(parts) == 1 else at}' in {self._repository.remote}. "
            "If it was deleted or renamed, add the repository with the one that is there now."
        )

    async def _open_wiki(self, wiki: Repository) -> None:
        """Its pages, if there are any: most repositories have none, and hosts say that in many ways."""
        url = f"{wiki.web}/"
        git = await self._opened.enter_async_context(self._way.to(wiki.remote))
        copy = Copy(self._cache, wiki.remote, git)
        try:
            commit = (await copy.offered(["HEAD"])).get("HEAD")
            found = await copy.take(commit, "") if commit else []
        except ProgramFailed as failed:
            trouble, sentence = trouble_of(failed.said)
            if trouble not in (Trouble.MISSING, Trouble.LOGIN):
                self._unlisted.append(Unlisted(url=url, reason=f"the wiki {sentence}"))
            return
        blobs = {f"{WIKI}/{blob.path}": blob for blob in found if not blob.path.rpartition("/")[2].startswith("_")}
        pages = Selection(self._settings.scope, self._type_of).of(blobs)
        self._take(self._part(copy, git, url, commit or ""), {path: blobs[path] for path in pages}, name=_page)

    def _part(self, copy: Copy, git: Git, url: str, commit: str) -> _Part:
        seconds, most = self._settings.access.whole_seconds, self._max_bytes
        blobs = BlobReader(copy.folder, git, most=most, seconds=seconds)
        return self._parts.setdefault(url, _Part(url=url, commit=commit, copy=copy, blobs=blobs, turn=asyncio.Lock()))

    def _take(self, part: _Part, blobs: Mapping[str, Blob], name: Callable[[str], str] = lambda path: path) -> None:
        for path, blob in sorted(blobs.items()):
            url = url_below(part.url, name(path))
            kind = self._type_of(path)
            if url and kind and url not in self._files:
                self._files[url] = File(key=part.url, etag=blob.id, content_type=kind)

    async def _read(self, file: File) -> bytes:
        part = self._parts[file.key]
        await self._fetch(part, [file.etag])
        try:
            return await part.blobs.read(file.etag)
        except NotHad:
            part.copy.distrust()
            raise

    async def _fetch(self, part: _Part, blobs: Sequence[str]) -> None:
        """Makes sure that these are there. Whatever else is wanted and missing comes along, up to a number."""
        async with part.turn:
            if part.missing is None:
                try:
                    absent = await part.copy.missing(part.commit)
                except ProgramFailed as failed:
                    raise NotHad(f"the repository {trouble_of(failed.said)[1]}") from None
                wanted = (file.etag for file in self._files.values() if file.key == part.url)
                part.missing = dict.fromkeys(blob for blob in wanted if blob in absent)
            while needed := [blob for blob in blobs if blob in part.missing]:
                batch = list(dict.fromkeys([*needed, *part.missing]))[:FETCHED_AT_ONCE]
                try:
                    await part.copy.fetch(batch)
                except ProgramFailed as failed:
                    _, sentence = trouble_of(failed.said)
                    raise NotHad(f"the repository {sentence}") from None
                for blob in batch:
                    part.missing.pop(blob, None)


def _page(path: str) -> str:
    """What a wiki calls a page: the name of its file without its ending, wherever that lies."""
    return path.rpartition("/")[2].rpartition(".")[0]


def _unquoted(path: str) -> str:
    return unquote_to_bytes(path).decode(errors="surrogateescape")
