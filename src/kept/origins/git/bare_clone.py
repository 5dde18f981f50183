"""A bare, shallow, blobless clone of a remote repository, as a cache.

Sources of one remote share a clone; each branch has a ref of its own (``refs/kept/…``) at the commit that was fetched.
A file lock serializes changes by several processes. An incomplete or damaged clone is created again.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from kept.errors import SourceUnavailable
from kept.origins.git.errors import GitErrorKind, classify_git_error
from kept.origins.git.program import FETCH_SECONDS, Git
from kept.origins.subprocesses import ProgramFailed
from kept.private_files import make_private_folder

LOCK_POLL_SECONDS = 0.1
MAX_PATHS = 500_000  # of one tree; a repository of a few kilobytes can have any number
MAX_PATH_BYTES = 128 * 1024 * 1024  # of all of them
MAX_RENAME_CANDIDATES = 2000  # files on either side; with more, only identical files are matched
_FETCH_COMMAND = (
    "fetch",
    "--quiet",
    "--no-tags",
    "--no-write-fetch-head",
    "--recurse-submodules=no",
    "--filter=blob:none",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Blob:
    path: str  # as os.fsdecode() returns it: it need not be UTF-8
    id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeListing:
    paths: int  # of everything in the tree
    blobs: list[Blob]


def clone_folder(cache: Path, remote: str) -> Path:
    return cache / "git" / hashlib.sha256(remote.encode()).hexdigest()[:32]


class BareClone:
    """The clone of one remote. Every method raises ProgramFailed where git fails."""

    def __init__(self, cache: Path, remote: str, git: Git) -> None:
        self._remote = remote
        self._git = git
        self._folder = clone_folder(cache, remote)
        self._damaged_marker = self._folder / "kept-distrusted"

    @property
    def folder(self) -> Path:
        return self._folder

    async def list_remote_refs(self, names: Iterable[str]) -> dict[str, str]:
        """Return the values of refs at the remote in one request. A symbolic ref is keyed '@NAME', with 'ref: …'."""
        make_private_folder(self._folder.parent)
        answer = await self._git("ls-remote", "--symref", "origin", *names, folder=self._folder.parent / "none")
        refs: dict[str, str] = {}
        for line in answer.decode(errors="replace").splitlines():
            value, _, name = line.partition("\t")
            refs[f"@{name}" if value.startswith("ref: ") else name] = value
        return refs

    async def fetch_listing(
        self, commit: str, ref_and_path: str, *, below: str, is_wanted: Callable[[str], bool]
    ) -> TreeListing:
        """List the wanted regular files of a commit ``below`` a path, without submodules and links.

        Fetches the commit if it is not here. Raises SourceUnavailable for a tree that is larger than any can be.
        """
        local_ref = f"refs/kept/{hashlib.sha256(ref_and_path.encode()).hexdigest()[:32]}"
        async with self._lock():
            existed = (self._folder / "HEAD").exists()
            try:
                await self._fetch_commit(commit, local_ref)
                return await self._list_tree(commit, below, is_wanted)
            except ProgramFailed as failed:
                # The remote has just answered, so a missing object or an unknown error means a damaged clone.
                if not existed or classify_git_error(failed.message)[0] not in (
                    GitErrorKind.NOT_FOUND,
                    GitErrorKind.UNKNOWN,
                ):
                    raise
            shutil.rmtree(self._folder, ignore_errors=True)
            await self._fetch_commit(commit, local_ref)
            return await self._list_tree(commit, below, is_wanted)

    async def _fetch_commit(self, commit: str, local_ref: str) -> None:
        await self._create()
        if await self._fetched_commit(local_ref) != commit:
            await self._git(
                *_FETCH_COMMAND,
                "--depth=1",
                "origin",
                f"+{commit}:{local_ref}",
                folder=self._folder,
                seconds=FETCH_SECONDS,
            )

    async def _list_tree(self, commit: str, below: str, is_wanted: Callable[[str], bool]) -> TreeListing:
        arguments = ("ls-tree", "-r", "-z", "--full-tree", commit, *(("--", below) if below else ()))
        blobs: list[Blob] = []
        paths, size, rest = 0, 0, b""
        async with aclosing(self._git.stream(*arguments, folder=self._folder)) as output:
            async for data in output:
                *rows, rest = (rest + data).split(b"\0")
                paths, size = paths + len(rows), size + len(data)
                if paths > MAX_PATHS or size > MAX_PATH_BYTES:
                    raise SourceUnavailable(
                        f"{self._remote} has more than {MAX_PATHS:,} files, or longer names than files have. Keep a "
                        "folder of it: add it by the address that the browser shows there, or as URL#BRANCH/FOLDER."
                    )
                blobs += [blob for row in rows if (blob := _parse_blob(row)) and is_wanted(blob.path)]
        return TreeListing(paths=paths, blobs=blobs)

    async def find_blob(self, commit: str, path: str) -> str | None:
        """Return the id of one regular file of a commit that was fetched; None if there is none."""
        row = await self._git("ls-tree", "-z", "--full-tree", commit, "--", path, folder=self._folder)
        blob = _parse_blob(row.split(b"\0")[0]) if row else None
        return blob.id if blob and blob.path == path else None

    async def _create(self) -> None:
        """Create an empty clone where there is none, atomically."""
        if (self._folder / "HEAD").exists() and not self._damaged_marker.exists():
            return
        shutil.rmtree(self._folder, ignore_errors=True)
        new = Path(tempfile.mkdtemp(prefix="new-", dir=self._folder.parent))
        try:
            await self._git("init", "--quiet", "--bare", "--template=", folder=new)
            (new / "kept-remote").write_text(self._remote + "\n", "utf-8")
            new.rename(self._folder)
        finally:
            shutil.rmtree(new, ignore_errors=True)

    def mark_damaged(self) -> None:
        """Have the clone created again next time: something in it cannot be read."""
        if self._folder.is_dir():
            self._damaged_marker.touch()

    async def _fetched_commit(self, local_ref: str) -> str | None:
        commit = await self._git("for-each-ref", "--format=%(objectname)", local_ref, folder=self._folder)
        return commit.decode().strip() or None

    async def missing_blobs(self, commit: str) -> set[str]:
        """Return the blobs of a commit that the clone does not have."""
        arguments = ("rev-list", "--objects", "--no-object-names", "--missing=print", f"{commit}^{{tree}}")
        rows = (await self._git(*arguments, folder=self._folder)).decode().split()
        return {row[1:] for row in rows if row.startswith("?")}

    async def fetch_blobs(self, blobs: Iterable[str]) -> None:
        """Fetch these blobs in one request."""
        blob_list = "".join(f"{blob}\n" for blob in blobs).encode()
        async with self._lock():
            await self._git(
                "-c", "fetch.negotiationAlgorithm=noop", *_FETCH_COMMAND, "--stdin", "origin",
                folder=self._folder, seconds=FETCH_SECONDS, stdin_data=blob_list,
            )  # fmt: skip

    async def find_renames(self, before: Mapping[str, str], after: Mapping[str, str]) -> dict[str, str]:
        """Return renames, old name -> new, as git detects them (identical or similar). Both maps are name -> blob."""
        with tempfile.TemporaryDirectory(prefix="kept-") as folder:
            trees = [await self._write_tree(files, Path(folder) / "index") for files in (before, after)]
        arguments = (
            "diff-tree",
            "-r",
            "-z",
            "-M",
            f"-l{MAX_RENAME_CANDIDATES}",
            "--name-status",
            "--diff-filter=R",
            *trees,
        )
        rows = (await self._git(*arguments, folder=self._folder, seconds=FETCH_SECONDS)).split(b"\0")
        return {os.fsdecode(old): os.fsdecode(new) for old, new in zip(rows[1::3], rows[2::3], strict=False)}

    async def _write_tree(self, files: Mapping[str, str], index: Path) -> str:
        index.unlink(missing_ok=True)
        index_entries = b"".join(
            f"100644 {blob}\t".encode() + os.fsencode(name) + b"\0" for name, blob in files.items()
        )
        await self._git(
            "update-index", "-z", "--index-info", folder=self._folder, stdin_data=index_entries, index_file=index
        )
        return (await self._git("write-tree", "--missing-ok", folder=self._folder, index_file=index)).decode().strip()

    @asynccontextmanager
    async def _lock(self) -> AsyncIterator[None]:
        """Hold the lock that serializes changes to the clone on this machine."""
        make_private_folder(self._folder.parent)
        lock = os.open(self._folder.with_suffix(".lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        os.utime(lock)  # garbage collection deletes clones that have not been used for long
        try:
            while True:
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except BlockingIOError:
                    await asyncio.sleep(LOCK_POLL_SECONDS)
            yield
        finally:
            os.close(lock)


def _parse_blob(row: bytes) -> Blob | None:
    about, _, path = row.partition(b"\t")
    mode, kind, id = about.decode().split()
    return Blob(path=os.fsdecode(path), id=id) if kind == "blob" and mode.startswith("100") else None
