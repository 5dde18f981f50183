"""Measure how many links with a fragment land at the right place of a kept page, and whether names are read.

    python bench/anchors.py FOLDER [--manual git] [--missing] [--pages 400]

FOLDER has Debian packages, unpacked with `dpkg -x`. Nothing of the reader decides what is expected: for each link of a
manual to a fragment of one of its pages, the words behind the element with that id or name are taken from the original
page. A link lands if the kept page has a place of that name, and the text there begins with these words. For names,
terms of definition lists and first cells of tables are sampled: the text that is read must begin with the name.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from urllib.parse import unquote, urljoin

from selectolax.lexbor import LexborHTMLParser, LexborNode

from kept.extract.reader import parse_page
from kept.model.document import Content, ParsedPage
from kept.service.places import find_place

MANUALS = {
    "postgresql": "usr/share/doc/postgresql-doc-15/html",
    "sqlite": "usr/share/doc/sqlite3",
    "python": "usr/share/doc/python3.11/html",
    "django": "usr/share/doc/python-django-doc/html",
    "git": "usr/share/doc/git/html",
    "cmake": "usr/share/doc/cmake-data/html",
    "sqlalchemy": "usr/share/doc/python-sqlalchemy-doc/html",
    "apache": "usr/share/doc/apache2-doc/manual/en",
    "gtk": "usr/share/gtk-doc/html/gtk3",
    "zsh": "usr/share/doc/zsh-common/html",
    "policy": "usr/share/doc/debian-policy/policy.html",
}
NAVIGATION = (
    "script, style, svg, nav, button, .navheader, .navfooter, .related[aria-label], .related[role], .sphinxsidebar"
    ", #toc, .toc, #footer, .footer, .header, #page-header, .viewcode-link, .viewcode-back, .headerlink, .relinfo"
)
MARKUP = re.compile(r"\]\((?:<[^<>\n]*>|[^()\s]*)\)|\\|^[ >]*```\S*|^[ >]*\d+\. |<br>", re.MULTILINE)
WORD = re.compile(r"\w+")
EXPECTED_WORDS = 5
REACH = 600  # characters of Markdown from the begin of the line of a place


def words(text: str) -> str:
    return "".join(WORD.findall(text.casefold().replace("_", "")))  # without blanks: markup breaks words


@dataclass(frozen=True)
class Target:
    page: Path
    fragment: str


def find_targets(page: Path, folder: Path) -> set[Target]:
    found = set()
    for link in LexborHTMLParser(page.read_bytes()).css("a[href*='#']"):
        href = link.attributes["href"] or ""
        url, _, fragment = urljoin(page.as_uri(), href).partition("#")
        if fragment and url.startswith(folder.as_uri() + "/"):
            path = Path(unquote(url.removeprefix("file://")))
            found.add(Target(path, unquote(fragment)))
    return found


@lru_cache(maxsize=400)
def expected_words(page: Path) -> dict[str, str]:
    """Return the first words behind each id and name of a page."""
    tree = LexborHTMLParser(page.read_bytes())
    for node in tree.css(NAVIGATION):
        node.decompose()
    texts: list[str] = []
    starts: dict[str, int] = {}
    if tree.body is not None:
        for node in tree.body.traverse(include_text=True):
            if node.is_text_node:
                texts += WORD.findall(node.text_content or "")
            else:
                for name in anchors(node):
                    starts.setdefault(name, len(texts))
    return {name: words("".join(texts[start : start + EXPECTED_WORDS])) for name, start in starts.items()}


def anchors(node: LexborNode) -> list[str]:
    attributes = node.attributes
    names = [attributes.get("id"), attributes.get("name") if node.tag == "a" else None]
    return [name for name in names if name]


@lru_cache(maxsize=400)
def kept_page(page: Path) -> Content | None:
    read = parse_page(page.read_bytes(), content_type="text/html", url=page.as_uri())
    return read.content if isinstance(read, ParsedPage) else None


def fault_of(target: Target) -> str | None:
    """Return why a link does not land; None if it does."""
    content = kept_page(target.page)
    if content is None:
        return "the page is not kept"
    place = next((place for place in content.places if place.anchor == target.fragment), None)
    if place is None:
        return "no place"
    start = content.markdown.rfind("\n", 0, place.start) + 1
    there = words(MARKUP.sub(" ", content.markdown[start : place.start + REACH]))
    expected = expected_words(target.page)[target.fragment]
    return None if expected in there else f"expected '{expected}', found '{there[:80]}'"


def named_terms(page: Path) -> list[str]:
    if page.name.startswith("genindex"):
        return []  # the terms of an index point elsewhere
    tree = LexborHTMLParser(page.read_bytes())
    for node in tree.css(NAVIGATION):
        node.decompose()
    terms = [node.text() for node in tree.css("dl > dt")]
    for cell in tree.css("tr > td:first-child"):
        code = cell.css_first("code")
        if code is not None and cell.text().strip().startswith(code.text()):
            terms.append(code.text())
    return [name for term in terms if 2 < len(name := " ".join(term.split())) < 60]


def name_fault(page: Path, name: str) -> str | None:
    content = kept_page(page)
    place = find_place(content.places, name) if content else None
    if content is None or place is None:
        return "no entry"
    begin = content.markdown[content.markdown.rfind("\n", 0, place.start) + 1 :][:REACH]
    return (
        None if words(name) in words(MARKUP.sub(" ", begin)[: 2 * len(name) + 120]) else f"begins with '{begin[:60]}'"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--manual", choices=MANUALS)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("--pages", type=int, default=10_000, help="target pages of each manual, at random")
    arguments = parser.parse_args()
    chance = random.Random(20)
    print(f"{'manual':12} {'pages':>5} {'links':>7} {'land':>7} {'share':>7}   names")
    for manual in [arguments.manual] if arguments.manual else MANUALS:
        folder = (arguments.folder / MANUALS[manual]).resolve()
        pages = [path for path in sorted(folder.rglob("*.html")) if path.is_file()]
        if not pages:
            print(f"{manual:12} not there", file=sys.stderr)
            continue
        targets: dict[Path, set[Target]] = defaultdict(set)
        for page in pages:
            for target in find_targets(page, folder):
                targets[target.page].add(target)
        known = [page for page in pages if page in targets]
        known = sorted(chance.sample(known, min(arguments.pages, len(known))))
        faults: list[tuple[str, Target]] = []
        links = 0
        for page in known:
            for target in sorted(targets[page], key=lambda target: target.fragment):
                if target.fragment not in expected_words(page) or kept_page(page) is None:
                    continue  # dead in the original, too, or in its navigation; or the page is not kept
                links += 1
                if fault := fault_of(target):
                    faults.append((fault, target))
        samples = [(page, name) for page in known for name in named_terms(page)]
        sample = chance.sample(samples, min(100, len(samples)))
        name_faults = [(fault, page, name) for page, name in sample if (fault := name_fault(page, name))]
        share = 1 - len(faults) / max(1, links)
        print(
            f"{manual:12} {len(known):5} {links:7,} {links - len(faults):7,} {share:7.2%}   "
            f"{len(sample) - len(name_faults)}/{len(sample)}",
            flush=True,
        )
        if arguments.missing:
            for fault, target in chance.sample(faults, min(12, len(faults))):
                print(f"    {target.page.name}#{target.fragment}: {fault}")
            for fault, page, name in name_faults[:8]:
                print(f"    {page.name}#{name}: {fault}")


if __name__ == "__main__":
    main()
