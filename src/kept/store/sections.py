"""Sections: stored as a flat list, found by full text."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kept.model.section import FtsCandidates, GenerationFilter, SectionMatch, StoredSection
from kept.model.tokens import FullTextQuery, Term
from kept.store import sources
from kept.store.database import Connection, Row, parse_time

if TYPE_CHECKING:  # a search does without
    from kept.model.document import Content
    from kept.model.index_fields import IndexFields


async def insert_sections(db: Connection, contents: "Iterable[tuple[int, Content]]") -> None:
    """Insert the sections of contents, with their full text."""
    from kept.model.document import section_id
    from kept.model.index_fields import build_index_fields, with_heading_paths

    rows = [
        {
            "id": section_id(content_id, section.position),
            "content": content_id,
            "parent": None if section.parent is None else section_id(content_id, section.parent),
            "position": section.position,
            "level": section.level,
            "heading": section.heading,
            "path": path,
            "anchor": section.anchor,
            "content_text": section.text,
            "entry": section.entry,
            "entries": json.dumps(section.entries) if section.entries else "",
            "names": words.names,
            "headings": words.headings,
            "text": words.text,
            "code": words.code,
        }
        for content_id, content in contents
        for (section, _, path), words in zip(
            with_heading_paths(content.sections),
            content.index_fields or build_index_fields(content.title, content.sections),
            strict=True,
        )
    ]
    await db.run_many("insert_section", rows)
    await db.run_many("index_section", rows)


async def replace_index(db: Connection, sections: "Sequence[tuple[int, IndexFields]]") -> None:
    """Replace the full text of stored sections."""
    rows = [
        {"id": id, "names": words.names, "headings": words.headings, "text": words.text, "code": words.code}
        for id, words in sections
    ]
    await db.run_many("unindex_section", [{"id": row["id"]} for row in rows])
    await db.run_many("reindex_section", rows)


async def pending_rebuild(db: Connection) -> tuple[int, int] | None:
    """Return between which contents the full text is still an older version's; None where none is."""
    row = await db.one("pending_index_rebuild")
    return (row["done"], row["last"]) if row else None


async def next_to_rebuild(db: Connection, *, limit: int) -> list[int]:
    """Return the next contents whose full text is an older version's, and lock the mark of what is done."""
    await db.one("lock_index_rebuild")
    return [row["id"] for row in await db.all("contents_to_rebuild", limit=limit)]


async def mark_rebuilt(db: Connection, content_id: int | None) -> None:
    """Note that all contents up to this one are rebuilt; None: all."""
    if content_id is None:
        await db.run("end_index_rebuild")
    else:
        await db.run("advance_index_rebuild", done=content_id)


async def refresh_term_statistics(db: Connection) -> None:
    """Count how common words are, if that is out of date. It may take a second or two."""
    await db.run("refresh_term_statistics")


async def of_content(db: Connection, content_id: int) -> list[StoredSection]:
    """Return the sections of a content, in the order of the page."""
    return [
        StoredSection(
            id=row["id"],
            parent_id=row["parent_section_id"],
            position=row["position"],
            level=row["level"],
            heading=row["heading"],
            headings=row["headings"],
            anchor=row["anchor"],
            text=row["text"],
            entry=row["entry"],
            entries=_parse_entries(row["entries"]),
        )
        for row in await db.all("sections_of_content", content=content_id)
    ]


async def count(db: Connection, source: str) -> int:
    row = await db.one("count_sections", source=source)
    return int(row["sections"]) if row else 0


async def search_sections_fts(
    db: Connection, wanted: FullTextQuery, generations: GenerationFilter, *, limit: int, url: str | None = None
) -> FtsCandidates:
    """Return the best sections by full text, and those of them that the given generations show.

    Few of the best may be visible. With a LIKE pattern for their ``url``, visibility is checked for every match, which
    is slower and misses none.
    """
    if url is not None and generations is None:
        generations = await sources.active_generations(db)
    visible = _to_json(generations)
    found, rows = await db.all_then(
        "search_sections_fts",
        "sections_in_generations",
        lambda found: {"ids": list(dict.fromkeys(row["id"] for row in found)), "generations": visible},
        **await db.fts_parameters(wanted),
        generations=None if url is None else visible,
        url=url,
        limit=limit,
    )
    scores: dict[int, float] = {}
    for row in found:
        scores.setdefault(row["id"], row["score"])  # a section may be found twice: by symbols and by words
    return FtsCandidates(scores, list(map(_section_match, rows)), has_more=len(found) == limit)


async def count_with_terms(db: Connection, terms: "Sequence[Term]", *, limit: int) -> dict[Term, int]:
    """Count the sections that have each of these terms, up to a limit, whether or not a generation shows them."""
    by_query = {db.term_query(term): term for term in terms}
    rows = await db.all("count_sections_with_terms", queries=list(by_query), limit=limit)
    return dict.fromkeys(terms, 0) | {by_query[row["query"]]: row["sections"] for row in rows}


async def sample_with_term(db: Connection, term: Term, *, limit: int) -> list[int]:
    """Return the ids of some sections with this term, in no particular order."""
    query = await db.fts_parameters(FullTextQuery(terms=[term]))
    return [row["id"] for row in await db.all("sample_sections", **query, limit=limit)]


async def in_generations(db: Connection, ids: Sequence[int], generations: GenerationFilter) -> list[SectionMatch]:
    """Return those of these sections that the given generations show, once for each document that has them."""
    rows = await db.all("sections_in_generations", ids=list(ids), generations=_to_json(generations))
    return list(map(_section_match, rows))


def _section_match(row: Row) -> SectionMatch:
    # In the order of the fields: keywords would take twice as long, for hundreds of rows a search.
    return SectionMatch(
        row["id"],
        row["position"],
        row["heading"],
        row["headings"],
        row["anchor"],
        row["text"],
        row["entry"],
        _parse_entries(row["entries"]),
        row["title"],
        row["kind"],
        row["document_id"],
        row["source_id"],
        row["url"],
        parse_time(row["fetched_at"]),
        parse_time(row["verified_at"]),
        row["root"],
        row["source_name"],
        row["source_version"],
        row["versions"],
        row["generation"],
        row["partial"] is not None,
    )


def _parse_entries(entries: str) -> tuple[tuple[str, str], ...]:
    return tuple([(name, anchor) for name, anchor in json.loads(entries)]) if entries else ()


async def delete_by_content(db: Connection, content_ids: Sequence[int]) -> None:
    await db.run("delete_sections_of_contents", contents=list(content_ids))


def _to_json(generations: GenerationFilter) -> str | None:
    return None if generations is None else json.dumps(generations)
