"""Every interface for adding a source checks, probes and refuses alike, and a refused source leaves nothing behind."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from html import unescape
from pathlib import Path
from socket import socket

import pytest
from mcp import Client

from kept.server.mcp.server import make_mcp_server
from tests.e2e.server import Server, serving
from tests.e2e.test_mcp import refused

API = "/api/v1"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("add")
    with serving(f"sqlite:///{folder}/kept.db", folder, workers=0) as running:
        yield running


@pytest.fixture(scope="module")
def closed_port() -> Iterator[int]:
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        yield unused.getsockname()[1]


@pytest.mark.parametrize(
    ("root", "sentence"),
    [
        ("http://127.0.0.1:{port}/", "http://127.0.0.1:{port}/ cannot be reached: Connection refused"),
        ("/nowhere/at/all", "/nowhere/at/all"),
    ],
)
def test_a_root_that_cannot_be_reached_is_refused_by_every_interface(
    server: Server, closed_port: int, tmp_path: Path, root: str, sentence: str
) -> None:
    root, sentence = root.format(port=closed_port), sentence.format(port=closed_port)
    with server.client() as http:
        api = http.post(f"{API}/sources", json={"root": root})
        queue = http.post("/knowledge-items/crawl", json={"url": root})
        page = http.post("/add", data={"root": root})
        assert api.status_code == queue.status_code == page.status_code
        assert api.json()["detail"] == queue.json()["detail"]
        answers = [api.json()["detail"], unescape(page.text), _by_mcp(server, root)]
        for extra in ([], ["--no-wait"]):
            answers.append(_by_command_line(server, root, *extra))
        for answer in answers:
            assert sentence in answer
        assert http.get(f"{API}/sources").json() == {"sources": []}
        assert http.get(f"{API}/jobs").json()["jobs"] == []


def test_adding_a_kept_root_never_changes_its_source_by_accident(server: Server, tmp_path: Path) -> None:
    root = tmp_path / "manual"
    root.mkdir()
    (root / "a.md").write_text("# A\n")
    with server.client() as http:
        assert http.post(f"{API}/sources", json={"root": str(root), "max_pages": 9}).status_code == 201
        before = http.get(f"{API}/sources/manual").json()["settings"]
        other_settings = [
            http.post(f"{API}/sources", json={"root": str(root), "max_pages": 5}).json()["detail"],
            http.post("/knowledge-items/crawl", json={"url": str(root), "tags": ["x"]}).json()["detail"],
            unescape(http.post("/add", data={"root": str(root), "max_pages": "5"}).text),
            _by_mcp(server, str(root), max_pages=5),
        ]
        for answer in other_settings:
            assert "kept already, as 'manual', with other settings. Nothing was changed." in answer
        other_name = [
            http.post(f"{API}/sources", json={"root": str(root), "name": "other"}).json()["detail"],
            _by_mcp(server, str(root), name="other"),
            _by_command_line(server, str(root), "--name", "other", code=2),
        ]
        for answer in other_name:
            assert "kept already, as 'manual'. Leave out the name" in answer
            assert "'kept rename manual other'" in answer
        assert http.get(f"{API}/sources/manual").json()["settings"] == before
        assert [one["name"] for one in http.get(f"{API}/sources").json()["sources"]] == ["manual"]
        for same in ({}, {"name": "manual"}, {"max_pages": 9}):
            assert http.post(f"{API}/sources", json={"root": str(root)} | same).status_code == 200, "a refresh"
        http.delete(f"{API}/sources/manual")


def test_the_same_root_again_is_a_refresh_and_null_clears(server: Server, tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n")
    with server.client() as http:
        first = http.post(f"{API}/sources", json={"root": str(root), "exclude": ["x/*"], "tag": ["ours"]})
        again = http.post("/knowledge-items/crawl", json={"url": str(root), "tags": ["ours"]})
        assert (first.status_code, again.status_code) == (201, 202)
        settings = http.get(f"{API}/sources/docs").json()["settings"]
        assert (settings["scope"]["exclude"], settings["tags"]) == (["x/*"], ["ours"])
        cleared = http.patch(f"{API}/sources/docs", json={"exclude": None}).json()["settings"]
        assert (cleared["scope"]["exclude"], cleared["tags"]) == ([], ["ours"]), "null clears, silence does not"
        http.delete(f"{API}/sources/docs")


def _by_mcp(server: Server, root: str, **arguments: object) -> str:
    async def call() -> str:
        runtime = server.runtime
        async with Client(make_mcp_server(runtime.services, runtime.settings)) as client:
            return await refused(client, "add_source", root=root, **arguments)

    return asyncio.run(call())


def _by_command_line(server: Server, root: str, *arguments: str, code: int | None = None) -> str:
    environment = os.environ | {"KEPT_DATABASE": server.runtime.settings.database}
    command = [sys.executable, "-m", "kept", "add", root, *arguments]
    run = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode in ((1, 3) if code is None else (code,))
    return run.stderr
