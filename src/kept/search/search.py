"""Lexical search: candidates from full text, filtered by generation, then ranked and grouped.

The full text index knows contents, not generations. Checking the visibility of every match inside the ranked query is
three times slower than fetching more candidates than needed and checking those; every match is checked only when too
few of these are visible.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache, partial
from typing import Any, NamedTuple
from urllib.parse import unquote

from kept.model.section import FtsCandidates, GenerationFilter, SectionMatch
from kept.model.tokens import FullTextQuery, language_token, symbol_token
from kept.model.url import with_anchor
from kept.search.hit_groups import HitGroup, group_hits, spread_pages
from kept.search.query import Query
from kept.search.rank import rank_sections
from kept.search.snippet import extract_code, make_snippet
from kept.search.versions import version_key
from kept.store import sections
from kept.store.database import Connection

MIN_CANDIDATES = 80
WIDENING_FACTOR = 10  # for the second try, when grouping leaves too few hits or pages exist in several versions
MIN_GROUPED = 60  # candidates whose duplicates are looked for
ENOUGH_FULL_MATCHES = 40  # with this many sections that have all words, those with only some are not searched for


class NamedSources(NamedTuple):
    """The sources that a query names: their names, each with its word, and their generations."""

    words: Mapping[str, str]
    generations: Sequence[tuple[str, int]]


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchScope:
    """Which sections are searched: those of these generations, below this path, their whole text or only code."""

    generations: GenerationFilter
    path: str = ""
    code_only: bool = False
    language: str = ""
    named: NamedSources = field(default_factory=lambda: NamedSources({}, []))

    @property
    def url_like_pattern(self) -> str:
        """Return a LIKE pattern for URLs. It may match more than ``matches_url``, never less."""
        if not self.path:
            return "%"
        escaped = re.sub(r"([!%_])", r"!\1", self.path.strip("/"))
        return f"%/{escaped.replace('*', '%').replace('?', '_')}%"

    def matches_url(self, url: str) -> bool:
        return not self.path or _path_pattern(self.path).match(url.partition("://")[2]) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """A section that was found, with its document, source and generation."""

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
    also: tuple[dict[str, str], ...] = ()  # the same text in other sources and versions
    context: str | None = None  # the text around it, if requested

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
    """Return the best sections: those with all words of the query, and those with some of them if these are few."""
    width = max(MIN_CANDIDATES, 2 * limit)
    groups, more = await _search_candidates(db, query, scope, limit=limit, width=width)
    if more and (len(groups) < limit or any(group.match.version_count > 1 for group in groups)):
        groups, _ = await _search_candidates(db, query, scope, limit=limit, width=WIDENING_FACTOR * width)
    return [build_hit(group, query, scope) for group in groups[:limit]]


async def _search_candidates(
    db: Connection, query: Query, scope: SearchScope, *, limit: int, width: int
) -> tuple[list[HitGroup], bool]:
    """Return the groups among the best ``width`` candidates, best first, and whether there are more candidates."""
    matches, has_more = await find_candidates(db, query, scope, limit=limit, width=width)
    ranked = rank_sections(query, matches, query.frequencies, scope.named.words)
    # The last candidates are rarely shown. Where pages exist in several versions, most are duplicates.
    is_cut = len(ranked) > max(MIN_GROUPED, 4 * limit) and not any(match.version_count > 1 for match in matches)
    groups = spread_pages(group_hits(ranked[: max(MIN_GROUPED, 4 * limit)] if is_cut else ranked))
    return groups, has_more or is_cut


async def find_candidates(
    db: Connection, query: Query, scope: SearchScope, *, limit: int, width: int = MIN_CANDIDATES
) -> tuple[list[SectionMatch], bool]:
    """Return the best ``width`` sections by full text with all words, as many with some, and whether there are more."""
    query = _without_named_sources(query, scope)
    matches, has_more = await _match_candidates(db, query, scope, limit=limit, width=width)
    if scope.named.words and any(match.source_name not in scope.named.words for match in matches):
        named = replace(scope, generations=scope.named.generations)
        more, _ = await _match_candidates(db, query, named, limit=limit, width=width)
        matches = list({(match.id, match.document_id): match for match in (*matches, *more)}.values())
    return matches, has_more


async def _match_candidates(
    db: Connection, query: Query, scope: SearchScope, *, limit: int, width: int
) -> tuple[list[SectionMatch], bool]:
    full = await _fetch_candidates(db, query, scope, match_all=True, limit=limit, width=width)
    has_enough = len(full.matches) >= max(ENOUGH_FULL_MATCHES, limit) or len(query.terms) == 1
    some = full if has_enough else await _fetch_candidates(db, query, scope, match_all=False, limit=limit, width=width)
    matches = {(match.id, match.document_id): match for match in (*full.matches, *some.matches)}
    return list(matches.values()), some.has_more


def _without_named_sources(query: Query, scope: SearchScope) -> Query:
    """Return the query without the words that name a source: its sections need not have them."""
    naming = set(scope.named.words.values())
    terms = tuple(term for term in query.terms if term.words not in {(word,) for word in naming} or term.tokens)
    return replace(query, terms=terms) if terms else query


async def _fetch_candidates(
    db: Connection, query: Query, scope: SearchScope, *, match_all: bool, limit: int, width: int
) -> FtsCandidates:
    fts_query = FullTextQuery(
        terms=query.terms,
        match_all=match_all,
        excluded_terms=query.excluded,
        symbol_tokens=query.names if match_all else (*query.names, *map(symbol_token, query.inner_names)),
        code_only=scope.code_only or bool(scope.language),
        language_token=language_token(scope.language) if scope.language else None,
    )
    fetch = partial(sections.search_sections_fts, db, fts_query, scope.generations, limit=width)
    candidates = _filter_by_path(await fetch(), scope)
    if len(candidates.matches) < limit and candidates.has_more:
        candidates = _filter_by_path(await fetch(url=scope.url_like_pattern), scope)
    return candidates


def _filter_by_path(candidates: FtsCandidates, scope: SearchScope) -> FtsCandidates:
    return candidates._replace(matches=[match for match in candidates.matches if scope.matches_url(match.url)])


def build_hit(group: HitGroup, query: Query, scope: SearchScope) -> Hit:
    match, text = group.match, group.match.text
    return Hit(
        source=match.source_name,
        version=match.source_version,
        generation=match.generation,
        document=match.document_id,
        section=match.id,
        url=_hit_url(match),
        title=match.title or title_from_url(match.url),
        headings=tuple(match.headings.split("\n")) if match.headings else (),
        anchor=match.anchor,
        snippet=make_snippet(extract_code(text) if scope.code_only or scope.language else text, query.terms),
        text=text,
        score=group.score,
        fetched_at=match.fetched_at,
        verified_at=match.verified_at,
        partial=match.is_partial,
        also=tuple(
            {"source": other.source_name, "version": other.source_version, "url": _hit_url(other)}
            for other in sorted(group.also, key=lambda other: version_key(other.source_version), reverse=True)
        ),
    )


def _hit_url(match: SectionMatch) -> str:
    return with_anchor(match.url, match.anchor) if match.anchor else match.url


@lru_cache(maxsize=64)
def _path_pattern(path: str) -> re.Pattern[str]:
    """Compile a path filter, which matches whole path segments: ``ref/models``, ``guide/*.html``, ``**/api``.

    The groups are atomic: the text between two stars is matched where it first occurs, without backtracking. A later
    occurrence could not do better, and trying them all would take exponential time for a filter of many stars.
    """
    pieces = re.split(r"\*{2,}", f"/{path.strip('/')}\0")
    return re.compile("".join(f"(?>.*?{_glob_regex(piece)})" for piece in pieces))


def _glob_regex(glob: str) -> str:
    """Return a glob without ``**`` as a regular expression. NUL stands for the end of a path segment."""
    parts = [re.escape(part).replace(r"\?", "[^/]").replace("\0", "(?:/|$)") for part in glob.split("*")]
    return "".join([parts[0], *(f"(?>[^/]*?{part})" for part in parts[1:])])


def title_from_url(url: str) -> str:
    """Return a title for a page without one: the last segment of its path."""
    return unquote(url.rstrip("/").rpartition("/")[2]) or url
