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
from kept.model.frontier import ListingFailure
from kept.model.repository import Ref, RefKind, Repository
from kept.model.source import SourceSettings
from kept.origins.file_selection import FileSelection
from kept.origins.file_tree import FileUnavailable, TreeFile, TreeOrigin, tree_file_url
from kept.origins.git.bare_clone import BareClone, Blob
from kept.origins.git.blobs import BlobReader
from kept.origins.git.errors import GitErrorKind, classify_git_error, make_source_error
from kept.origins.git.program import Git
from kept.origins.git.transport import Transport
from kept.origins.subprocesses import ProgramFailed
from kept.origins.web.client_factory import check_access

log = Log(__name__)

FETCH_BATCH = 2000
WIKI_FOLDER = "wiki"  # the folder that patterns find its pages in


@dataclass(slots=True, kw_only=True)
class _Part:
    """A repository of the source: the one that was named, or its wiki."""

    base_url: str  # what the URLs of its documents begin with
    commit: str
    clone: BareClone
    blobs: BlobReader
    missing_blobs: dict[str, None] | None = (
        None  # blobs that are wanted and not there, in order; None: nobody has looked
    )
    lock: asyncio.Lock


class GitOrigin(TreeOrigin):
    def __init__(
        self,
        repository: Repository,
        settings: SourceSettings,
        *,
        transport: Transport,
        cache_folder: Path,
        type_of: Callable[[str], str | None],
    ) -> None:
        super().__init__(settings.limits.max_bytes)
        self._repository = repository
        self._settings = settings
        self._transport = transport
        self._cache_folder = cache_folder
        self._type_of = type_of
        self._parts: dict[str, _Part] = {}  # by the beginning of their URLs
        self._exit_stack = AsyncExitStack()

    def check(self) -> None:
        check_access(self._settings.access)

    async def open(self) -> None:
        try:
            await self._open_repository()
        except ProgramFailed as failed:
            raise make_source_error(self._repository.remote, failed.message) from None
        if self._repository.wiki:
            await self._open_wiki(self._repository.wiki)

    async def _open_repository(self) -> None:
        git = await self._exit_stack.enter_async_context(self._transport.connect(self._repository.remote))
        copy = BareClone(self._cache_folder, self._repository.remote, git)
        ref, commit, below = await self._find_commit(copy)
        blobs = {blob.path: blob for blob in await copy.fetch_listing(commit, self._repository.ref_and_path)}
        if below and not any(path == below or path.startswith(f"{below}/") for path in blobs):
            raise SourceMissing(f"There is no '{below}' in {ref.name} of {self._repository.remote}.")
        chosen = FileSelection(self._settings.scope, self._type_of, subfolder=below).select(blobs)
        part = self._add_part(copy, git, self._repository.file_base_url(ref), commit)
        self._add_files(part, {path: blobs[path] for path in chosen})

    async def close(self) -> None:
        for part in self._parts.values():
            await part.blobs.close()
        self._parts.clear()
        await self._exit_stack.aclose()

    def why_excluded(self, url: str) -> str | None:
        selection, wiki = FileSelection(self._settings.scope, self._type_of), self._repository.wiki
        if wiki and url.startswith(f"{wiki.web_url}/"):
            return selection.why_excluded(f"{WIKI_FOLDER}/{_unquote_path(url.removeprefix(f'{wiki.web_url}/'))}.md")
        for beginning in (*self._parts, f"{self._repository.web_url}/"):
            if url.startswith(beginning):
                return selection.why_excluded(_unquote_path(url.removeprefix(beginning)))
        return "no file of this repository"

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        """As git finds them between what was and what is: also where a file was changed as well."""
        moved: dict[str, str] = {}
        for part in self._parts.values():
            here = [url for url, of in missing.items() if of.etag and self._belongs_to(url, part)]
            old = {_unquote_path(url.removeprefix(part.base_url)): url for url in here}
            new = {
                _unquote_path(url.removeprefix(part.base_url)): url for url in new_urls if url.startswith(part.base_url)
            }
            before = {name: missing[url].etag or "" for name, url in old.items()}
            after = {name: self._files[url].etag for name, url in new.items()}
            if not before or not after:
                continue
            try:
                await self._ensure_blobs(part, list(after.values()))
                moved |= {old[was]: new[now] for was, now in (await part.clone.find_renames(before, after)).items()}
            except (ProgramFailed, FileUnavailable):  # what was is in nobody's hands any more: then the content tells
                log.warning("renames not told", remote=self._repository.remote, files=len(before))
        return moved

    def _belongs_to(self, url: str, part: _Part) -> bool:
        """Whether a document that is gone belonged to this part, perhaps under another branch."""
        beginning = f"{self._repository.wiki.web_url}/" if self._repository.wiki else None
        return (part.base_url == beginning) == bool(beginning and url.startswith(beginning))

    async def _find_commit(self, copy: BareClone) -> tuple[Ref, str, str]:
        """The state that is wanted, its commit, and the path in it. Names may have slashes: the longest counts."""
        at = self._repository.ref_and_path
        if not at:
            found = await copy.list_remote_refs(["HEAD"])
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
        found = await copy.list_remote_refs([f"{prefix}{name}" for name in names for prefix in kinds.values()])
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
        url = f"{wiki.web_url}/"
        git = await self._exit_stack.enter_async_context(self._transport.connect(wiki.remote))
        copy = BareClone(self._cache_folder, wiki.remote, git)
        try:
            commit = (await copy.list_remote_refs(["HEAD"])).get("HEAD")
            found = await copy.fetch_listing(commit, "") if commit else []
        except ProgramFailed as failed:
            trouble, sentence = classify_git_error(failed.message)
            if trouble not in (GitErrorKind.NOT_FOUND, GitErrorKind.AUTHENTICATION):
                self._unlisted.append(ListingFailure(url=url, reason=f"the wiki {sentence}"))
            return
        blobs = {
            f"{WIKI_FOLDER}/{blob.path}": blob for blob in found if not blob.path.rpartition("/")[2].startswith("_")
        }
        pages = FileSelection(self._settings.scope, self._type_of).select(blobs)
        self._add_files(
            self._add_part(copy, git, url, commit or ""), {path: blobs[path] for path in pages}, name=_wiki_page_name
        )

    def _add_part(self, copy: BareClone, git: Git, url: str, commit: str) -> _Part:
        seconds, most = self._settings.access.whole_seconds, self._max_bytes
        blobs = BlobReader(copy.folder, git, max_bytes=most, seconds=seconds)
        return self._parts.setdefault(
            url, _Part(base_url=url, commit=commit, clone=copy, blobs=blobs, lock=asyncio.Lock())
        )

    def _add_files(
        self, part: _Part, blobs: Mapping[str, Blob], name: Callable[[str], str] = lambda path: path
    ) -> None:
        for path, blob in sorted(blobs.items()):
            url = tree_file_url(part.base_url, name(path))
            kind = self._type_of(path)
            if url and kind and url not in self._files:
                self._files[url] = TreeFile(key=part.base_url, etag=blob.id, content_type=kind)

    async def _read_file(self, file: TreeFile) -> bytes:
        part = self._parts[file.key]
        await self._ensure_blobs(part, [file.etag])
        try:
            return await part.blobs.read(file.etag)
        except FileUnavailable:
            part.clone.mark_damaged()
            raise

    async def _ensure_blobs(self, part: _Part, blobs: Sequence[str]) -> None:
        """Makes sure that these are there. Whatever else is wanted and missing comes along, up to a number."""
        async with part.lock:
            if part.missing_blobs is None:
                try:
                    absent = await part.clone.missing_blobs(part.commit)
                except ProgramFailed as failed:
                    raise FileUnavailable(f"the repository {classify_git_error(failed.message)[1]}") from None
                wanted = (file.etag for file in self._files.values() if file.key == part.base_url)
                part.missing_blobs = dict.fromkeys(blob for blob in wanted if blob in absent)
            while needed := [blob for blob in blobs if blob in part.missing_blobs]:
                batch = list(dict.fromkeys([*needed, *part.missing_blobs]))[:FETCH_BATCH]
                try:
                    await part.clone.fetch_blobs(batch)
                except ProgramFailed as failed:
                    _, sentence = classify_git_error(failed.message)
                    raise FileUnavailable(f"the repository {sentence}") from None
                for blob in batch:
                    part.missing_blobs.pop(blob, None)


def _wiki_page_name(path: str) -> str:
    """What a wiki calls a page: the name of its file without its ending, wherever that lies."""
    return path.rpartition("/")[2].rpartition(".")[0]


def _unquote_path(path: str) -> str:
    return unquote_to_bytes(path).decode(errors="surrogateescape")
