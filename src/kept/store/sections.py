"""Sections: stored as a flat list, found by full text."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from kept.model.tokens import FullTextQuery, Term
from kept.store import sources
from kept.store.database import Connection, Row

if TYPE_CHECKING:  # a search does without
    from kept.model.document import Content


async def insert_sections(db: Connection, contents: "Iterable[tuple[int, Content]]") -> None:
    """The sections of these contents, with their full text."""
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


async def refresh_term_statistics(db: Connection) -> None:
    """How common words are, if what is known of it is out of date. It may take a second or two."""
    await db.run("refresh_term_statistics")


async def get_sections_by_document(db: Connection, document: str) -> list[Row]:
    """The sections of a document as the active generation shows it, in order."""
    return await db.all("get_sections_by_document", document=document)


async def of_content(db: Connection, content_id: int) -> list[Row]:
    return await db.all("sections_of_content", content=content_id)


async def count(db: Connection, source: str) -> int:
    row = await db.one("count_sections", source=source)
    return int(row["sections"]) if row else 0


GenerationFilter = Sequence[tuple[str, int]] | None  # a source and one of its numbers; None: whichever are active


class FtsCandidates(NamedTuple):
    """Sections that full text found: their scores by their ids, best first, and those of them that are shown."""

    scores: dict[int, float]
    rows: list[Row]
    has_more: bool  # than were asked for


async def search_sections_fts(
    db: Connection, wanted: FullTextQuery, generations: GenerationFilter, *, limit: int, url: str | None = None
) -> FtsCandidates:
    """The best sections, and what the given generations show of them.

    That may be little, unless it is said what their URLs are like: then only those that are shown there are looked at,
    which takes longer.
    """
    if url is not None and generations is None:
        generations = await sources.active_generations(db)
    shown = _to_json(generations)
    found, rows = await db.all_then(
        "search_sections_fts",
        "sections_in_generations",
        lambda found: {"ids": list(dict.fromkeys(row["id"] for row in found)), "generations": shown},
        **await db.fts_parameters(wanted),
        generations=None if url is None else shown,
        url=url,
        limit=limit,
    )
    scores: dict[int, float] = {}
    for row in found:
        scores.setdefault(row["id"], row["score"])  # found by its names, and by its words
    return FtsCandidates(scores, rows, has_more=len(found) == limit)


async def sample_with_term(db: Connection, term: Term, *, limit: int) -> list[int]:
    """Ids of sections that have this term, whichever come first."""
    query = await db.fts_parameters(FullTextQuery(terms=[term]))
    return [row["id"] for row in await db.all("sample_sections", **query, limit=limit)]


async def in_generations(db: Connection, ids: Sequence[int], generations: GenerationFilter) -> list[Row]:
    """Which of these sections the given generations show, with whatever an answer says about them."""
    return await db.all("sections_in_generations", ids=list(ids), generations=_to_json(generations))


async def delete_by_content(db: Connection, content_id: int) -> None:
    await db.run("delete_sections_of_content", content=content_id)


def _to_json(generations: GenerationFilter) -> str | None:
    return None if generations is None else json.dumps(generations)
