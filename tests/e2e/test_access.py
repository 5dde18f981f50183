"""Options for accessing a site, through the command line: secrets, regions, lists, and previews."""

import asyncio
import base64
import json
import shutil
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from socket import gaierror, socket
from uuid import uuid4

import pytest

from kept.errors import SourceUnavailable
from kept.model.frontier import Fetched, FrontierEntry
from kept.model.source import Access, Header, Scope, SourceSettings
from kept.origins.web import make_web_origin
from kept.origins.web.soft_404 import PROBE_NAME
from tests.e2e.test_cli import Kept

pytestmark = pytest.mark.usefixtures("checked_databases")

TOKEN = "tok-9f2c41d07b6e4a58"


@dataclass
class Site:
    """A site on loopback: its pages, and the requests it got."""

    pages: dict[str, tuple[int, dict[str, str], str]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    before: Callable[[str], None] = lambda path: None
    server: ThreadingHTTPServer = field(init=False)

    @property
    def port(self) -> int:
        return self.server.server_port

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.port}/"

    def page(self, path: str, body: str, *, kind: str = "text/html", status: int = 200, **headers: str) -> None:
        self.pages[path] = (status, {"Content-Type": kind} | headers, body)

    def seen(self, header: str) -> set[str | None]:
        return {headers.get(header) for _, headers in self.requests}


@pytest.fixture
def make_site() -> Iterator[Callable[[], Site]]:
    servers = []

    def make() -> Site:
        site = Site()

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                path = self.path.removeprefix(site.root.rstrip("/"))  # a proxy is asked for all of it
                site.requests.append((path, dict(self.headers)))
                site.before(path)
                status, headers, body = site.pages.get(path, (404, {}, ""))
                sent = body.replace("{authorization}", self.headers.get("Authorization", "nobody")).encode()
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value.replace("{authorization}", self.headers.get("Authorization", "")))
                self.send_header("Content-Length", str(len(sent)))
                self.end_headers()
                self.wfile.write(sent)

            def log_message(self, format: str, *args: object) -> None: ...

        server = site.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return site

    yield make
    for server in servers:
        server.shutdown()
        server.server_close()


@pytest.fixture
def site(make_site: Callable[[], Site]) -> Site:
    site = make_site()
    site.page("/", '<title>Home</title><main><h1>Home</h1><p>The heron rests.</p><a href="guide.html">guide</a></main>')
    site.page(
        "/guide.html",
        '<main><h1 id="g">Guide</h1><p>The tern flies.</p><div class="ad"><p>Buy a gull.</p></div>'
        '<article><h2 id="part">Part</h2><p>Only this.</p></article></main>'
        '<a href="/lost.html">lost</a> <a href="/pic.png">pic</a> <a href="http://127.0.0.1:9/">far</a>',
    )
    return site


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    return Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")


def secrets_file(kept: Kept) -> Path:
    return kept.folder / ".local/share/kept/secrets.json"


def files_with(folder: Path, *texts: str) -> set[str]:
    wanted = [text.encode() for text in texts]
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)) for path in files if any(text in path.read_bytes() for text in wanted)}


def command_lines() -> str:
    """Return the command lines of all processes of this machine."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace"))
        except OSError:
            continue  # it has ended
    return "\n".join(found)


# Secrets -------------------------------------------------------------------------------------------------------------


def test_a_token_is_sent_to_its_site_only(kept: Kept, site: Site, make_site: Callable[[], Site]) -> None:
    token = f"tok-{uuid4().hex}"  # no other test has it in a command line
    other = make_site()
    other.page("/", "<p>elsewhere</p>")
    site.page("/robots.txt", "", status=302, Location=f"{other.root}robots.txt")
    site.page(
        "/",
        '<h1>Home</h1><a href="/echo.html">echo</a> <a href="/away">away</a> <a href="/trick">trick</a> '
        '<a href="/token/{authorization}">link</a>',
    )
    site.page("/echo.html", "<h1>Echo</h1><p>You said {authorization}, dear reader.</p>")
    site.page("/away", "", status=302, Location=other.root)
    site.page("/trick", "", status=301, Location="/token?t={authorization}")
    lines = []
    site.before = lambda path: lines.append(command_lines()) if path == "/echo.html" else None
    kept.environment["SITE_TOKEN"] = token

    header = ("--header", "Authorization: env:SITE_TOKEN")
    runs = [
        kept("add", site.root, "--name", "wiki", *header, "--ignore-robots", "--verbose", "--json"),
        kept("show", "wiki", "--json", "--verbose"),
        kept("show", "wiki"),
        kept("why", "wiki", "--json"),
        kept("read", f"{site.root}echo.html"),
        kept("refresh", "wiki", "--full", "--verbose"),
        kept("try", f"{site.root}echo.html", *header, "--ignore-robots", "--verbose"),
        kept("add", site.root, "--dry-run", *header, "--ignore-robots"),
        kept("export", str(kept.folder / "exported"), "--tree"),
    ]
    assert [run.code for run in runs] == [0] * len(runs), runs
    assert files_with(kept.folder / "exported", "dear reader"), "something was exported"
    assert site.seen("Authorization") == {token}
    assert token not in json.dumps(other.requests)
    assert "kept.extract.reader_pool.process" in "".join(lines), "a reader was running"
    assert token not in "".join(lines)
    assert token not in "".join(run.out + run.err for run in runs)
    assert r"You said \*\*\*, dear reader." in runs[4].out
    assert files_with(kept.folder, token) == set()
    assert "env:SITE_TOKEN" in runs[1].out

    del kept.environment["SITE_TOKEN"]
    failed = kept("refresh", "wiki", "--json")
    assert failed.code == 1
    assert "The environment variable SITE_TOKEN is not set" in json.loads(failed.out)["error"]
    assert kept.json("show", "wiki")["generation"] == 2, "what was active stays active"


@pytest.mark.parametrize("by", ["header", "cookie", "login"])
def test_a_secret_that_is_typed_is_stored_in_the_secrets_file_only(kept: Kept, site: Site, by: str) -> None:
    basic = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    sent = {"header": f"Bearer {TOKEN}", "cookie": f"sid={TOKEN}", "login": f"Basic {basic}"}[by]
    name = "Cookie" if by == "cookie" else "Authorization"
    site.page("/", f"<h1>Home</h1><p>{sent}</p>")
    root = site.root.replace("://", f"://me:{TOKEN}@") if by == "login" else site.root
    options = {"header": ["--header", f"{name}: {sent}"], "cookie": ["--cookie", sent], "login": []}[by]
    runs = [
        kept("add", root, "--name", "wiki", *options, "--verbose", "--json"),
        kept("list", "--json"),
        kept("show", "wiki"),
        kept("refresh", "wiki", "--verbose"),
        kept("add", root, *options),
    ]
    assert [run.code for run in runs] == [0] * len(runs), runs
    assert site.seen(name) == {sent}
    output = "".join(run.out + run.err for run in runs)
    assert TOKEN not in output
    assert basic not in output
    assert f"{name} (secret:{name.lower()}-" in runs[2].out
    assert files_with(kept.folder, TOKEN, basic) == {".local/share/kept/secrets.json"}
    assert secrets_file(kept).stat().st_mode & 0o777 == 0o600
    assert list(json.loads(secrets_file(kept).read_text()).values()) == [sent], "the second one replaced the first"

    assert kept("remove", "wiki").code == 0
    assert files_with(kept.folder, TOKEN, basic) == set()


def test_a_secrets_file_that_others_may_read_is_refused(kept: Kept, site: Site) -> None:
    kept("add", site.root, "--name", "wiki", "--cookie", f"sid={TOKEN}")
    secrets_file(kept).chmod(0o644)
    site.requests.clear()
    refused = kept("refresh", "wiki")
    assert refused.code == 1
    assert f"Run: chmod 600 '{secrets_file(kept)}'" in refused.err
    assert site.requests == []
    assert kept("set", "wiki", "--cookie", "sid=other").code == 1
    secrets_file(kept).chmod(0o600)
    assert kept("refresh", "wiki").code == 0


def test_a_call_that_fails_leaves_no_secret_behind(kept: Kept, site: Site) -> None:
    kept("add", site.root, "--name", "wiki")
    other = kept.folder / "docs"
    other.mkdir()
    (other / "a.md").write_text("# A\n")
    assert kept("add", str(other), "--name", "wiki", "--header", f"X-Key: {TOKEN}").code == 2
    assert kept("add", site.root, "--header", f"no-colon {TOKEN}").code == 2
    assert kept("add", "http://127.0.0.1:1/", "--header", f"X-Key: {TOKEN}").code == 1
    assert files_with(kept.folder, TOKEN) == set()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--header", TOKEN], "--header should look like 'Name: value'"),
        (["--header", f"Host: {TOKEN}"], "--header cannot be Host"),
        (["--header", f"X-Key: a\n{TOKEN}"], "has line breaks or control characters"),
        (["--cookie", f"{TOKEN}\x01"], "has line breaks or control characters"),
        (["--proxy", f"socks://{TOKEN}"], "The proxy should be a URL such as http://"),
        (["--proxy", f"http://me:{TOKEN}@[:1"], "The proxy should be a URL such as http://"),
        (["--ca-file", "nothing.pem"], "nothing.pem cannot be read"),
        (["--header", "X-Key: secret:theirs"], "is how Kept itself refers to a secret"),
        (["--select", "[["], "'[[' is not a CSS selector."),
        (["--drop", "main >"], "'main >' is not a CSS selector."),
        (["--render", "perhaps"], "--render should be auto, never or always"),
        (["--scope", "ftp:x"], "as a scope"),
    ],
)
def test_an_invalid_setting_is_refused_at_once(kept: Kept, site: Site, arguments: list[str], sentence: str) -> None:
    run = kept("add", site.root, *arguments)
    assert sentence in run.sentence
    assert run.code == 2
    assert TOKEN not in run.err
    assert site.requests == []
    assert not (kept.folder / "kept.db").exists()


def test_headers_are_not_sent_to_another_origin_in_scope(site: Site, make_site: Callable[[], Site]) -> None:
    other = make_site()
    other.page("/page.html", "<h1>Other</h1>")
    site.page("/away", "", status=302, Location=f"{other.root}page.html")
    settings = SourceSettings(
        scope=Scope(within=(site.root, other.root)),
        access=Access(
            headers=(Header(name="Authorization", value=TOKEN), Header(name="Cookie", value=f"sid={TOKEN}")),
            allowed=(f"127.0.0.1:{site.port}", f"127.0.0.1:{other.port}"),
        ),
    )

    async def visit() -> object:
        origin = make_web_origin(site.root, settings)
        try:
            entry = FrontierEntry(url=f"{site.root}away", depth=0, attempts=0, reached=True, base_version=None)
            return await origin.visit(entry, conditional=False)
        finally:
            await origin.close()

    assert isinstance(asyncio.run(visit()), Fetched)
    assert site.seen("Authorization") == {TOKEN}
    assert "/page.html" in [path for path, _ in other.requests]
    assert other.seen("Authorization") == other.seen("Cookie") == {None}


def test_a_proxy_is_used_and_its_password_is_hidden(kept: Kept, site: Site, make_site: Callable[[], Site]) -> None:
    proxy = make_site()
    proxy.pages = {f"{site.root.rstrip('/')}{path}": page for path, page in site.pages.items()}
    run = kept("add", site.root, "--name", "wiki", "--proxy", f"http://me:{TOKEN}@127.0.0.1:{proxy.port}")
    assert run.code == 0, run.err
    assert (
        "the proxy of" in kept("add", site.root, "--version", "2", "--proxy", f"http://me:{TOKEN}@127.0.0.1:1").sentence
    )
    assert site.requests == []
    assert kept.json("show", "wiki")["documents"] == 2
    login = base64.b64encode(f"me:{TOKEN}".encode()).decode()
    assert proxy.seen("Proxy-Authorization") == {f"Basic {login}"}
    assert files_with(kept.folder, TOKEN, login) == {".local/share/kept/secrets.json"}


def test_a_private_certificate_is_trusted_where_it_is_named(kept: Kept, site: Site) -> None:
    if shutil.which("openssl") is None:
        pytest.skip("openssl is not installed")
    own, key = kept.folder / "own.pem", kept.folder / "key.pem"
    subject = ["-subj", "/CN=docs", "-addext", "subjectAltName=IP:127.0.0.1"]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-keyout", key, "-out", own]
    subprocess.run([*command, *subject], check=True, capture_output=True)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(own, key)
    site.server.socket = tls.wrap_socket(site.server.socket, server_side=True)
    root = site.root.replace("http:", "https:")
    assert "certificate is not trusted" in kept("try", root, "--ignore-robots").sentence
    assert kept.json("try", root, "--ca-file", "own.pem")["title"] == "Home"
    added = kept.json("add", root, "--name", "wiki", "--ca-file", "own.pem")
    assert added["counts"]["new"] == 2
    assert kept.json("show", "wiki")["settings"]["access"]["ca_file"] == str(own)


# Settings ------------------------------------------------------------------------------------------------------------


def test_set_replaces_what_it_names_and_leaves_the_rest(kept: Kept, site: Site) -> None:
    kept("add", site.root, "--name", "wiki", "--tag", "birds", "--tag", "work", "--exclude", "x*", "--render", "never")
    kept("set", "wiki", "--header", "X-One: env:ONE", "--header", "X-Two: env:TWO")
    changed = kept.json("set", "wiki", "--header", "X-One:", "--include", "g*", "--exclude", "", "--max-pages", "9")
    settings = changed["settings"]
    assert [header["name"] for header in settings["access"]["headers"]] == ["X-Two"]
    assert (settings["scope"]["include"], settings["scope"]["exclude"]) == (["g*"], [])
    assert (settings["limits"]["max_pages"], settings["access"]["render"]) == (9, "never")
    assert changed["tags"] == ["birds", "work"]
    assert "#birds #work" in kept("list").out
    assert "birds, work" in kept("show", "wiki").out
    assert kept.json("set", "wiki", "--tag", "")["tags"] == []
    assert kept("set", "wiki").code == 2
    assert kept("set", "nothing", "--tag", "x").code == 3
    assert "wiki is set" in kept("set", "wiki", "--select", "article").out


def test_a_region_decides_what_is_read_and_a_new_one_reads_again(kept: Kept, site: Site) -> None:
    guide = f"{site.root}guide.html"
    kept("add", site.root, "--name", "wiki", "--drop", ".ad")
    assert "gull" not in kept("read", guide).out
    assert "The tern flies." in kept("read", guide).out
    kept("set", "wiki", "--select", "article", "--drop", "")
    kept("refresh", "wiki")
    assert kept("read", guide).out == "## Part\n\nOnly this.\n"
    assert "heron" in kept("read", site.root).out, "where nothing is selected, the reader decides"
    assert kept.json("search", "only this")["hits"][0]["url"] == f"{guide}#part"


def test_a_list_of_pages_is_kept_and_nothing_else(kept: Kept, site: Site, make_site: Callable[[], Site]) -> None:
    other = make_site()
    other.page("/one.html", f'<h1>One</h1><p>A puffin.</p><a href="/two.html">two</a> <a href="{site.root}">home</a>')
    other.page("/two.html", "<h1>Two</h1>")
    file = kept.folder / "urls.txt"
    file.write_text(f"# birds\n{site.root}guide.html\n\n{other.root}one.html\n")
    assert kept.json("add", "@urls.txt")["counts"]["new"] == 2
    assert kept.json("search", "puffin")["hits"][0]["url"].startswith(f"{other.root}one.html")
    assert {path for path, _ in other.requests} == {"/robots.txt", f"/{PROBE_NAME}", "/one.html"}

    file.write_text(f"{other.root}one.html\n{other.root}two.html\n")
    again = kept.json("add", "@urls.txt")
    assert (again["source"], again["generation"], again["counts"]["new"]) == ("urls", 2, 1)
    assert kept.json("show", "urls")["documents"] == 2
    assert kept("read", f"{site.root}guide.html").code == 3

    file.write_text(f"{other.root}one.html\nnot a url\n")
    assert "Line 2 of " in kept("add", "@urls.txt").sentence
    file.write_text(f"{site.root.replace('://', f'://me:{TOKEN}@')}\n")
    refused = kept("add", "@urls.txt")
    assert "Line 1 of " in refused.sentence
    assert TOKEN not in refused.err
    file.write_text("# nothing\n")
    assert "has no URL in it" in kept("add", "@urls.txt").sentence
    assert kept("add", "@nowhere.txt").code == 3
    file.write_text(f"{site.root}\n{other.root}\n")
    assert "is for one site only" in kept("add", "@urls.txt", "--cookie", "a=b").sentence


# A look before anything is kept --------------------------------------------------------------------------------------


def test_a_dry_run_lists_what_would_be_included_and_why_the_rest_would_not(kept: Kept, site: Site) -> None:
    site.page("/robots.txt", "User-agent: *\nDisallow: /private/\n", kind="text/plain")
    listed = "".join(f"<url><loc>{site.root}{name}</loc></url>" for name in ("a.html", "private/b.html", "logo.svg"))
    site.page("/sitemap.xml", f"<urlset>{listed}</urlset>", kind="application/xml")
    site.page("/llms.txt", f"[c]({site.root}c.md) [d](https://elsewhere.test/)", kind="text/plain")
    found = kept.json("add", site.root, "--dry-run", "--exclude", "guide*")
    assert sorted(found["included"]) == sorted(f"{site.root}{name}" for name in ("", "a.html", "c.md"))
    assert {one["url"].removeprefix(site.root): one["reason"] for one in found["left_out"]} == {
        "private/b.html": "robots.txt forbids it",
        "logo.svg": "not a page, by its name",
        "guide.html": "left out by the source's patterns",
        "https://elsewhere.test/": "outside the source's scope",
    }
    dry_run = kept("add", site.root, "--dry-run", "--exclude", "guide*")
    assert f"{site.root}: 3 pages to begin with\n" in dry_run.out
    assert "robots.txt forbids it: 1 URL\n" in dry_run.out
    assert dry_run.err == ""
    assert not (kept.folder / "kept.db").exists()


def test_a_dry_run_of_a_long_list_is_bounded(kept: Kept, site: Site) -> None:
    listed = "".join(f"<url><loc>{site.root}{number}.html</loc></url>" for number in range(5000))
    site.page("/sitemap.xml", f"<urlset>{listed}</urlset>", kind="application/xml")
    found = kept.json("add", site.root, "--dry-run")
    assert found["more"] is True
    assert len(found["included"]) <= 2000


def test_a_page_is_tried_without_a_database(kept: Kept, site: Site) -> None:
    found = kept.json("try", f"{site.root}guide.html", "--drop", ".ad")
    assert (found["title"], found["http_status"]) == ("Guide", 200)
    assert "tern" in found["markdown"]
    assert "gull" not in found["markdown"]
    assert [(one["heading"], one["anchor"]) for one in found["sections"]] == [("Guide", "g"), ("Part", "part")]
    assert {one["url"].removeprefix(site.root): one["reason"] for one in found["links"]} == {
        "lost.html": None,
        "pic.png": "not a page, by its name",
        "http://127.0.0.1:9/": "outside the source's scope",
    }
    shown = kept("try", f"{site.root}guide.html").out
    assert "Links: 1 in scope, 2 not" in shown
    assert "  Guide  #g\n" in shown
    (kept.folder / "notes.md").write_text("# Notes\n\nA kittiwake.\n")
    assert kept.json("try", "notes.md")["markdown"] == "# Notes\n\nA kittiwake."

    site.page("/robots.txt", "User-agent: *\nDisallow: /guide\n", kind="text/plain")
    assert "robots.txt forbids it" in kept("try", f"{site.root}guide.html").sentence
    assert kept("try", f"{site.root}lost.html").code == 3
    assert kept("try", "nothing.md").code == 3
    assert not (kept.folder / "kept.db").exists()


# Why -----------------------------------------------------------------------------------------------------------------


def test_why_explains_every_page_that_was_not_kept(kept: Kept, site: Site) -> None:
    kept("add", site.root, "--name", "wiki")
    lost = kept.json("why", f"{site.root}lost.html")
    shape = {"url", "outcome", "reason", "http_status", "attempts", "depth", "discovered_from", "visited_at"}
    assert lost.keys() >= shape
    assert (lost["source"], lost["outcome"], lost["http_status"], lost["depth"]) == ("wiki", "dead_link", 404, 2)
    assert lost["discovered_from"] == f"{site.root}guide.html"
    assert "dead link: 404 Not Found" in kept("why", f"{site.root}lost.html").out
    assert kept.json("why", site.root)["outcome"] == "new"

    ledger = kept.json("why", "wiki")
    assert (ledger["source"], ledger["not_kept"]) == ("wiki", 1)
    assert ledger["reasons"] == [
        {
            "outcome": "dead_link",
            "reason": "404 Not Found",
            "count": 1,
            "examples": [f"{site.root}lost.html"],
            "linked_from": {f"{site.root}lost.html": f"{site.root}guide.html"},
        }
    ]
    assert "1 dead link: 404 Not Found" in kept("why", "wiki").out

    for url, sentence in {
        f"{site.root}pic.png": "wiki does not have",
        f"{site.root}never.html": "nothing that its last crawl read leads there",
        "https://elsewhere.test/": "belongs to no source",
        "wikki": "Did you mean 'wiki'?",
    }.items():
        run = kept("why", url)
        assert sentence in run.sentence
        assert run.code == 3


# No server ----------------------------------------------------------------------------------------------------------


def test_an_unreachable_site_is_reported_at_once_and_not_added(kept: Kept) -> None:
    with socket() as unused:
        unused.bind(("127.0.0.1", 0))
        began = time.monotonic()
        run = kept("add", f"http://127.0.0.1:{unused.getsockname()[1]}/")
        took = time.monotonic() - began
    assert "cannot be reached: Connection refused. Check the address" in run.sentence
    assert run.code == 1
    assert took < 8, "it is not tried again and again"
    assert not (kept.folder / "kept.db").exists()


def test_an_unknown_host_name_is_reported_at_once() -> None:
    async def resolve_nothing(host: str, port: int) -> list[str]:
        raise gaierror(-2, "Name or service not known")

    async def knock() -> None:
        origin = make_web_origin("http://docs.test/", SourceSettings(), resolver=resolve_nothing)
        try:
            await origin.probe()
        finally:
            await origin.close()

    with pytest.raises(SourceUnavailable, match="its host name cannot be resolved"):
        asyncio.run(knock())


def test_a_refresh_survives_a_closed_connection(kept: Kept, site: Site) -> None:
    """The first connection of the refresh is closed; the request is repeated."""
    kept("add", site.root, "--name", "wiki", "--ignore-robots")
    down = [True]

    def closed(path: str) -> None:
        if path == "/guide.html" and down:
            down.clear()
            raise ConnectionAbortedError

    site.before = closed
    assert kept.json("refresh", "wiki", "--full")["counts"]["unchanged"] == 2
    assert not down


# ── Guards ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_trap_is_in_the_ledger_makes_the_generation_partial_and_can_be_lifted(kept: Kept, site: Site) -> None:
    site.page("/", '<main><h1>Home</h1><p>The heron rests.</p><a href="/a/a/a/page.html">again</a></main>')
    site.page("/a/a/a/page.html", "<main><h1>Again</h1><p>The same folder again.</p></main>")
    trap = f"{site.root}a/a/a/page.html"
    assert "It is partial: traps were not followed" in kept("add", site.root, "--name", "wiki").err
    why = kept.json("why", trap)
    assert (why["outcome"], why["reason"]) == ("skipped", "trap: its path repeats itself")
    assert "/a/a/a/page.html" not in [path for path, _ in site.requests], "it is refused without a request"
    kept("set", "wiki", "--no-traps")
    lifted = kept.json("refresh", "wiki")
    assert (lifted["counts"]["new"], lifted["partial"]) == (1, False)
    assert kept("read", trap).code == 0
    kept("set", "wiki", "--traps")
    removed = kept.json("refresh", "wiki")
    assert (removed["held"], removed["partial"], removed["counts"]["skipped"]) == (False, True, 1)
    assert kept("read", trap).code == 3
    kept("set", "wiki", "--not-a-trap", "a/a/*")
    assert kept.json("refresh", "wiki")["counts"]["new"] == 1
    assert "no trap: a/a/*" in kept("show", "wiki").out


def test_a_refresh_of_a_dead_host_says_so_early_gives_up_by_the_rule_and_fails(kept: Kept, site: Site) -> None:
    kept("add", site.root, "--name", "wiki")
    site.server.shutdown()
    site.server.server_close()
    kept.environment["KEPT_CRAWL__GIVE_UP_SECONDS"] = "1.5"
    started = time.monotonic()
    run = kept("refresh", "wiki")
    assert time.monotonic() - started < 20
    assert run.code == 1, run
    assert "does not answer: " in run.err
    assert "giving up after 1.5 s" in run.err
    assert "has not answered for 1.5 s" in run.err
    assert kept.json("jobs")["jobs"][0]["status"] == "failed"
    assert kept.json("search", "heron")["hits"], "the active generation stays"
