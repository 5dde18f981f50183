"""Finding sections: rank first, then see which of them the asked generations show.

Full text knows contents, not generations. Checking each match for visibility inside the ranked query is three
times slower than ranking more than is needed and looking up the best; when too few of those are shown, the
search looks wider.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from kept.model.url import with_anchor
from kept.search.query import Query
from kept.store import sections
from kept.store.database import Connection, Row, when

OVERFETCH = 60
WIDEST = 4000
SNIPPET = 240


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
        }


async def search(db: Connection, query: Query, generations: Sequence[tuple[str, int]], *, limit: int) -> list[Hit]:
    """The best sections that these generations (source, number) show: those with all the words, then those with any."""
    hits: dict[tuple[int, str], Hit] = {}
    for every in (True, False):
        if len(hits) < limit and (every or len(query.terms) > 1):
            text = db.full_text(query.terms, every=every, without=query.without)
            for hit in await _find(db, text, query, generations, limit=limit, known=len(hits)):
                hits.setdefault((hit.section, hit.document), hit)
    return list(hits.values())[:limit]


async def _find(
    db: Connection, text: str, query: Query, generations: Sequence[tuple[str, int]], *, limit: int, known: int
) -> list[Hit]:
    width = max(OVERFETCH, 2 * limit)
    while True:
        ranked = await sections.search_sections_fts(db, text, limit=width)
        scores = dict(ranked)
        rows = await sections.in_generations(db, list(scores), generations) if scores else []
        if len(rows) >= limit + known or len(ranked) < width or width >= WIDEST:
            rows.sort(key=lambda row: (-scores[row["id"]], row["id"], row["source_name"], row["url"]))
            return [_hit(row, scores[row["id"]], query) for row in rows]
        width *= 4


def _hit(row: Row, score: float, query: Query) -> Hit:
    url, anchor = row["url"], row["anchor"]
    return Hit(
        source=row["source_name"],
        version=row["source_version"],
        generation=row["generation"],
        document=row["document_id"],
        section=row["id"],
        url=with_anchor(url, anchor) if anchor else url,
        title=row["title"] or name_of(url),
        headings=tuple(row["headings"].split("\n")) if row["headings"] else (),
        anchor=anchor,
        snippet=snippet(row["text"], query.words),
        text=row["text"],
        score=score,
        fetched_at=when(row["fetched_at"]),
        verified_at=when(row["verified_at"]),
        partial=row["partial"] is not None,
    )


def name_of(url: str) -> str:
    """What a page without a title is called: the last part of its path."""
    return unquote(url.rstrip("/").rpartition("/")[2]) or url


_HEADING_LINE = re.compile(r"\A#{1,6} [^\n]*\n?")


def snippet(text: str, words: Sequence[str]) -> str:
    """The part of a text, without its heading, where most of the words stand together; the words are marked."""
    body = _HEADING_LINE.sub("", text).replace("**", "")
    flat = " ".join((body.strip() or text).split())
    pattern = re.compile("|".join(rf"\b{re.escape(word)}\w*" for word in words), re.IGNORECASE)
    places = [match.start() for match in pattern.finditer(flat)]
    best = max(places, key=lambda start: sum(start <= place < start + SNIPPET for place in places[:500]), default=0)
    start = max(0, flat.rfind(" ", 0, max(0, best - SNIPPET // 6)) + 1)
    end = len(flat) if start + SNIPPET >= len(flat) else flat.rfind(" ", start, start + SNIPPET)
    end = end if end > start else start + SNIPPET
    marked = pattern.sub(lambda match: f"**{match[0]}**", flat[start:end])
    return f"{'… ' if start else ''}{marked}{' …' if end < len(flat) else ''}"
