"""A web site, kept through the command line: a real server on loopback, a real crawl, a real search."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.usefixtures("checked_databases")

PAGE = """<!doctype html><html><head><title>{title} — Tern</title></head><body>
<nav><a href="/">home</a> <a href="/guide/pool.html">pool</a> NAVIGATION</nav>
<main><h1 id="top">{title}</h1><p>{text}</p>{more}</main></body></html>"""


class Quiet(SimpleHTTPRequestHandler):
    """Python's own server: it sends Last-Modified and answers 304."""

    requests: list[tuple[str, int]]

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        self.requests.append((self.path, int(code)))

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def site(tmp_path: Path) -> Iterator[tuple[Path, str, list[tuple[str, int]]]]:
    folder, requests = tmp_path / "site", list[tuple[str, int]]()
    (folder / "guide").mkdir(parents=True)
    write = partial(_write, folder)
    write(
        "index.html", "Tern", "A database driver that rests between flights.", '<a href="guide/pool.html">The pool</a>'
    )
    write(
        "guide/pool.html",
        "The pool",
        "Connections wait in a pool.",
        '<h2 id="limits">Limits of the pool</h2><p>Twelve connections, unless pool_size says otherwise.</p>'
        '<a href="missing.html">gone</a> <a href="notes.md">notes</a> <a href="/secret/">secret</a>',
    )
    (folder / "guide/notes.md").write_text("# Notes\n\nThe heron keeps no pool at all.\n")
    (folder / "robots.txt").write_text("User-agent: *\nDisallow: /secret/\n")
    handler = type("Handler", (Quiet,), {"requests": requests})
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(handler, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield folder, f"http://127.0.0.1:{server.server_port}/", requests
    server.shutdown()
    server.server_close()


@pytest.fixture
def kept(database_url: str) -> Callable[..., Any]:
    def run(*arguments: str, code: int = 0) -> Any:
        command = [sys.executable, "-m", "kept", "--json", "--database", database_url, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == code, done.stderr
        return json.loads(done.stdout)

    return run


def test_a_site_is_kept_and_found_at_the_right_place(
    site: tuple[Path, str, list[tuple[str, int]]], kept: Callable[..., Any]
) -> None:
    folder, root, requests = site
    added = kept("add", root, "--name", "tern")
    assert added["counts"]["new"] == 3
    assert (added["counts"]["gone"], added["counts"]["dead_links"]) == (0, 1)
    assert added["counts"]["skipped"] == 1  # robots.txt forbids it
    assert "/secret/" not in [path for path, _ in requests]

    hit = kept("search", "pool_size", "connections")["hits"][0]
    assert hit["url"] == f"{root}guide/pool.html#limits"
    assert hit["headings"] == ["The pool", "Limits of the pool"]
    assert "NAVIGATION" not in kept("read", f"{root}guide/pool.html")["markdown"]
    assert kept("search", "heron")["hits"][0]["title"] == "Notes"

    requests.clear()
    again = kept("refresh", "tern")
    assert again["counts"]["unchanged"] == 3
    assert [code for path, code in requests if path in ("/", "/guide/pool.html", "/guide/notes.md")] == [304] * 3

    _write(
        folder, "index.html", "Tern", "Rewritten.", '<a href="guide/pool.html">The pool</a> <a href="new.html">new</a>'
    )
    _write(folder, "new.html", "News", "A kittiwake arrived.")
    changed = kept("refresh", "tern", "--full")
    assert (changed["counts"]["changed"], changed["counts"]["new"]) == (1, 1)
    assert kept("search", "kittiwake")["hits"][0]["url"] == f"{root}new.html#top"
    assert kept("diff", "tern", "2", "3")["added"] == [f"{root}new.html"]


def _write(folder: Path, name: str, title: str, text: str, more: str = "") -> None:
    (folder / name).write_text(PAGE.format(title=title, text=text, more=more))
