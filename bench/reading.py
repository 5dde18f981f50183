"""Measure how much of real manuals the HTML reader keeps.

    python bench/reading.py [--pages 60] [--manual git] [--missing]

Expected items are counted with the selectors below on the original page, without the reader. A heading is kept if a
heading of the result has its words; a code block if its words are in a fenced block (or, in a cell, in code spans); a
table if as many words of its cells are in the result; an anchor if a section has it.
"""

from __future__ import annotations

import argparse
import glob
import random
import re
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

from kept.extract.html.reader import extract
from kept.extract.sections import SectionNode, Unreadable


@dataclass(frozen=True)
class Manual:
    package: str  # of Debian
    pages: str
    region: str  # the visible content
    outside: str  # inside the region, but no content
    headings: str = "h1, h2, h3, h4, h5, h6"
    code: str = "pre"
    tables: str = "table"
    marks: str = "a.headerlink, a.viewcode-link, .viewcode-link, a.viewcode-back"  # beside the words, and not of them


SHARE = "/usr/share/doc"
MANUALS = {
    "python": Manual(
        "python3.11-doc", "python3.11/html/**/*.html", "div.body[role=main]",
        ".contents, .toctree-wrapper, td.linenos, .linenos",
        headings="h1, h2, h3, h4, h5, h6, dl.py > dt.sig[id], dl.c > dt.sig[id]",
        tables="table.docutils",
    ),
    "postgresql": Manual(
        "postgresql-doc-15", "postgresql-doc-15/html/**/*.html", "body", ".navheader, .navfooter, .toc",
        tables="table:not(.simplelist)",
    ),
    "django": Manual(
        "python-django-doc", "python-django-doc/html/**/*.html", "div.yui-g", ".contents, .toctree-wrapper",
        headings="h1, h2, h3, h4, h5, h6, dl.py > dt.sig[id]", tables="table.docutils",
    ),
    "sqlite": Manual(
        "sqlite3-doc", "sqlite3/**/*.html", "body",
        ".menu, .searchmenu, .fancy_toc, .tagline, .nosearch > a, script",
    ),
    "git": Manual("git-doc", "git/html/**/*.html", "body", "#toc, #footer", tables="table.tableblock"),
    "openjdk": Manual(
        "openjdk-17-doc", "openjdk-17-jre-headless/api/**/*.html", "main", "nav",
        code="pre, div.member-signature", tables="table, div.summary-table",
    ),
}  # fmt: skip
NOT_PAGES = re.compile(
    r"/(?:search|genindex[^/]*|py-modindex|keyword_index|doc_pagelink_crossref)\.html$|/_static/|/sqlanalyze/"
)

WORD = re.compile(r"\w+")
FENCE = re.compile(r"^[ >]*(`{3,})[^`\n]*\n(.*?)^[ >]*\1", re.DOTALL | re.MULTILINE)
SPAN = re.compile(r"`([^`\n]+)`")
KINDS = ("headings", "code", "tables", "anchors")


def words(text: str) -> str:
    return " ".join(WORD.findall(text))


@dataclass(frozen=True)
class Page:
    headings: list[tuple[str, str | None]]
    code: list[str]
    tables: list[str]


def there(body: str, manual: Manual) -> Page | None:
    """Return the items of the original page."""
    region = LexborHTMLParser(body).css_first(manual.region)
    if region is None:
        return None
    for node in region.css(manual.outside) if manual.outside else []:
        node.decompose()
    for node in region.css(manual.marks):
        node.decompose()
    for node in region.css("br"):
        node.replace_with(" ")
    headings = [(words(node.text()), anchor_of(node)) for node in region.css(manual.headings)]
    code = [words(node.text()) for node in region.css(manual.code)]
    tables = [words(node.text(separator=" ")) for node in region.css(manual.tables) if not node.css_first("h1, h2, h3")]
    return Page([one for one in headings if one[0]], list(filter(None, code)), list(filter(None, tables)))


def anchor_of(node: LexborNode) -> str | None:
    """Return the id of a heading, or of the section it opens."""
    if own := node.attributes.get("id"):
        return own
    parent = node.parent
    if parent is not None and parent.parent is not None and "title" in (node.attributes.get("class") or ""):
        # DocBook: section > titlepage > div > div > heading
        page = parent.parent.parent
        if page is not None and page.attributes.get("class") == "titlepage" and page.parent is not None:
            return page.parent.attributes.get("id")
    if parent is not None and parent.tag == "section" and parent.css_first("h1,h2,h3,h4,h5,h6") == node:
        return parent.attributes.get("id")
    return None


def kept(page: Page, body: bytes) -> tuple[Counter[str], Counter[str], list[str]]:
    """Return how many items the page has, how many the reader kept, and the missing ones."""
    found = extract(body, None)
    assert not isinstance(found, Unreadable), found
    sections = list(walk(found.tree))
    headings = Counter(words(section.heading) for section in sections)
    anchors = {section.anchor for section in sections}
    everything = Counter(WORD.findall(found.markdown))
    fences = Counter(
        words(re.sub(r"^[ >]*", "", match[2], flags=re.MULTILINE)) for match in FENCE.finditer(found.markdown)
    )
    spans = " " + words(" ".join(SPAN.findall(found.markdown))) + " "
    total, have, missing = Counter[str](), Counter[str](), []

    def count(kind: str, what: str, ok: bool) -> None:
        total[kind] += 1
        have[kind] += ok
        if not ok:
            missing.append(f"{kind}: {what[:100]}")

    for text, anchor in page.headings:
        bold = f"**{text}**" if headings[text] <= 0 else ""
        count("headings", text, headings[text] > 0 or (bool(bold) and is_bold(text, found.markdown)))
        headings[text] -= 1
        if anchor:
            count("anchors", anchor, anchor in anchors)
    for text in page.code:
        count("code", text, fences[text] > 0 or f" {text} " in spans)
        fences[text] -= 1
    for text in page.tables:
        wanted = Counter(text.split())
        count("tables", text, sum((wanted - everything).values()) <= len(text.split()) * 0.02)
    return total, have, missing


def is_bold(text: str, markdown: str) -> bool:
    """Return whether a heading is the title of a note, which the reader turns into a bold line."""
    return any(words(line) == text for line in re.findall(r"^[ >]*\*\*(.+)\*\*$", markdown, re.MULTILINE))


def walk(node: SectionNode) -> list[SectionNode]:
    return [node, *(below for child in node.children for below in walk(child))]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pages", type=int, default=60, help="pages of each manual, chosen at random")
    arguments.add_argument("--seed", type=int, default=1)
    arguments.add_argument("--manual", choices=MANUALS, action="append")
    arguments.add_argument("--missing", action="store_true", help="list the missing items")
    given = arguments.parse_args()
    print(f"{'manual':12} {'pages':>5}" + "".join(f"{kind:>22}" for kind in KINDS))
    everything = (Counter[str](), Counter[str]())
    for name in given.manual or MANUALS:
        manual = MANUALS[name]
        pages = sorted(
            page for page in glob.glob(f"{SHARE}/{manual.pages}", recursive=True) if not NOT_PAGES.search(page)
        )
        if not pages:
            print(f"{name:12} is not installed: apt install {manual.package}")
            continue
        total, have, read = Counter[str](), Counter[str](), 0
        for path in random.Random(given.seed).sample(pages, min(given.pages, len(pages))):
            body = Path(path).read_bytes()
            page = there(body.decode("utf-8", "replace"), manual)
            if page is None:
                continue
            read += 1
            more, more_have, missing = kept(page, body)
            total += more
            have += more_have
            for what in missing if given.missing else []:
                print(f"    {Path(path).relative_to(SHARE)}  {what}", file=sys.stderr)
        everything[0].update(total)
        everything[1].update(have)
        print(row(name, read, total, have))
    print(row("all", 0, *everything))


def row(name: str, pages: int, total: Counter[str], have: Counter[str]) -> str:
    cells = [
        f"{have[kind]}/{total[kind]} {100 * have[kind] / total[kind]:6.2f}%" if total[kind] else "-" for kind in KINDS
    ]
    return f"{name:12} {pages or '':>5}" + "".join(f"{cell:>22}" for cell in cells)


if __name__ == "__main__":
    main()
