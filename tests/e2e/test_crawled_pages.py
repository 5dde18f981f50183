"""Metadata of pages (canonical URLs, robots directives …), through the command line, with a real server and crawl."""

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from kept.origins.web.soft_404 import PROBE_NAME
from kept.store import frontier, sources
from tests.factories import database_at, shown

WORDS = "<p>" + "The tern rests between flights, and its pool of connections rests with it. " * 8 + "</p>"


def page(title: str, text: str = WORDS, head: str = "") -> str:
    return f"<!doctype html><html><head><title>{title}</title>{head}</head><body><main><h1>{title}</h1>{text}</main>"


def links(*hrefs: str) -> str:
    return "".join(f'<p><a href="{href}">{href}</a></p>' for href in hrefs)


@dataclass
class Site:
    """A site: a page, a complete response, or nothing at each path."""

    root: str = ""
    pages: dict[str, str | tuple[int, dict[str, str], str]] = field(default_factory=dict)
    missing: tuple[int, dict[str, str], str] = (404, {}, "nothing here")
    requests: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, dict[str, str], str]:
        found = self.pages.get(path)
        if found is None:
            return self.missing if not path.endswith((".txt", ".xml")) else (404, {}, "")
        return (200, {}, found) if isinstance(found, str) else found


@pytest.fixture
def site() -> Iterator[Site]:
    site = Site()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            site.requests.append(self.path)
            status, headers, text = site.answer(self.path)
            body = text.replace("{path}", self.path).encode()
            self.send_response(status)
            kind = "text/markdown" if self.path.endswith((".md", ".txt")) else "text/html"
            for name, value in ({"Content-Type": kind, "Content-Length": str(len(body))} | headers).items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    site.root = f"http://127.0.0.1:{server.server_port}/"
    yield site
    server.shutdown()
    server.server_close()


@dataclass
class Kept:
    """The command line, and the state of the database after it."""

    database: str
    site: Site

    def __call__(self, *arguments: str, code: int = 0) -> Any:
        command = [sys.executable, "-m", "kept", "--json", "--database", self.database, *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=100)
        assert done.returncode == code, done.stderr + done.stdout
        return json.loads(done.stdout) if done.stdout else done.stderr

    def add(self, *options: str) -> dict[str, int]:
        counts: dict[str, int] = self("add", self.site.root, "--name", "docs", *options)["counts"]
        return counts

    @property
    def shown(self) -> set[str]:
        """Return the paths of the documents."""

        async def look() -> set[str]:
            async with database_at(self.database) as db:
                async with db.snapshot() as snapshot:
                    source = (await sources.all(snapshot))[0]
                return {url.removeprefix(self.site.root) for url in await shown(db, source)}

        return asyncio.run(look())

    def why(self, path: str) -> tuple[str, str | None]:
        """Return outcome and reason of each URL of the latest crawl."""

        async def look() -> tuple[str, str | None]:
            async with database_at(self.database) as db, db.snapshot() as snapshot:
                _, entry = (await frontier.ledger_entries(snapshot, self.site.root + path))[0]
                return entry.outcome, entry.reason

        return asyncio.run(look())


@pytest.fixture
def kept(tmp_path: Path, site: Site) -> Kept:
    return Kept(f"sqlite:///{tmp_path}/kept.db", site)


def test_noindex_and_nofollow_of_a_page_are_respected(kept: Kept, site: Site) -> None:
    site.pages = {
        "/": page("Home", links("hidden", "quiet", "header")),
        "/hidden": page("Hidden", WORDS + links("behind"), "<meta name=robots content=noindex>"),
        "/behind": page("Behind"),
        "/quiet": page("Quiet", WORDS + links("unseen"), "<meta name=kept content=nofollow>"),
        "/unseen": page("Unseen"),
        "/header": (200, {"X-Robots-Tag": "noindex"}, page("Header", WORDS + links("after"))),
        "/after": page("After"),
    }
    kept.add()
    assert kept.shown == {"", "behind", "quiet", "after"}
    assert kept.why("hidden") == kept.why("header") == ("skipped", "the page asks not to be kept")
    assert "/unseen" not in site.requests

    kept.add("--ignore-robots")
    kept("refresh", "docs", "--full")
    assert kept.shown == {"", "hidden", "behind", "quiet", "unseen", "header", "after"}


def test_a_noindex_root_still_leads_to_its_links(kept: Kept, site: Site) -> None:
    site.pages = {"/": page("Home", links("a"), "<meta name=robots content=noindex>"), "/a": page("A")}
    kept.add()
    assert kept.shown == {"a"}
    assert kept.add()["unchanged"] == 1


def test_a_page_with_a_meta_refresh_is_a_redirect(kept: Kept, site: Site) -> None:
    sends = "<meta http-equiv=refresh content='0; url=/new'>"
    site.pages = {
        "/": page("Home", links("stub", "slides", "held")),
        "/stub": page("Moved", "<p>It is <a href=/new>there</a> now.</p>", sends),
        "/new": page("New"),
        "/slides": page("Slides", head="<meta http-equiv=refresh content='5; url=/slide2'>"),
        "/slide2": page("Second slide"),
        "/held": page("Held", WORDS + "<p>and this page is like no other.</p>"),
    }
    kept.add()
    assert kept.shown == {"", "new", "slides", "slide2", "held"}
    assert kept.why("stub") == ("skipped", f"sends its reader to {site.root}new")

    site.pages["/held"] = page("Moved", "", "<meta http-equiv=refresh content='0; url=/elsewhere'>")
    site.pages["/elsewhere"] = page("Elsewhere", WORDS + "<p>rewritten on the way</p>")
    assert kept("refresh", "docs")["counts"]["moved"] == 1
    assert kept.shown == {"", "new", "slides", "slide2", "elsewhere"}
    assert len(kept("history", f"{site.root}elsewhere")["versions"]) == 2


def test_a_page_is_dropped_if_its_canonical_page_has_the_same_content(kept: Kept, site: Site) -> None:
    same = "<link rel=canonical href=/guide>"
    site.pages = {
        "/": page("Home", links("guide?print=1", "old", "abroad", "self")),
        "/guide?print=1": page("Guide", head=same),
        "/guide": page("Guide", head=same),
        "/old": page("Old guide", "<p>It says something else.</p>", same),
        "/abroad": page("Abroad", head="<link rel=canonical href=https://elsewhere.test/abroad>"),
        "/self": page("Self", head="<link rel=canonical href=/self>"),
    }
    counts = kept.add()
    assert kept.shown == {"", "guide", "old", "abroad", "self"}
    assert kept.why("guide?print=1") == ("skipped", f"a duplicate of {site.root}guide")
    assert (counts["new"], counts["skipped"]) == (5, 1)
    again = kept("refresh", "docs")
    assert not again["held"]
    assert (again["counts"]["new"], again["counts"]["skipped"]) == (0, 1)


def test_a_page_is_not_kept_as_markdown_too(kept: Kept, site: Site) -> None:
    twin = "<link rel=alternate type=text/markdown href=/raw/api>"
    site.pages = {
        "/": page("Home", links("guide", "api", "llms.txt", "llms-full.txt")),
        "/guide": page("Guide", WORDS + links("guide.md")),
        "/api": page("API", WORDS + links("/raw/api"), twin),
        "/llms.txt": "# Docs\n\n- [Guide](/guide.md)\n- [Home](/index.html.md)\n- [Only](/only.md)\n",
        "/llms-full.txt": "# Guide\n\nEverything\n",
        "/guide.md": "# Guide\n\nThe same in Markdown.\n",
        "/index.html.md": "# Home\n\nThe same in Markdown.\n",
        "/only.md": "# Only\n\nThis is there as Markdown only.\n",
        "/raw/api": "# API\n",
    }
    kept.add()
    assert kept.shown == {"", "guide", "api", "llms.txt", "only.md"}
    assert kept.why("guide.md") == ("skipped", f"a duplicate of {site.root}guide")
    assert kept.why("index.html.md") == ("skipped", f"a duplicate of {site.root}")
    assert "/raw/api" not in site.requests
    assert "/llms-full.txt" not in site.requests


def test_a_site_of_markdown_is_kept_as_markdown(kept: Kept, site: Site) -> None:
    site.pages = {
        "/llms.txt": "# Docs\n\n- [Guide](/guide.md)\n- [API](/api/index.md)\n",
        "/guide.md": "# Guide\n\nHow it is done.\n",
        "/api/index.md": "# API\n\nWhat there is.\n",
    }
    kept("add", f"{site.root}llms.txt", "--name", "docs")
    assert kept.shown == {"llms.txt", "guide.md", "api/index.md"}


def test_xhtml_frames_and_bases_are_read(kept: Kept, site: Site) -> None:
    xhtml = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><title>X</title><script src="x.js"/>'
        '</head><body><div id="top"/><h1 id="x">X</h1><p>A puffin in XHTML. <a href="based">more</a></p></body></html>'
    )
    site.pages = {
        "/": "<html><head><title>F</title></head><frameset cols='20%,*'><frame src=toc><frame src=x></frameset></html>",
        "/toc": page("Contents", links("x")),
        "/x": (200, {"Content-Type": "application/xhtml+xml"}, xhtml),
        "/based": page("Based", WORDS + links("leaf"), "<base href=/deep/>"),
        "/deep/leaf": page("Leaf"),
    }
    kept.add()
    assert kept.shown == {"toc", "x", "based", "deep/leaf"}
    assert kept.why("")[0] == "skipped", "a page of frames has no text of its own"
    assert kept("search", "puffin")["hits"][0]["url"] == f"{site.root}x#x"


def test_an_error_page_served_with_200_is_no_page(kept: Kept, site: Site) -> None:
    site.missing = (200, {}, page("Sorry", "<p>There is no {path} here.</p>" + links("/")))
    site.pages = {
        "/": page("Home", links("guide", "typo", "short")),
        "/guide": page("Guide"),
        "/short": page("S", "Yes"),
    }
    kept.add()
    assert kept.shown == {"", "guide", "short"}
    assert kept.why("typo") == ("skipped", "answers like a page that does not exist")
    assert site.requests.count(f"/{PROBE_NAME}") == 1

    del site.pages["/guide"]
    kept("refresh", "docs")
    assert kept.shown == {"", "guide", "short"}
    assert kept.why("guide") == ("failed", "answers like a page that does not exist")
    assert "tern rests" in kept("read", f"{site.root}guide")["markdown"]


def test_a_site_that_redirects_to_a_login_page_loses_no_documents(kept: Kept, site: Site) -> None:
    form = page("Log in", "<form><input name=u><input type=password name=p></form>")
    pages: dict[str, Any] = {f"/p{number}": page(f"P{number}", WORDS + f"<p>{number}</p>") for number in range(6)}
    site.pages = {"/": page("Home", links(*(path[1:] for path in pages))), **pages}
    kept.add()
    before = kept.shown

    site.pages = {path: (302, {"Location": f"/login?next={path}"}, "") for path in site.pages} | {"/login": form}
    assert kept("refresh", "docs", code=4)["held"]
    assert kept.why("p1") == ("failed", "looks like a log-in page")
    site.pages = dict.fromkeys(["/", *pages], form)
    assert kept("refresh", "docs", code=4)["held"]
    assert kept.why("p1") == ("failed", "looks like a log-in page")
    assert kept.shown == before


def test_a_site_behind_a_log_in_is_not_kept(kept: Kept, site: Site) -> None:
    site.pages = {"/": page("Log in", "<form><input type=password></form>")}
    assert "looks like a log-in page" in str(kept("add", site.root, "--name", "docs", code=1))


def test_a_site_that_redirects_missing_pages_to_its_root_keeps_its_pages(kept: Kept, site: Site) -> None:
    site.missing = (302, {"Location": "/"}, "")
    site.pages = {
        "/": page("Home", links("guide", "typo", "moved")),
        "/guide": page("Guide"),
        "/moved": (301, {"Location": "/guide"}, ""),
    }
    kept.add()
    assert kept.shown == {"", "guide"}
    assert kept.why("typo") == ("skipped", "answers like a page that does not exist")
    assert kept.why("moved") == ("skipped", f"redirects to {site.root}guide")
    assert kept("refresh", "docs")["counts"]["failed"] == 0


def test_no_page_of_a_real_manual_is_misclassified(kept: Kept, site: Site) -> None:
    manual = Path("/usr/share/doc/git/html")
    if not manual.is_dir():
        pytest.skip("there is no manual of git here")
    for path in sorted(manual.rglob("*.html"))[:150]:
        site.pages[f"/{path.relative_to(manual)}"] = path.read_text("utf-8")
    site.pages["/"] = page("Manual", links(*(path[1:] for path in site.pages)))
    site.missing = (200, {}, page("Not here", "<p>There is nothing at {path}.</p>"))
    kept.add()
    assert {path[1:] for path in site.pages} - kept.shown == set()
