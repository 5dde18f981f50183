"""Load the judgements: queries that people type, each with the places that answer it, and judge hits against them.

A file of ``judgements/`` is a manual; a line is ``kind | query | place ;; place``. Kinds: name, flag, phrase, question,
error, misspelt, code. A place is a page, ``page#anchor`` (the section that the anchor lies in), or ``page~text`` (a
section of the page that has the text). ``mean.txt`` is asked of all manuals together: there, ``manual:page`` is a page.

They were written from the manuals' text, before any ranking of them was seen.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from urllib.parse import unquote

import apsw
from selectolax.lexbor import LexborHTMLParser

FOLDER = Path(__file__).with_name("judgements")
TUNE = ("cmake", "django", "git", "glib", "postgres")
TEST = ("node", "python", "sqlite", "zsh")
MEAN = "mean"  # deliberately mean queries, asked of all manuals together
_SEPARATOR = re.compile(r"(?<!\\) \| ")
_PLACE = re.compile(r"([^#~]+?)(?:([#~])(.+))?")


@dataclass(frozen=True)
class JudgedQuery:
    """A query, and the places that answer it."""

    manual: str
    kind: str
    text: str
    places: tuple[str, ...]


def judged_queries(manual: str) -> list[JudgedQuery]:
    """Return the queries of a manual."""
    found = []
    for line in (FOLDER / f"{manual}.txt").read_text("utf-8").splitlines():
        if line and not line.startswith("# "):
            kind, query, places = _SEPARATOR.split(line)
            found.append(JudgedQuery(manual, kind, query.replace("\\|", "|"), tuple(places.split(" ;; "))))
    return found


@dataclass(frozen=True)
class FoundPlace:
    """A hit: its manual, page and anchor, and its text."""

    manual: str
    page: str
    anchor: str | None
    text: str
    also: tuple[str, ...] = ()  # pages with the same text


class PlaceJudge:
    """Says whether hits from a database of kept manuals are right."""

    def __init__(self, kept: Path, manuals: Mapping[str, Path]) -> None:
        self._manuals = manuals
        self._anchors: dict[tuple[str, str], set[str]] = defaultdict(set)
        roots = {name: path.resolve().as_uri() + "/" for name, path in manuals.items()}
        self._owners: dict[tuple[str, str, str], str | None] = {}  # of a named entry, the section that it is in
        database = apsw.Connection(str(kept), flags=apsw.SQLITE_OPEN_READONLY)
        has_entries = any(row[1] == "entry" for row in database.execute("PRAGMA table_info(sections)"))
        entry_column = "s.entry" if has_entries else "NULL"
        rows = database.execute(
            f"SELECT src.name, v.url, s.anchor, {entry_column}, above.anchor"
            " FROM versions v JOIN sources src ON src.id = v.source_id"
            " JOIN sections s USING (content_id) LEFT JOIN sections above ON above.id = s.parent_section_id"
            " WHERE s.anchor IS NOT NULL"
        )
        for name, url, anchor, entry, owner in rows:
            page = str(url).removeprefix(roots[str(name)])
            self._anchors[str(name), page].add(str(anchor))
            if entry:
                self._owners.setdefault((str(name), page, str(anchor)), None if owner is None else str(owner))

    def is_right(self, hit: FoundPlace, query: JudgedQuery) -> bool:
        return any(self._matches(hit, place, query.manual) for place in query.places)

    def _matches(self, hit: FoundPlace, place: str, manual: str) -> bool:
        if manual == MEAN:
            manual, _, place = place.partition(":")
        match = _PLACE.fullmatch(place)
        assert match is not None
        page, sign, what = match[1], match[2], match[3]
        if hit.manual != manual or page not in (hit.page, *hit.also):
            return False
        if sign == "~":
            return _squeezed(what) in _squeezed(hit.text)
        if sign is None:
            return True
        accepted = self._sections_of(manual, page, what)
        key = (manual, page, hit.anchor or "")
        return hit.anchor in accepted or (key in self._owners and self._owners[key] in accepted)

    @cache  # noqa: B019
    def _sections_of(self, manual: str, page: str, anchor: str) -> frozenset[str | None]:
        """Return the anchors that stand for the section in which an anchor lies."""
        known = self._anchors[manual, page]
        around: str | None = None
        nodes = LexborHTMLParser((self._manuals[manual] / unquote(page)).read_text("utf-8", "replace")).css(
            "[id], a[name]"
        )
        for at, node in enumerate(nodes):
            name = node.attributes.get("id") or node.attributes.get("name")
            if name in known:
                around = name
            if name == anchor:
                if name in known or node.tag not in ("div", "section"):
                    return frozenset({around, anchor})
                # The anchor of a block: its heading may have another, inside it.
                inside = next(
                    (
                        inner.attributes.get("id") or inner.attributes.get("name")
                        for inner in nodes[at + 1 : at + 6]
                        if (inner.attributes.get("id") or inner.attributes.get("name")) in known
                    ),
                    None,
                )
                return frozenset({around, anchor, inside} - {None} or {None})
        return frozenset({anchor})


@cache
def _squeezed(text: str) -> str:
    """Return a text without signs and spaces, which a converter may write otherwise."""
    return re.sub(r"[\W_]", "", text).lower()
