"""Make judged queries from the indexes of manuals: a term and the places that the index names for it."""

import hashlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from selectolax.lexbor import LexborHTMLParser

from bench.quality.judgements import JudgedQuery
from bench.quality.labels import _sphinx_index as sphinx_index

MAX_PLACES = 3  # a term with more places is ambiguous


def index_queries(manual: str, root: Path, limit: int = 150) -> list[JudgedQuery]:
    """Return terms of a manual's index, always the same ones; none for a manual without one that can be read."""
    entries: Iterable[tuple[str, str]] = ()
    if (root / "genindex.html").exists():
        entries = sphinx_index(root)
    elif (root / "bookindex.html").exists():
        entries = _docbook_index(root / "bookindex.html")
    places: dict[str, set[str]] = {}
    for term, place in entries:
        places.setdefault(term, set()).add(place)
    clear = [term for term, found in places.items() if len(found) <= MAX_PLACES]
    chosen = sorted(clear, key=lambda term: hashlib.sha256(term.encode()).digest())[:limit]
    return [JudgedQuery(manual, "index", term, tuple(sorted(places[term]))) for term in sorted(chosen)]


def _docbook_index(page: Path) -> Iterator[tuple[str, str]]:
    for entry in LexborHTMLParser(page.read_text("utf-8", "replace")).css("div.index > div.indexdiv > dl > dt"):
        links = entry.css("a.indexterm")
        term = entry.text().strip().partition(", " + links[0].text().strip())[0].strip() if links else ""
        for link in links:
            if term and len(term) < 60:
                yield " ".join(term.split()), link.attributes["href"] or ""
