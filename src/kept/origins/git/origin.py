"""A git repository and its wiki as an origin. It lists everything, and blob ids are exact validators.

    1. refs      one request: which commit the branch or tag points at
    2. fetch     that commit without blobs, if the clone does not have it yet
    3. list      its tree, as the URLs of the forge's web pages
    4. visit     the first missing blob fetches all missing ones, in a few requests

HTTP and HTTPS go through the gate proxy (``web.gate_proxy``) and its address policy; ssh is the user's own.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote_to_bytes

from kept.errors import SourceMissing, SourceUnavailable
from kept.log import Log
from kept.model.document import Validators
from kept.model.frontier import ListingFailure
from kept.model.repository import Ref, RefKind, Repository
from kept.model.source import SourceSettings
from kept.origins.file_selection import FileSelection
from kept.origins.file_tree import FileTooLarge, FileUnavailable, TreeFile, TreeOrigin, tree_file_url
from kept.origins.git.bare_clone import BareClone, Blob
from kept.origins.git.blobs import BlobReader
from kept.origins.git.errors import GitErrorKind, classify_git_error, make_source_error
from kept.origins.git.program import Git
from kept.origins.git.transport import Transport
from kept.origins.subprocesses import ProgramFailed
from kept.origins.web.client_factory import check_access

log = Log(__name__)

FETCH_BATCH = 2000
WIKI_FOLDER = "wiki"  # the folder of its pages for include and exclude patterns


@dataclass(slots=True, kw_only=True)
class _Part:
    """A repository of the source: its root, or the wiki."""

    base_url: str  # prefix of the URLs of its documents
    commit: str
    clone: BareClone
    blobs: BlobReader
    missing_blobs: dict[str, None] | None = None  # selected and not in the clone, in order; None: not yet determined
    lock: asyncio.Lock
    other_blobs: dict[str, str | None] = field(default_factory=dict)  # of files that are no documents, as far as asked


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
        self._parts: dict[str, _Part] = {}  # by base URL
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
        clone = BareClone(self._cache_folder, self._repository.remote, git)
        ref, commit, subfolder = await self._find_commit(clone)
        selection = FileSelection(self._settings.scope, self._type_of, subfolder=subfolder)
        listing = await clone.fetch_listing(
            commit,
            self._repository.ref_and_path,
            below=subfolder,
            is_wanted=lambda path: selection.why_excluded(path) is None,
        )
        if subfolder and not listing.paths:
            raise SourceMissing(f"There is no '{subfolder}' in {ref.name} of {self._repository.remote}.")
        part = self._add_part(clone, git, self._repository.file_base_url(ref), commit)
        # In a thread: of a large tree it takes seconds, and a server has other things to do.
        await asyncio.to_thread(self._add_selected, part, selection, {blob.path: blob for blob in listing.blobs})

    async def close(self) -> None:
        for part in self._parts.values():
            await part.blobs.close()
        self._parts.clear()
        await self._exit_stack.aclose()

    def why_excluded(self, url: str) -> str | None:
        selection, wiki = FileSelection(self._settings.scope, self._type_of), self._repository.wiki
        if wiki and url.startswith(f"{wiki.web_url}/"):
            return selection.why_excluded(f"{WIKI_FOLDER}/{_unquote_path(url.removeprefix(f'{wiki.web_url}/'))}.md")
        for base_url in (*self._parts, f"{self._repository.web_url}/"):
            if url.startswith(base_url):
                return selection.why_excluded(_unquote_path(url.removeprefix(base_url)))
        return "not a file of this repository"

    async def find_renames(self, missing: Mapping[str, Validators], new_urls: Sequence[str]) -> Mapping[str, str]:
        """Return renames as git detects them, also of files that were changed as well."""
        renames: dict[str, str] = {}
        for part in self._parts.values():
            missing_here = [url for url, held in missing.items() if held.etag and self._belongs_to(url, part)]
            old = {_unquote_path(url.removeprefix(part.base_url)): url for url in missing_here}
            new = {
                _unquote_path(url.removeprefix(part.base_url)): url for url in new_urls if url.startswith(part.base_url)
            }
            before = {name: missing[url].own_etag for name, url in old.items()}
            after = {name: self._files[url].etag for name, url in new.items()}
            if not before or not after:
                continue
            try:
                await self._ensure_blobs(part, list(after.values()))
                found = await part.clone.find_renames(before, after)
                renames |= {old[old_name]: new[new_name] for old_name, new_name in found.items()}
            except (ProgramFailed, FileUnavailable):  # the old blobs are gone: renames may still be found by content
                log.warning("renames not found", remote=self._repository.remote, files=len(before))
        return renames

    def _belongs_to(self, url: str, part: _Part) -> bool:
        """Return whether a missing document belonged to this part, perhaps on another branch."""
        wiki_url = f"{self._repository.wiki.web_url}/" if self._repository.wiki else None
        return (part.base_url == wiki_url) == bool(wiki_url and url.startswith(wiki_url))

    async def _find_commit(self, clone: BareClone) -> tuple[Ref, str, str]:
        """Return the ref, its commit, and the path in it. Ref names may hold slashes: the longest match counts."""
        ref_and_path = self._repository.ref_and_path
        if not ref_and_path:
            found = await clone.list_remote_refs(["HEAD"])
            branch = found.get("@HEAD", "").removeprefix("ref: refs/heads/")
            if "HEAD" not in found:
                raise SourceUnavailable(
                    f"{self._repository.remote} has nothing to keep: it is empty, or its default branch is, or it is "
                    "not a git repository. Push something to it, name another branch (…@BRANCH), or check the address."
                )
            return Ref(kind=RefKind.BRANCH, name=branch or "HEAD"), found["HEAD"], ""
        parts = ref_and_path.split("/")
        names = ["/".join(parts[:count]) for count in range(len(parts), 0, -1)]
        kinds = {RefKind.BRANCH: "refs/heads/", RefKind.TAG: "refs/tags/"}
        found = await clone.list_remote_refs([f"{prefix}{name}" for name in names for prefix in kinds.values()])
        for name in names:
            for kind, prefix in kinds.items():
                if commit := found.get(f"{prefix}{name}"):
                    return Ref(kind=kind, name=name), commit, ref_and_path[len(name) + 1 :]
        if len(parts[0]) in (40, 64) and set(parts[0]) <= set("0123456789abcdef"):
            return Ref(kind=RefKind.COMMIT, name=parts[0]), parts[0], ref_and_path[len(parts[0]) + 1 :]
        raise SourceMissing(
            f"There is no branch or tag '{ref_and_path}' in {self._repository.remote}. "
            "If it was deleted or renamed, add the repository with the one that exists now."
        )

    async def _open_wiki(self, wiki: Repository) -> None:
        """Add the pages of the wiki. Most repositories have none, which forges report in different ways."""
        url = f"{wiki.web_url}/"
        git = await self._exit_stack.enter_async_context(self._transport.connect(wiki.remote))
        clone = BareClone(self._cache_folder, wiki.remote, git)
        try:
            commit = (await clone.list_remote_refs(["HEAD"])).get("HEAD")
            found = (await clone.fetch_listing(commit, "", below="", is_wanted=_is_wiki_page)).blobs if commit else []
        except ProgramFailed as failed:
            kind, sentence = classify_git_error(failed.message)
            if kind not in (GitErrorKind.NOT_FOUND, GitErrorKind.AUTHENTICATION):
                self._listing_failures.append(ListingFailure(url=url, reason=f"the wiki {sentence}"))
            return
        await asyncio.to_thread(
            self._add_selected,
            self._add_part(clone, git, url, commit or ""),
            FileSelection(self._settings.scope, self._type_of),
            {f"{WIKI_FOLDER}/{blob.path}": blob for blob in found},
            name=_wiki_page_name,
        )

    def _add_part(self, clone: BareClone, git: Git, base_url: str, commit: str) -> _Part:
        blobs = BlobReader(clone.folder, git, max_bytes=self._max_bytes, seconds=self._settings.access.whole_seconds)
        part = _Part(base_url=base_url, commit=commit, clone=clone, blobs=blobs, lock=asyncio.Lock())
        return self._parts.setdefault(base_url, part)

    def _add_selected(
        self,
        part: _Part,
        selection: FileSelection,
        blobs: Mapping[str, Blob],
        name: Callable[[str], str] = lambda path: path,
    ) -> None:
        """Add the files that are to be kept. Blocks."""
        for path in sorted(selection.select(blobs)):
            url = tree_file_url(part.base_url, name(path))
            content_type = self._type_of(path)
            if url and content_type and url not in self._files:
                self._files[url] = TreeFile(key=part.base_url, etag=blobs[path].id, content_type=content_type)

    async def read_file(self, url: str) -> bytes | None:
        if url in self._files:
            return await super().read_file(url)
        part = next((part for part in self._parts.values() if url.startswith(part.base_url)), None)
        path = _unquote_path(url.removeprefix(part.base_url)) if part else ""
        if part is None or any(name in ("", "..") or name.startswith(".") for name in path.split("/")):
            return None
        try:
            if path not in part.other_blobs:
                part.other_blobs[path] = await part.clone.find_blob(part.commit, path)
            blob = part.other_blobs[path]
            return await self._read_file(TreeFile(key=part.base_url, etag=blob, content_type="")) if blob else None
        except (ProgramFailed, FileTooLarge, FileUnavailable):
            return None

    async def _read_file(self, file: TreeFile) -> bytes:
        part = self._parts[file.key]
        await self._ensure_blobs(part, [file.etag])
        try:
            return await part.blobs.read(file.etag)
        except FileUnavailable:
            part.clone.mark_damaged()
            raise

    async def _ensure_blobs(self, part: _Part, blobs: Sequence[str]) -> None:
        """Fetch these blobs if they are missing, together with up to FETCH_BATCH others that will be needed."""
        async with part.lock:
            if part.missing_blobs is None:
                try:
                    missing = await part.clone.missing_blobs(part.commit)
                except ProgramFailed as failed:
                    raise FileUnavailable(f"the repository {classify_git_error(failed.message)[1]}") from None
                selected = (file.etag for file in self._files.values() if file.key == part.base_url)
                part.missing_blobs = dict.fromkeys(blob for blob in selected if blob in missing)
            while needed := [blob for blob in blobs if blob in part.missing_blobs]:
                batch = list(dict.fromkeys([*needed, *part.missing_blobs]))[:FETCH_BATCH]
                try:
                    await part.clone.fetch_blobs(batch)
                except ProgramFailed as failed:
                    _, sentence = classify_git_error(failed.message)
                    raise FileUnavailable(f"the repository {sentence}") from None
                for blob in batch:
                    part.missing_blobs.pop(blob, None)


def _is_wiki_page(path: str) -> bool:
    return not path.rpartition("/")[2].startswith("_")


def _wiki_page_name(path: str) -> str:
    """Return a wiki page's name in URLs: the file name without folder and extension."""
    return path.rpartition("/")[2].rpartition(".")[0]


def _unquote_path(path: str) -> str:
    return unquote_to_bytes(path).decode(errors="surrogateescape")
