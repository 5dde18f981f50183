"""Sections: stored as a flat list, found by full text."""

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from kept.model.words import Term, Wanted
from kept.store.database import Connection, Row

if TYPE_CHECKING:  # a search does without
    from kept.model.document import Content, Section


async def insert_sections(db: Connection, contents: "Iterable[tuple[int, Content]]") -> None:
    """The sections of these contents, with their full text."""
    from kept.model.document import section_id
    from kept.store.indexing import indexed

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
            **indexed(content.title, above, section)._asdict(),
        }
        for content_id, content in contents
        for section, above, path in _with_paths(content.sections)
    ]
    await db.run_many("insert_section", rows)
    await db.run_many("index_section", rows)


async def renew_statistics(db: Connection) -> None:
    """How common words are, if what is known of it is out of date. It may take a second or two."""
    await db.run("renew_word_statistics")


async def get_sections_by_document(db: Connection, document: str) -> list[Row]:
    """The sections of a document as the active generation shows it, in order."""
    return await db.all("get_sections_by_document", document=document)


async def of_content(db: Connection, content_id: int) -> list[Row]:
    return await db.all("sections_of_content", content=content_id)


async def count(db: Connection, source: str) -> int:
    row = await db.one("count_sections", source=source)
    return int(row["sections"]) if row else 0


async def search_sections_fts(
    db: Connection,
    wanted: Wanted,
    *,
    limit: int,
    generations: Sequence[tuple[str, int]] | None = None,
    url: str = "%",
) -> list[tuple[int, float]]:
    """Ids and scores of sections, best first.

    Whether they are shown is the caller's question, unless generations are given and what their URLs are like: that
    is complete, and takes longer.
    """
    shown = None if generations is None else json.dumps(generations)
    query = db.full_text(wanted)
    rows = await db.all("search_sections_fts", **query, generations=shown, url=url, limit=limit)
    best: dict[int, float] = {}
    for row in rows:
        best.setdefault(row["id"], row["score"])  # found by its names, and by its words
    return list(best.items())


async def some_with(db: Connection, term: Term, *, limit: int) -> list[int]:
    """Ids of sections that have this term, whichever come first."""
    query = db.full_text(Wanted(terms=[term]))
    return [row["id"] for row in await db.all("some_sections_with", **query, limit=limit)]


async def in_generations(db: Connection, ids: Sequence[int], generations: Sequence[tuple[str, int]]) -> list[Row]:
    """Which of these sections the given generations (source, number) show, with whatever an answer says about them."""
    return await db.all("sections_in_generations", ids=list(ids), generations=json.dumps(generations))


async def delete_of_content(db: Connection, content_id: int) -> None:
    await db.run("delete_sections_of_content", content=content_id)


def _with_paths(sections: "Sequence[Section]") -> "Iterable[tuple[Section, str, str]]":
    """Each section with the headings above it, and with its own below those, one a line."""
    paths: list[str] = []
    for section in sections:
        above = "" if section.parent is None else paths[section.parent]
        paths.append("\n".join(part for part in (above, section.heading) if part))
        yield section, above, paths[-1]
