"""Finding sections: candidates from full text, then what the asked generations show of them, then the ranking.

Full text knows contents, not generations. Checking each match for visibility inside the ranked query is three
times slower than ranking more than is needed and looking up the best; only when too few of those are shown is every
match checked.
"""

import re
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache, partial
from typing import Any
from urllib.parse import unquote

from kept.model.tokens import FullTextQuery, language_token, symbol_token
from kept.model.url import with_anchor
from kept.search.hit_groups import HitGroup, group_hits
from kept.search.query import Query
from kept.search.rank import rank_sections
from kept.search.snippet import extract_code, make_snippet
from kept.search.versions import version_key
from kept.store import sections
from kept.store.database import Connection, Row, parse_time
from kept.store.sections import FtsCandidates, GenerationFilter

MIN_CANDIDATES = 24
WIDENING_FACTOR = (
    10  # times as many, where there are several versions of a page, or so many say the same that few are left
)
ENOUGH_FULL_MATCHES = 20  # with all the words: those with any are not looked for


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Where to look: in these generations, below this path, in all of a section or in its code."""

    generations: GenerationFilter
    path: str = ""
    code_only: bool = False
    language: str = ""

    @property
    def url_like_pattern(self) -> str:
        """A pattern of SQL for the URLs; it may let through more than ``admits``."""
        if not self.path:
            return "%"
        escaped = re.sub(r"([!%_])", r"!\1", self.path.strip("/"))
        return f"%/{escaped.replace('*', '%').replace('?', '_')}%"

    def matches_url(self, url: str) -> bool:
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


async def lexical_search(db: Connection, query: Query, scope: SearchScope, *, limit: int) -> list[Hit]:
    """The best sections in a place: those with all the words, then those with any."""
    width = max(MIN_CANDIDATES, 2 * limit)
    groups, more = await _search_candidates(db, query, scope, limit=limit, width=width)
    if more and (len(groups) < limit or any(group.row["versions"] > 1 for group in groups)):
        groups, _ = await _search_candidates(db, query, scope, limit=limit, width=WIDENING_FACTOR * width)
    return [build_hit(group, query, scope) for group in groups[:limit]]


async def _search_candidates(
    db: Connection, query: Query, scope: SearchScope, *, limit: int, width: int
) -> tuple[list[HitGroup], bool]:
    """The best among so many candidates, and whether there are more of those."""
    whole = await _fetch_candidates(db, query, scope, match_all=True, limit=limit, width=width)
    enough = len(whole.rows) >= max(ENOUGH_FULL_MATCHES, limit) or len(query.terms) == 1
    some = whole if enough else await _fetch_candidates(db, query, scope, match_all=False, limit=limit, width=width)
    rows = {(row["id"], row["document_id"]): row for row in (*whole.rows, *some.rows)}
    ranked = rank_sections(query, list(rows.values()), some.scores | whole.scores, whole.scores.keys())
    return group_hits(ranked), some.has_more


async def _fetch_candidates(
    db: Connection, query: Query, scope: SearchScope, *, match_all: bool, limit: int, width: int
) -> FtsCandidates:
    wanted = FullTextQuery(
        terms=query.terms,
        match_all=match_all,
        excluded_terms=query.excluded,
        symbol_tokens=query.names if match_all else (*query.names, *map(symbol_token, query.inner_names)),
        code_only=scope.code_only or bool(scope.language),
        language_token=language_token(scope.language) if scope.language else None,
    )
    look = partial(sections.search_sections_fts, db, wanted, scope.generations, limit=width)
    found = _filter_by_path(await look(), scope)
    if len(found.rows) < limit and found.has_more:
        found = _filter_by_path(await look(url=scope.url_like_pattern), scope)
    return found


def _filter_by_path(found: FtsCandidates, scope: SearchScope) -> FtsCandidates:
    return found._replace(rows=[row for row in found.rows if scope.matches_url(row["url"])])


def build_hit(group: HitGroup, query: Query, scope: SearchScope) -> Hit:
    row = group.row
    text = row["text"]
    return Hit(
        source=row["source_name"],
        version=row["source_version"],
        generation=row["generation"],
        document=row["document_id"],
        section=row["id"],
        url=_hit_url(row),
        title=row["title"] or title_from_url(row["url"]),
        headings=tuple(row["headings"].split("\n")) if row["headings"] else (),
        anchor=row["anchor"],
        snippet=make_snippet(extract_code(text) if scope.code_only or scope.language else text, query.terms),
        text=text,
        score=group.score,
        fetched_at=parse_time(row["fetched_at"]),
        verified_at=parse_time(row["verified_at"]),
        partial=row["partial"] is not None,
        also=tuple(
            {"source": other["source_name"], "version": other["source_version"], "url": _hit_url(other)}
            for other in sorted(group.also, key=lambda other: version_key(other["source_version"]), reverse=True)
        ),
    )


def _hit_url(row: Row) -> str:
    return with_anchor(row["url"], row["anchor"]) if row["anchor"] else str(row["url"])


@lru_cache(maxsize=64)
def _path_pattern(path: str) -> re.Pattern[str]:
    """Whole parts of a path: ``ref/models``, ``guide/*.html``, ``**/api``.

    What stands between two stars is taken where it comes first, for good: no later place could do better, and to try
    them all would take a server for ever where somebody types many stars.
    """
    pieces = re.split(r"\*{2,}", f"/{path.strip('/')}\0")
    return re.compile("".join(f"(?>.*?{_glob_regex(piece)})" for piece in pieces))


def _glob_regex(glob: str) -> str:
    """A glob without ``**`` as a regular expression; NUL is where a part of a path ends."""
    parts = [re.escape(part).replace(r"\?", "[^/]").replace("\0", "(?:/|$)") for part in glob.split("*")]
    return "".join([parts[0], *(f"(?>[^/]*?{part})" for part in parts[1:])])


def title_from_url(url: str) -> str:
    """What a page without a title is called: the last part of its path."""
    return unquote(url.rstrip("/").rpartition("/")[2]) or url
