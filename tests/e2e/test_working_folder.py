"""A working folder may have come with a checkout of somebody else: nothing in it is believed or run."""

import json
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kept import settings as app
from tests.e2e.test_cli import Kept


def test_a_checkouts_settings_name_no_program_url_key_or_database(tmp_path: Path) -> None:
    hostile = {
        "database": "database = 'postgresql://evil.test/x'",
        "rerank.url": "[rerank]\nurl = 'http://127.0.0.1:1'\nkey = 'env:AWS_SECRET_ACCESS_KEY'\nhits = 7",
        "crawl.browser": "[crawl]\nbrowser = './evil'",
        "webhooks.url": "[webhooks]\nurl = 'http://127.0.0.1:1'",
        "network.allow_private": "[network]\nallow_private = 1",
        "history.days": "[history]\ndays = 0",
        "serve.hosts": "[serve]\nhosts = 'evil.test'",
        "embed.url": "[embed]\nurl = 'http://127.0.0.1:1'",
    }
    untouched = app.load(environment={}, folder=tmp_path / "none").effective()
    for name, text in hostile.items():
        (tmp_path / "kept.toml").write_text(text)
        loaded = app.load(environment={}, folder=tmp_path)
        assert loaded.effective() | {"rerank.hits": 30} == untouched, name
        assert name in loaded.warning
        assert "kept config --trust" in loaded.warning
    (tmp_path / "kept.toml").write_text("[search]\nmode = 'lexical'\n[rerank]\nhits = 7\n")
    loaded = app.load(environment={}, folder=tmp_path)
    assert (loaded.rerank.hits, loaded.warning) == (7, "")


def test_a_hostile_checkout_gets_no_request_until_it_is_trusted_and_again_when_it_changes(tmp_path: Path) -> None:
    kept = Kept(tmp_path, f"sqlite:///{tmp_path / 'kept.db'}")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Pool\n\nA pool.\n")
    kept.json("add", "docs")
    kept.environment["AWS_SECRET_ACCESS_KEY"] = "hidden"
    with socket.create_server(("127.0.0.1", 0)) as collector:
        collector.settimeout(0)
        url = f"http://127.0.0.1:{collector.getsockname()[1]}"
        text = f"[rerank]\nurl = '{url}'\nkey = 'env:AWS_SECRET_ACCESS_KEY'\nmodel = 'm'\nseconds = 0.5\n"
        (tmp_path / "kept.toml").write_text(text)
        run = kept("search", "pool")
        assert run.code == 0
        assert "kept config --trust" in run.err
        with pytest.raises(BlockingIOError):
            collector.accept()
        assert kept("config", "--trust").code == 0
        assert kept.json("config")["rerank.url"]["value"] == url
        (tmp_path / "kept.toml").write_text(text + "hits = 3\n")
        assert kept.json("config")["rerank.url"]["value"] == ""


def test_nothing_in_the_working_folder_is_run_by_a_server_or_a_crawl(tmp_path: Path) -> None:
    """Python looks for modules in the working folder first, unless it is told not to."""
    kept = Kept(tmp_path, f"sqlite:///{tmp_path / 'kept.db'}")
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# Pool\n\nA pool.\n")
    job = kept.json("add", "docs", "--no-wait")["job"]
    (tmp_path / "kept").mkdir()
    names = ("kept/__init__.py", "kept/__main__.py", "yaml.py", "typer.py", "pickle.py", "selectolax.py", "uvicorn.py")
    for name in names:
        (tmp_path / name).write_text(f"open({str(tmp_path / 'ran')!r}, 'a').write({name!r})\n")
    (tmp_path / "git").write_text(f"#!/bin/sh\ntouch {tmp_path / 'ran'}\n")
    (tmp_path / "git").chmod(0o755)
    command = [sys.executable, "-P", "-m", "kept"]  # as the installed program: without the working folder
    options = {"cwd": tmp_path, "env": kept.environment | {"PYTHONPATH": ""}, "stdin": subprocess.DEVNULL}
    server = subprocess.Popen([*command, "serve", "--port", "0"], **options, stderr=subprocess.DEVNULL)  # type: ignore[call-overload]
    try:
        status, until = "", time.monotonic() + 60
        while status != "completed" and time.monotonic() < until:
            shown = subprocess.run([*command, "job", job, "--json"], **options, capture_output=True, check=True)  # type: ignore[call-overload]
            status = json.loads(shown.stdout)["status"]
        assert status == "completed", "the worker of the server has run it"
    finally:
        server.terminate()
        server.wait(30)
    assert not (tmp_path / "ran").exists()
