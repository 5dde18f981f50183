"""Finding sections: candidates from full text, then what the asked generations show of them, then the ranking.

Full text knows contents, not generations. Checking each match for visibility inside the ranked query is three
times slower than ranking more than is needed and looking up the best; only when too few of those are shown is every
match checked.
"""

import re
from datetime import datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

from kept.model.nouns import dataclass
from kept.model.url import with_anchor
from kept.model.words import Wanted, language_word, name_word
from kept.search.grouping import Group, grouped
from kept.search.query import Query
from kept.search.rank import rank
from kept.search.snippet import code_in, snippet
from kept.search.versions import order
from kept.store import sections
from kept.store.database import Connection, Row, when
from kept.store.sections import Candidates, Generations

CANDIDATES = 24
WIDER = 10  # times as many, where there are several versions of a page, or so many say the same that few are left
ENOUGH = 20  # with all the words: those with any are not looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where to look: in these generations, below this path, in all of a section or in its code."""

    generations: Generations
    path: str = ""
    code: bool = False
    language: str = ""

    @property
    def like(self) -> str:
        """A pattern of SQL for the URLs; it may let through more than ``admits``."""
        if not self.path:
            return "%"
        escaped = re.sub(r"([!%_])", r"!\1", self.path.strip("/"))
        return f"%/{escaped.replace('*', '%').replace('?', '_')}%"

    def admits(self, url: str) -> bool:
        return not self.path or _path_pattern(self.path).match(url.partition("://")[2]) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A section that was found, and what it stands on."""

    source: str
    version: str
    generation: int
    document: str
    section: int
    url: str
    title: str
    headings: tuple[str, ...]
    anchor: str | None
    snippet: str
    text: str
    score: float
    fetched_at: datetime
    verified_at: datetime
    partial: bool
    also: tuple[dict[str, str], ...] = ()  # the same in other sources and versions
    context: str | None = None  # what stands around it, if asked for

    def as_json(self) -> dict[str, Any]:
        return {
            "source": self.source,
            "version": self.version,
            "generation": self.generation,
            "document": self.document,
            "section": self.section,
            "url": self.url,
            "title": self.title,
            "headings": list(self.headings),
            "anchor": self.anchor,
            "snippet": self.snippet,
            "text": self.text,
            "score": round(self.score, 4),
            "fetched_at": self.fetched_at.isoformat(),
            "verified_at": self.verified_at.isoformat(),
            "partial": self.partial,
            "also": list(self.also),
            **({} if self.context is None else {"context": self.context}),
        }


async def search(db: Connection, query: Query, place: Place, *, limit: int) -> list[Hit]:
    """The best sections in a place: those with all the words, then those with any."""
    width = max(CANDIDATES, 2 * limit)
    groups, more = await _search(db, query, place, limit=limit, width=width)
    if more and (len(groups) < limit or any(group.row["versions"] > 1 for group in groups)):
        groups, _ = await _search(db, query, place, limit=limit, width=WIDER * width)
    return [hit_of(group, query, place) for group in groups[:limit]]


async def _search(db: Connection, query: Query, place: Place, *, limit: int, width: int) -> tuple[list[Group], bool]:
    """The best among so many candidates, and whether there are more of those."""
    whole = await _look(db, query, place, every=True, limit=limit, width=width)
    enough = len(whole.rows) >= max(ENOUGH, limit) or len(query.terms) == 1
    some = whole if enough else await _look(db, query, place, every=False, limit=limit, width=width)
    rows = {(row["id"], row["document_id"]): row for row in (*whole.rows, *some.rows)}
    ranked = rank(query, list(rows.values()), some.scores | whole.scores, whole.scores.keys())
    return grouped(ranked), some.more


async def _look(db: Connection, query: Query, place: Place, *, every: bool, limit: int, width: int) -> Candidates:
    wanted = Wanted(
        terms=query.terms,
        every=every,
        without=query.without,
        names=query.names if every else (*query.names, *map(name_word, query.inner)),
        code=place.code or bool(place.language),
        language=language_word(place.language) if place.language else None,
    )
    look = partial(sections.search_sections_fts, db, wanted, place.generations, limit=width)
    found = _admitted(await look(), place)
    if len(found.rows) < limit and found.more:
        found = _admitted(await look(url=place.like), place)
    return found


def _admitted(found: Candidates, place: Place) -> Candidates:
    return found._replace(rows=[row for row in found.rows if place.admits(row["url"])])


def hit_of(group: Group, query: Query, place: Place) -> Hit:
    row = group.row
    text = row["text"]
    return Hit(
        source=row["source_name"],
        version=row["source_version"],
        generation=row["generation"],
        document=row["document_id"],
        section=row["id"],
        url=_address(row),
        title=row["title"] or name_of(row["url"]),
        headings=tuple(row["headings"].split("\n")) if row["headings"] else (),
        anchor=row["anchor"],
        snippet=snippet(code_in(text) if place.code or place.language else text, query.terms),
        text=text,
        score=group.score,
        fetched_at=when(row["fetched_at"]),
        verified_at=when(row["verified_at"]),
        partial=row["partial"] is not None,
        also=tuple(
            {"source": other["source_name"], "version": other["source_version"], "url": _address(other)}
            for other in sorted(group.also, key=lambda other: order(other["source_version"]), reverse=True)
        ),
    )


def _address(row: Row) -> str:
    return with_anchor(row["url"], row["anchor"]) if row["anchor"] else str(row["url"])


@lru_cache(maxsize=64)
def _path_pattern(path: str) -> re.Pattern[str]:
    """Whole parts of a path: ``ref/models``, ``guide/*.html``, ``**/api``.

    What stands between two stars is taken where it comes first, for good: no later place could do better, and to try
    them all would take a server for ever where somebody types many stars.
    """
    pieces = re.split(r"\*{2,}", f"/{path.strip('/')}\0")
    return re.compile("".join(f"(?>.*?{_piece(piece)})" for piece in pieces))


def _piece(glob: str) -> str:
    """A glob without ``**`` as a regular expression; NUL is where a part of a path ends."""
    parts = [re.escape(part).replace(r"\?", "[^/]").replace("\0", "(?:/|$)") for part in glob.split("*")]
    return "".join([parts[0], *(f"(?>[^/]*?{part})" for part in parts[1:])])


def name_of(url: str) -> str:
    """What a page without a title is called: the last part of its path."""
    return unquote(url.rstrip("/").rpartition("/")[2]) or url
