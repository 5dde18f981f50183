"""Make labels (queries and the places that answer them) from the index of each manual.

    labels("django")    its general index (term → section), and the questions of questions.txt
    labels("javadoc")   its index (class or member → its section)
    labels("git")       its glossary (term → the part of the page that defines it)

The hash of its query assigns every label to the tune half or the test half.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser, LexborNode

QUESTIONS = Path(__file__).with_name("questions.txt")
MANUALS = {  # Debian: python-django-doc, openjdk-17-doc, git-doc
    "django": Path("/usr/share/doc/python-django-doc/html"),
    "javadoc": Path("/usr/share/doc/openjdk-17-jre-headless/api"),
    "git": Path("/usr/share/doc/git-doc"),
}
MOST = 600  # labels of one set
MOST_PLACES = 3  # a term with more places is ambiguous


@dataclass(frozen=True)
class Label:
    """A query and the places that answer it, each ``page#anchor`` below the manual's root, or ``page##term``."""

    query: str
    places: frozenset[str]
    set: str  # "django index", "django questions" …

    @property
    def half(self) -> str:
        return "tune" if _hash(self.query) % 2 else "test"


def labels(manual: str) -> list[Label]:
    made = {"django": _django, "javadoc": _javadoc, "git": _git}[manual](MANUALS[manual])
    return sorted(made, key=lambda label: (label.set, label.query))


def _django(root: Path) -> Iterator[Label]:
    yield from _sampled(_sphinx_index(root), "django index")
    for line in QUESTIONS.read_text("utf-8").splitlines():
        if line and not line.startswith("#"):
            question, _, places = line.partition(" | ")
            yield Label(question, frozenset(places.split()), "django questions")


def _sphinx_index(root: Path) -> Iterator[tuple[str, str]]:
    """Yield (query, place). Half of the queries for members include the class, as in ``Form.as_p``."""
    for entry in _page(root / "genindex.html").css("table.genindextable > tbody > tr > td > ul > li"):
        term = _own_words(entry).partition(" (")[0].strip()
        if not re.search(r"\w\w", term):
            continue
        for link in entry.css("a"):
            owner = re.search(r"\((?:[\w.]*\.)?(\w+) (?:attribute|method|property)\)", link.text())
            qualified = owner and _hash(term) % 4 < 2
            yield f"{owner[1]}.{term.strip('()')}" if owner and qualified else term, link.attributes["href"] or ""


def _javadoc(root: Path) -> Iterator[Label]:
    yield from _sampled(_javadoc_index(root), "javadoc index")


def _javadoc_index(root: Path) -> Iterator[tuple[str, str]]:
    """Types by their name, members by type and name (``List.add``, or ``List add``); overloads are one query."""
    for page in sorted((root / "index-files").glob("index-*.html")):
        for entry in _page(page).css("dl.index > dt"):
            links = entry.css("a")
            name, place = links[0].text().partition("(")[0].strip(), (links[0].attributes["href"] or "")[3:]
            kind = entry.text()[len(links[0].text()) :]
            if re.match(r" - .*(Class|Interface|Enum|Record|Exception|Error) in ", kind):
                yield name.partition("<")[0], place
            elif "#" in place and re.match(r" - .*(Method|Variable) in ", kind) and len(links) > 1:
                yield f"{links[-1].text().partition('<')[0]}{'. '[_hash(name) % 2]}{name}", place


def _git(root: Path) -> Iterator[Label]:
    for term in _page(root / "gitglossary.html").css("dl > dt"):
        words = " ".join(term.text().split())
        yield Label(words, frozenset([f"gitglossary.html##{words}"]), "git glossary")


def _sampled(found: Iterable[tuple[str, str]], name: str) -> Iterator[Label]:
    places: dict[str, set[str]] = {}
    for query, place in found:
        places.setdefault(query, set()).add(place)
    clear = [query for query, where in places.items() if len({one.partition("(")[0] for one in where}) <= MOST_PLACES]
    for query in sorted(clear, key=_hash)[:MOST]:
        yield Label(query, frozenset(places[query]), name)


def _page(path: Path) -> LexborHTMLParser:
    return LexborHTMLParser(path.read_text("utf-8"))


def _own_words(node: LexborNode) -> str:
    """Return the words of an entry, without those of its subentries."""
    words, child = "", node.child
    while child is not None and child.tag != "ul":
        words += child.text()
        child = child.next
    return " ".join(words.split())


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8])
