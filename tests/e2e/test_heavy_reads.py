"""Reads that are heavy for the server are limited, and keep it from answering others never."""

import asyncio
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import pytest

from kept.errors import QuotaExceeded, SourceUnavailable
from kept.extract.reader import guess_content_type
from kept.model.repository import repository_from_root
from kept.model.source import SourceKind, SourceSettings
from kept.origins.git import bare_clone, make_git_origin
from kept.service.previews import (
    MAX_REQUESTED,
    MAX_REQUESTED_OF_CALLER,
    MAX_RUNNING,
    MAX_RUNNING_OF_CALLER,
    MAX_RUNNING_OF_TREES,
    PreviewLimits,
)
from tests.e2e.server import Server, serving
from tests.sites.repositories import PLAIN, Repository, git_server


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with serving(f"sqlite:///{tmp_path / 'kept.db'}", tmp_path, workers=0) as running:
        yield running


def test_previews_of_a_tarpit_by_a_read_key_leave_the_server_to_others(server: Server) -> None:
    url = ""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as tarpit, ThreadPoolExecutor(12) as threads:
        url = f"http://127.0.0.1:{tarpit.getsockname()[1]}/"
        key = server.key("reader", "read")

        def preview(_: int) -> httpx2.Response:
            with server.client(key) as client:
                return client.post("/api/v1/try", json={"url": url})

        asked = [threads.submit(preview, number) for number in range(12)]
        while sum(one.done() for one in asked) < 12 - MAX_REQUESTED_OF_CALLER:
            time.sleep(0.05)
        started = time.monotonic()
        with server.client(server.key("other", "read")) as client:
            assert client.get("/healthz").status_code == 200
            assert client.get("/api/v1/search", params={"q": "pool"}).status_code in (200, 404)
            assert time.monotonic() - started < 10
        refused = [one.result() for one in asked if one.done()]
        assert {one.status_code for one in refused} == {429}
        assert "Retry-After" in refused[0].headers
        tarpit.close()  # resets those that wait


def test_a_preview_never_clones_a_repository(server: Server, tmp_path: Path) -> None:
    """A read key would fill the disk, and a page of a forge is a page."""
    with git_server(tmp_path / "served") as git, server.client(server.key("reader", "read")) as client:
        git.pages["/manual.git"] = (200, "<title>Manual</title><h1>Manual</h1><p>The page of a repository.</p>")
        shown = client.post("/api/v1/try", json={"url": f"{git.url}/manual.git"})
        assert (shown.status_code, shown.json().get("title")) == (200, "Manual")
        assert {path for _, path in git.requests} <= {"/manual.git", "/robots.txt"}
        for url in ("git://127.0.0.1/manual.git", "git@127.0.0.1:manual.git", "npm:left-pad"):
            assert client.post("/api/v1/try", json={"url": url}).status_code == 400


@pytest.mark.parametrize(
    ("callers", "kind", "running", "requested"),
    [
        (1, SourceKind.WEB, MAX_RUNNING_OF_CALLER, MAX_REQUESTED_OF_CALLER),
        (30, SourceKind.WEB, MAX_RUNNING, MAX_REQUESTED),
        (30, SourceKind.GIT, MAX_RUNNING_OF_TREES, MAX_REQUESTED),
    ],
)
def test_previews_are_counted_for_each_caller_and_in_all(
    callers: int, kind: SourceKind, running: int, requested: int
) -> None:
    async def scenario() -> tuple[int, int]:
        limits, now, most, refused = PreviewLimits(), 0, 0, 0

        async def preview(number: int) -> None:
            nonlocal now, most, refused
            try:
                async with limits.slot(f"key {number % callers}", kind):
                    now += 1
                    most = max(most, now)
                    await asyncio.sleep(0)
                    now -= 1
            except QuotaExceeded:
                refused += 1

        await asyncio.gather(*map(preview, range(60)))
        refused_first, refused = refused, 0
        await preview(1)
        assert (refused, now) == (0, 0), "there is room again"
        return most, 60 - refused_first

    assert asyncio.run(scenario()) == (running, requested)


def make_nested_trees(repository: Repository, levels: int) -> int:
    """Commit 10 ** levels paths in as many objects as levels. Returns the bytes of its objects."""
    blob = repository.git("hash-object", "-w", "--stdin", stdin=b"# A page\n").strip()
    entry = f"100644 blob {blob}\t{{}}.md"
    for _ in range(levels):
        rows = "".join(entry.format(number) + "\n" for number in range(10))
        tree = repository.git("mktree", stdin=rows.encode()).strip()
        entry = f"040000 tree {tree}\t{{}}"
    commit = repository.git("commit-tree", tree, "-m", "nested").strip()
    repository.git("update-ref", "refs/heads/main", commit)
    return sum(file.stat().st_size for file in (repository.bare / "objects").rglob("*") if file.is_file())


def test_a_tiny_repository_of_countless_paths_is_refused_while_the_server_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.environ.get("KEPT_TEST_LONG") != "1":
        monkeypatch.setattr(bare_clone, "MAX_PATHS", 20_000)
    repository = Repository(tmp_path / "nested.git")
    assert make_nested_trees(repository, 7) < 32_000
    origin = make_git_origin(
        repository_from_root(f"file://{tmp_path}/nested.git").root,
        SourceSettings(),
        type_of=guess_content_type,
        look_up=str,
        environment=PLAIN,
        cache_folder=tmp_path / "cache",
    )

    async def scenario() -> float:
        longest, before, is_done = 0.0, time.monotonic(), False

        async def tick() -> None:
            nonlocal longest, before
            while not is_done:
                now = time.monotonic()
                longest, before = max(longest, now - before), now
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        with pytest.raises(SourceUnavailable, match=f"more than {bare_clone.MAX_PATHS:,} files"):
            await origin.open()
        await origin.close()
        is_done = True
        await ticking
        return longest

    assert asyncio.run(scenario()) < 1.0, "the event loop is never held"
    running = subprocess.run(["pgrep", "-f", str(tmp_path / "cache")], capture_output=True, check=False)
    assert running.returncode == 1, "no git is left"


def test_a_folder_of_a_large_repository_can_be_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bare_clone, "MAX_PATHS", 3)
    repository = Repository(tmp_path / "large.git")
    repository.commit({"docs/a.md": "# A\n", "docs/b.md": "# B\n", "src/1.md": "1", "src/2.md": "2", "src/3.md": "3"})

    async def list_files(root: str) -> list[str]:
        origin = make_git_origin(
            root,
            SourceSettings(),
            type_of=guess_content_type,
            look_up=str,
            environment=PLAIN,
            cache_folder=tmp_path / "cache",
        )
        try:
            await origin.open()
            return [listed.url.rpartition("/")[2] async for listed in origin.list()]
        finally:
            await origin.close()

    with pytest.raises(SourceUnavailable, match="Keep a folder of it"):
        asyncio.run(list_files(f"file://{tmp_path}/large.git"))
    assert asyncio.run(list_files(f"file://{tmp_path}/large.git#main/docs")) == ["a.md", "b.md"]
