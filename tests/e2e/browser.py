"""A server of Kept, a browser, and a site that can be changed, for tests of the web pages.

with Server(database) as server, open_browser() as browser: …
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

import pytest
from playwright.sync_api import Browser, sync_playwright

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
]


@contextmanager
def open_browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("there is no chromium on this machine")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Server:
    """``kept serve`` on loopback; sources on private hosts are allowed."""

    database: str
    port: int = 0
    url: str = ""
    settings: Mapping[str, str] = field(default_factory=dict)

    def start(self) -> None:
        """Start the server, on the same port as before if it was started before."""
        allowed = {"KEPT_NETWORK__ALLOW_PRIVATE": "1"}
        self._process = subprocess.Popen(
            [sys.executable, "-m", "kept", "--database", self.database, "serve", "--port", str(self.port)],
            stderr=subprocess.PIPE,
            env=os.environ | allowed | dict(self.settings),
        )
        assert self._process.stderr is not None
        for line in self._process.stderr:
            if found := re.search(rb"(http://\S+?:(\d+))/", line):
                self.url, self.port = found[1].decode(), int(found[2])
                return
        raise AssertionError("it does not serve")

    def kill(self) -> None:
        self._process.kill()
        self._process.communicate()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        try:
            self._process.communicate(timeout=20)
        except subprocess.TimeoutExpired:
            self.kill()


def page(title: str, body: str) -> tuple[str, bytes]:
    text = f"<!doctype html><html><head><title>{title}</title></head><body><main><h1>{title}</h1>{body}</main>"
    return "text/html; charset=utf-8", text.encode()


def tern() -> dict[str, tuple[str, bytes]]:
    """Return a small manual that the test may change."""
    birds = ("avocet", "bittern", "curlew", "dunlin", "egret", "fulmar", "godwit", "heron")
    chapters = [f'<li><a href="/guide/{bird}.html">The {bird}</a>' for bird in birds]
    site = {
        f"/guide/{bird}.html": page(
            f"The {bird}",
            f"<p>The {bird} rests between flights. Its connections wait in a pool until somebody needs one, and a "
            f'connection that was idle for too long is closed. See <a href="/guide/pool.html#limits">limits</a>.</p>'
            f'<h2 id="life">Life of the {bird}</h2><p>It opens when it is asked to and closes by itself.</p>'
            f"<pre><code class='language-python'>bird = tern.open({bird!r})\nbird.rest(seconds=30)\n</code></pre>",
        )
        for bird in birds
    }
    site["/"] = page(
        "Tern",
        '<p>A database driver that rests between flights. Begin with <a href="/guide/pool.html">the pool</a>; '
        'then there is <a href="https://example.com/">somebody else</a>.</p>'
        f"<h2 id='chapters'>Chapters</h2><ul>{''.join(chapters)}</ul><p><a href='/lost.html'>a dead link</a></p>",
    )
    site["/guide/pool.html"] = pool("Twelve connections, unless pool_size says otherwise.")
    return site


def pool(limits: str) -> tuple[str, bytes]:
    return page(
        "The pool",
        '<p>Connections are dear, so they wait in a pool until needed. <a href="/">Home</a> has the rest.</p>'
        "<pre><code class='language-python'>with tern.pool(size=12) as pool:\n    bird = pool.take(timeout=30)\n"
        "    bird.fly(to='Greenland')\n</code></pre>"
        f'<h2 id="limits">Limits of the pool</h2><p>{limits}</p>'
        "<table><tr><th>setting</th><th>default</th></tr><tr><td>pool_size</td><td>12</td></tr>"
        "<tr><td>pool_timeout</td><td>30 seconds</td></tr></table>"
        "<p><img src='/pool.png' alt='A drawing of the pool'></p>"
        + "".join(f"<p>Paragraph {number} about waiting, resting and being ready again.</p>" for number in range(30))
        + '<h2 id="closing">Closing it</h2><p>A pelican closes the pool in the evening.</p>',
    )
