"""Every format and every charset, from a server on loopback through the command line to a search that finds it."""

import codecs
import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from tests import office_files
from tests.sites.pages import serving
from tests.unit.test_pdf import make_pdf

_OPEN_XML = "application/vnd.openxmlformats-officedocument"


class Kept(NamedTuple):
    """A site, and the database of its crawl."""

    root: str
    database: str

    def find(self, words: str) -> dict[str, Any]:
        """Return the best hit of a search."""
        hits = _kept(self.database, "search", words, "--limit", "1")["hits"]
        assert hits, f"nothing is found for {words}"
        return dict(hits[0])


def _kept(database: str, *arguments: str) -> Any:
    command = [sys.executable, "-m", "kept", "--json", "--database", database, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def _page(text: str) -> bytes:
    return f"<!doctype html><title>Page</title><main><h1>Page</h1><p>{text}</p></main>".encode()


def _links(*paths: str) -> str:
    return " ".join(f'<a href="{path}">{path}</a>' for path in paths)


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kept]:
    """Crawl all formats once: starting a crawl takes longer than everything else here."""
    database = f"sqlite:///{tmp_path_factory.mktemp('formats')}/kept.db"
    pages = FORMATS | CHARSETS | {"/": ("text/html", _page(_links(*FORMATS, *CHARSETS)))}
    answers = dict(pages)
    with serving(answers) as root:
        answers |= _lists(root)
        added = _kept(database, "add", root)
        assert added["counts"]["new"] == len(pages) + 2, added  # and the two that only the lists name
        assert added["counts"]["failed"] == added["counts"]["skipped"] == 0, added
        yield Kept(root, database)


# ── Formats ──────────────────────────────────────────────────────────────────────────────────────────────────────────

NOTEBOOK = {"cells": [{"cell_type": "markdown", "source": "# Gannets\n\nA notebook about gannets."}]}
API = {
    "openapi": "3.1.0",
    "info": {"title": "Birds"},
    "paths": {"/birds": {"get": {"summary": "Lists all razorbills"}}},
}
API_IN_YAML = "openapi: 3.1.0\ninfo: {title: Eggs}\npaths:\n  /eggs:\n    post:\n      summary: Hatches a shearwater\n"
DOCUMENT = office_files.docx(
    '<w:p><w:pPr><w:outlineLvl w:val="0"/></w:pPr><w:r><w:t>Nests</w:t></w:r></w:p>'
    "<w:p><w:r><w:t>Where the kittiwake nests.</w:t></w:r></w:p>"
)
SLIDES = office_files.pptx(
    office_files.shape("Wings", placeholder="title") + office_files.shape("How the albatross glides"),
    notes={1: office_files.shape("Do not mention penguins.", placeholder="body")},
)
CELLS = "".join(f'<row><c t="inlineStr"><is><t>{word}</t></is></c></row>' for word in ("Bird", "cormorant"))
BOOK = office_files.epub({"a.xhtml": '<h1>One</h1><p>Begins.</p><h2 id="puffins">Two</h2><p>Of the guillemot.</p>'})

FORMATS: dict[str, tuple[str, bytes]] = {
    "/manual.pdf": ("application/pdf", make_pdf("Nothing here.", "A fulmar on page two.")),
    "/study.ipynb": ("application/json", json.dumps(NOTEBOOK).encode()),
    "/openapi.json": ("application/json", json.dumps(API).encode()),
    "/openapi.yaml": ("application/octet-stream", API_IN_YAML.encode()),
    "/nests.docx": (f"{_OPEN_XML}.wordprocessingml.document", DOCUMENT),
    "/wings.pptx": ("application/octet-stream", SLIDES),
    "/list.xlsx": (
        f"{_OPEN_XML}.spreadsheetml.sheet",
        office_files.xlsx({"Sea birds": f"<sheetData>{CELLS}</sheetData>"}),
    ),
    "/book.epub": ("application/epub+zip", BOOK),
}


@pytest.mark.parametrize(
    ("word", "place", "heading"),
    [
        ("fulmar", "manual.pdf#page=2", "Page 2"),
        ("gannets", "study.ipynb#gannets", "Gannets"),
        ("razorbills", "openapi.json", "GET /birds"),
        ("shearwater", "openapi.yaml", "POST /eggs"),
        ("kittiwake", "nests.docx#nests", "Nests"),
        ("albatross", "wings.pptx#wings", "Wings"),
        ("penguins", "wings.pptx#wings", "Wings"),
        ("cormorant", "list.xlsx#sea-birds", "Sea birds"),
        ("guillemot", "book.epub#puffins", "Two"),
    ],
)
def test_a_format_is_kept_and_found_at_the_right_place(kept: Kept, word: str, place: str, heading: str) -> None:
    hit = kept.find(word)
    assert hit["url"] == kept.root + place
    assert hit["headings"][-1] == heading


# ── Ways to a page ───────────────────────────────────────────────────────────────────────────────────────────────────


def _lists(root: str) -> dict[str, tuple[str, bytes]]:
    index = f"<sitemapindex><sitemap><loc>{root}birds.xml.gz</loc></sitemap></sitemapindex>"
    birds = f"<urlset><url><loc>{root}hidden.html</loc></url></urlset>"
    return {
        "/robots.txt": ("text/plain", f"Sitemap: {root}index.xml.gz\n".encode()),
        "/index.xml.gz": ("application/gzip", gzip.compress(index.encode())),
        "/birds.xml.gz": ("application/octet-stream", gzip.compress(birds.encode())),
        "/hidden.html": ("text/html", _page("The phalarope swims in circles.")),
        "/llms.txt": ("text/plain", b"# Terns\n\n- [Arctic](/arctic.md): far\n"),
        "/arctic.md": ("text/markdown", b"# Arctic\n\nOnly the oystercatcher knows.\n"),
    }


@pytest.mark.parametrize(
    ("word", "place"),
    [("oystercatcher", "arctic.md#arctic"), ("phalarope", "hidden.html")],
    ids=["llms.txt", "a gzipped index of sitemaps"],
)
def test_a_page_that_only_llms_txt_or_a_sitemap_names_is_found(kept: Kept, word: str, place: str) -> None:
    assert kept.find(word)["url"] == kept.root + place


# ── Charsets ─────────────────────────────────────────────────────────────────────────────────────────────────────────


class Case(NamedTuple):
    word: str
    encoding: str  # what the bytes are
    header: str = ""  # what the server says they are
    meta: str = ""  # what the page says they are
    mark: bytes = b""  # a byte order mark

    def page(self) -> tuple[str, bytes]:
        head = f'<meta charset="{self.meta}">' if self.meta else ""
        if self.meta.startswith("text/"):
            head = f'<meta http-equiv="Content-Type" content="{self.meta}">'
        text = f"<!doctype html><html><head>{head}<title>Page</title></head><body><main><h1>Page</h1><p>Here is "
        html = f"{text}{self.word} to be found.</p></main></body></html>"
        return f"text/html{f'; charset={self.header}' if self.header else ''}", self.mark + html.encode(self.encoding)


CASES = {
    "header-utf-8": Case("größenordnung", "utf-8", "utf-8"),
    "header-latin-1": Case("naïveté", "latin-1", "ISO-8859-1"),
    "header-windows-1252": Case("cœur’s", "windows-1252", "windows-1252"),
    "header-shift-jis": Case("図書館", "shift_jis", "Shift_JIS"),
    "header-gb18030": Case("数据库", "gb18030", '"gb18030"'),
    "header-koi8-r": Case("документация", "koi8-r", "koi8-r"),
    "header-utf-16": Case("ελληνικά", "utf-16-le", "utf-16", mark=codecs.BOM_UTF16_LE),
    "header-utf-16-be": Case("θάλασσα", "utf-16-be", "utf-16", mark=codecs.BOM_UTF16_BE),
    "meta": Case("справочник", "windows-1251", meta="windows-1251"),
    "meta-http-equiv": Case("příručka", "iso-8859-2", meta="text/html; charset=iso-8859-2"),
    "mark-utf-8": Case("žluťoučký", "utf-8", mark=codecs.BOM_UTF8),
    "mark-utf-16": Case("İstanbul", "utf-16-le", mark=codecs.BOM_UTF16_LE),
    "mark-against-all": Case("ångström", "utf-8", "koi8-r", "shift_jis", codecs.BOM_UTF8),
    "header-against-meta": Case("клавиатура", "koi8-r", "koi8-r", "utf-8"),
    "nothing-utf-8": Case("łódź", "utf-8"),
    "nothing-windows-1252": Case("façades", "windows-1252"),
    "header-lies-latin-1": Case("schlüsselbund", "utf-8", "iso-8859-1"),
    "header-lies-utf-8": Case("übersichten", "windows-1252", "utf-8"),
    "header-unknown": Case("smörgåsbord", "utf-8", "x-no-such-thing"),
}
CHARSETS: dict[str, tuple[str, bytes]] = {f"/{name}.html": case.page() for name, case in CASES.items()}


@pytest.mark.parametrize("name", CASES)
def test_a_word_is_found_whatever_its_charset(kept: Kept, name: str) -> None:
    hit = kept.find(CASES[name].word)
    assert hit["url"] == f"{kept.root}{name}.html"
    assert f"Here is {CASES[name].word} to be found." in hit["text"]
