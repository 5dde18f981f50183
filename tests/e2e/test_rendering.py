"""Pages that are empty until their scripts have run, in a real Chromium whose requests are all served by the test."""

import asyncio
import json
import os
import re
import select
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kept.model.source import Access, Header, RenderMode, SourceKind, SourceSettings, host_and_port
from kept.origins.web.devtools import BROWSER_PROGRAMS
from kept.runtime.runtime import open_runtime
from kept.service import documents, jobs, sources
from kept.settings import load

HTML, TEXT, SCRIPT, ELSEWHERE = "text/html", "text/markdown", "text/javascript", "redirect"


@pytest.fixture(autouse=True)
def _chromium() -> None:
    if not any(map(shutil.which, BROWSER_PROGRAMS)):
        pytest.skip("there is no Chromium")


@dataclass
class Site:
    """Pages on loopback, and the requests for them."""

    root: str
    pages: dict[str, tuple[str, str]]
    requests: list[str] = field(default_factory=list)
    secrets: dict[str, str | None] = field(default_factory=dict)  # path -> the token it was asked with

    def shell(self, path: str, script: str) -> None:
        self.pages[path] = (HTML, SHELL.format(script=script))


SHELL = """<!doctype html><title>Tern</title><body><div id="app">Loading …</div>
<noscript>Please enable JavaScript.</noscript><script>{script}</script>"""
SHOW = "const show = html => document.getElementById('app').innerHTML = html;"


@contextmanager
def serve_site() -> Iterator[Site]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            site.requests.append(self.path)
            site.secrets[self.path] = self.headers.get("X-Token")
            found = site.pages.get(self.path)
            body = (found[1] if found else "nothing here").encode()
            self.send_response(302 if found and found[0] == ELSEWHERE else 200 if found else 404)
            self.send_header("Location", found[1] if found and found[0] == ELSEWHERE else "")
            self.send_header("Content-Type", found[0] if found else "text/plain")
            self.send_header("Content-Length", str(len(body)))
            self.send_header("ETag", '"always-the-same"')
            self.end_headers()
            with suppress(ConnectionError):  # the client has closed the connection
                self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    site = Site(f"http://127.0.0.1:{server.server_port}/", {})
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield site
    finally:
        server.shutdown()
        server.server_close()


@pytest.fixture
def site() -> Iterator[Site]:
    with serve_site() as site:
        yield site


@pytest.fixture
def database(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/kept.db"


@pytest.fixture
def kept(database: str) -> Callable[..., Any]:
    def run(*arguments: str, env: dict[str, str] | None = None) -> Any:
        command = [sys.executable, "-m", "kept", "--json", "--database", database, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100, env=env)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout)

    return run


def crawled(database: str, site: Site, **access: Any) -> dict[str, tuple[str, str, str]]:
    """Crawl a site with these settings. Returns path -> outcome, reason, Markdown."""

    async def crawl() -> dict[str, tuple[str, str, str]]:
        settings = SourceSettings(access=Access(allowed=(host_and_port(site.root),), **access))
        async with open_runtime(
            load(environment={"TOKEN": "quite-secret-token"}, folder=Path("/"), database=database)
        ) as runtime:
            db = runtime.db
            source, _ = await sources.get_or_create_source(
                db, root=site.root, kind=SourceKind.WEB, name="tern", settings=settings
            )
            job = await runtime.worker_host.run_job(await jobs.request_crawl(db, source.label))
            assert job.status == "completed"
            ledger = {}
            for path, (outcome, reason) in _ledger(database).items():
                is_kept = outcome in ("new", "changed", "unchanged")
                page = await documents.read_document(db, site.root + path[1:]) if is_kept else None
                ledger[path] = (outcome, reason, page.markdown if page else "")
            return ledger

    return asyncio.run(crawl())


def _ledger(database: str) -> dict[str, tuple[str, str]]:
    import sqlite3

    with sqlite3.connect(database.removeprefix("sqlite:///")) as db:
        rows = db.execute("SELECT url, outcome, coalesce(reason, '') FROM frontier").fetchall()
    return {url[url.index("/", 8) :]: (outcome, reason) for url, outcome, reason in rows}


ROUTER = """
async function go() {
    const [path, query] = location.hash.replace(/^#/, '').split('?');
    const text = await (await fetch('.' + (path || '/').replace(/\\/$/, '/README') + '.md')).text();
    document.getElementById('app').innerHTML = '<a href="#/">home</a> <a href="#/gulls/eggs">eggs</a><main>' +
        text.replace(/^## (\\w+)$/gm, '<h2 id="$1">$1</h2>').replace(/^# (.+)$/gm, '<h1>$1</h1>') + '</main>';
}
addEventListener('hashchange', go); go();"""


def test_pages_and_routes_are_kept_as_rendered(site: Site, kept: Callable[..., Any]) -> None:
    site.shell(
        "/",
        SHOW + "fetch('text.json').then(r => r.json()).then(t => show(`<main><h1 id=pool>${t.title}</h1>"
        "<p>${t.text}</p><a href=next>next</a> <a href=birds/>birds</a></main>`));",
    )
    site.pages["/text.json"] = ("application/json", '{"title": "The pool", "text": "Herons wait in a pool."}')
    site.pages["/next"] = (HTML, "<title>Next</title><h1>Next</h1><p>A plain page.</p>")
    # Three routes: birds/, birds/#/gulls, birds/#/gulls/eggs.
    site.pages["/birds/"] = (HTML, '<title>Birds</title><div id="app">Wait</div><script src="router.js"></script>')
    site.pages["/birds/router.js"] = (SCRIPT, ROUTER)
    site.pages["/birds/README.md"] = (TEXT, '# Birds\n<p>Of the sea.</p><a href="#/gulls?id=food">What they eat</a>')
    site.pages["/birds/gulls.md"] = (TEXT, "# Gulls\n## food\n<p>Chips.</p>")
    site.pages["/birds/gulls/eggs.md"] = (TEXT, "# Eggs\n<p>Three of them, speckled.</p>")

    counts = kept("add", site.root, "--name", "tern")["counts"]
    assert (counts["new"], counts["failed"]) == (5, 0)
    assert site.requests.count("/") == 1, "the browser was given what the crawl had fetched"
    assert site.requests.count("/birds/router.js") == 1, "the pages of a site share their scripts"
    hit = kept("search", "chips")["hits"][0]
    assert hit["url"] == f"{site.root}birds/#/gulls?id=food"
    assert kept("read", hit["url"])["markdown"].startswith("## food\n\nChips.")
    assert kept("read", f"{site.root}birds/#/gulls/eggs")["title"] == "Eggs"

    site.pages["/text.json"] = ("application/json", '{"title": "The pool", "text": "Egrets wait in a pool."}')
    counts = kept("refresh", "tern")["counts"]
    assert (counts["unchanged"], counts["changed"]) == (4, 1), "the validators of an empty page say nothing"


ATTACK = (
    SHOW
    + """
const done = [], told = (what, how) => done.push(`<p>${what} ${how}</p>`);
const reach = url => fetch(url, {mode: 'no-cors'}).then(() => told(url, 'reached'), () => told(url, 'refused'));
const socket = url => new Promise(r => {
    const s = new WebSocket(url); s.onopen = () => r(told(url, 'reached')); s.onerror = () => r(told(url, 'refused'));
});
const peer = new RTCPeerConnection({iceServers: [{urls: 'stun:127.0.0.1:<UDP>'}]});
peer.createDataChannel('x'); peer.createOffer().then(o => peer.setLocalDescription(o));
for (const tag of ['img', 'iframe', 'script', 'video', 'embed']) {
    const made = document.createElement(tag); made.src = 'http://127.0.0.1:<TCP>/' + tag; document.body.append(made);
}
for (const rel of ['prefetch', 'preconnect', 'dns-prefetch', 'stylesheet', 'icon', 'preload']) {
    const made = document.createElement('link'); made.rel = rel; made.as = 'fetch';
    made.href = 'http://127.0.0.1:<TCP>/' + rel; document.head.append(made);
}
navigator.sendBeacon('http://127.0.0.1:<TCP>/beacon', 'x');
window.open('http://127.0.0.1:<TCP>/popup');
new EventSource('http://127.0.0.1:<TCP>/events');
new Worker(URL.createObjectURL(new Blob(["fetch('http://127.0.0.1:<TCP>/worker'); new WebSocket('ws://127.0.0.1:<TCP>/w')"])));
try { navigator.serviceWorker.register('/worker.js'); } catch {}
alert('hello'); confirm('hello?'); localStorage.been = 'here';
Promise.all([
    reach('http://127.0.0.1:<TCP>/'), reach('http://localhost:<TCP>/'), reach('http://169.254.169.254/latest/'),
    reach('http://[::1]:<TCP>/'), reach('http://0.0.0.0:<TCP>/'), reach('file:///etc/passwd'),
    reach('/other'), fetch('/writes', {method: 'POST', body: 'x'}).catch(() => told('POST', 'refused')),
    socket('ws://127.0.0.1:<TCP>/'), socket('wss://localhost:<TCP>/'), socket('ws:' + location.host + '/own'),
]).then(() => show('<h1>Done</h1>' + done.join('')));"""
)


HOSTILE = {
    "hoarding": "const all = []; while (true) all.push(new Uint8Array(1e7).fill(7));",
    "empty": "console.log('nothing')",
    "lying": "Object.defineProperty(Element.prototype, 'outerHTML', {get() { return {length: 'x'} }})",
    "vanishing": "document.documentElement.remove()",
    "sent": "location.replace('/landed')",
    "telling": SHOW + "fetch('/echo').then(r => r.text()).then(said => fetch('/large').catch(e => show("
    "`<h1>Told</h1><p>One tern says ${said} to all who listen, and ${e} to nobody.</p>`)))",
    "sending": "fetch('/echo').then(r => r.text()).then(said => location.replace('/landed?by=' + said))",
}


def test_hostile_scripts_fail_alone_and_cannot_bypass_the_gate(site: Site, database: str) -> None:
    site.pages["/"] = (HTML, "<h1>Terns</h1>" + "".join(f"<a href={name}>{name}</a> " for name in ("attack", *HOSTILE)))
    site.pages["/other"] = (TEXT, "its own site")
    site.pages["/landed"] = (HTML, "<h1>Landed</h1><p>On a rock.</p>")
    site.pages["/echo"] = (TEXT, "quite-secret-token")
    site.pages["/large"] = (TEXT, "x" * 9_000_000)
    for name, script in HOSTILE.items():
        site.shell(f"/{name}", script)
    with socket.create_server(("127.0.0.1", 0)) as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        udp.bind(("127.0.0.1", 0))
        ports = {"<TCP>": str(tcp.getsockname()[1]), "<UDP>": str(udp.getsockname()[1])}
        site.shell("/attack", re.sub("<TCP>|<UDP>", lambda found: ports[found[0]], ATTACK))
        token = Header(name="X-Token", value="env:TOKEN")
        found = crawled(database, site, headers=(token,))
        assert select.select([tcp, udp], [], [], 0)[0] == [], "nothing has arrived"

    markdown = found["/attack"][2]
    assert markdown.count("refused") == 10, found["/attack"]
    assert [line for line in markdown.splitlines() if "reached" in line] == ["/other reached"]
    assert not {"/writes", "/own", "/worker.js"} & {*site.requests}, "a page that is read writes nothing"
    assert site.secrets["/other"] == "quite-secret-token", "the page's own site is asked as the crawl asks it"

    for name in ("hoarding", "empty", "lying", "vanishing"):
        assert found[f"/{name}"][:2] == ("failed", "an empty page: its scripts brought nothing")
    assert found["/sent"][:2] == ("skipped", f"redirects to {site.root}landed")
    assert found["/landed"][0] == "new"
    assert r"One tern says \*\*\* to all who listen, and TypeError" in found["/telling"][2]
    assert found["/sending"][:2] == ("skipped", f"its scripts lead to {site.root}landed?by=***")


def test_an_endless_script_fails_after_its_time_limit(site: Site, database: str) -> None:
    site.pages["/"] = (HTML, "<h1>Terns</h1><a href=endless>endless</a>")
    site.shell("/endless", "while (true);")
    found = crawled(database, site, whole_seconds=1.5)
    assert found["/endless"][:2] == ("failed", "its scripts did not come to rest within 1.5 s")
    assert found["/"][0] == "new"


def test_a_source_can_always_or_never_render(site: Site, tmp_path: Path) -> None:
    site.pages["/"] = (
        HTML,
        "<h1>Terns</h1><p id=app>Before.</p><a href=shell>s</a> <a href=hop>h</a>"
        f"<script>{SHOW}show('After.')</script>",
    )
    site.pages["/hop"] = (ELSEWHERE, "/deep/page")
    site.pages["/deep/page"] = (HTML, "<div id=app></div><script src=words.js></script>")
    site.pages["/deep/words.js"] = (SCRIPT, f"{SHOW}show('<h1>Deep</h1><p>Relative to where it is.</p>')")
    site.shell("/shell", SHOW + "show('<p>Words that were brought by a script, some of them.</p>')")
    never = crawled(f"sqlite:///{tmp_path}/never.db", site, render=RenderMode.NEVER)
    assert "Before." in never["/"][2]
    assert never["/shell"][0] == "failed"
    assert "settings" in never["/shell"][1]
    always = crawled(f"sqlite:///{tmp_path}/always.db", site, render=RenderMode.ALWAYS)
    assert "After." in always["/"][2]
    assert "brought by a script" in always["/shell"][2]
    assert "Relative to where it is." in always["/hop"][2]


def test_without_a_browser_the_page_fails_with_what_to_install(
    site: Site, database: str, kept: Callable[..., Any]
) -> None:
    site.pages["/"] = (HTML, "<h1>Terns</h1><p>A plain page.</p><a href=shell>shell</a>")
    site.shell("/shell", SHOW + "show('words')")
    added = kept("add", site.root, "--name", "tern", env=os.environ | {"PATH": "/nowhere"})
    assert (added["counts"]["new"], added["counts"]["failed"]) == (1, 1)
    assert "install Chromium" in _ledger(database)["/shell"][1]
