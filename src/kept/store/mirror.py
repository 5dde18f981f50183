"""What an export takes of a source, and how an import puts it back: rows in, plain facts out.

The facts are those of one database or the other alike: moments as text, links as lists, no row numbers.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from kept.model.document import SECTIONS_PER_CONTENT, Content, Section
from kept.model.generation import Tally
from kept.model.source import Source, SourceSettings
from kept.store import sections
from kept.store.database import Connection, Row, when
from kept.store.packing import pack_links, unpack, unpack_links

Facts = dict[str, Any]

FIRST_ID = "00000000-0000-0000-0000-000000000000"

_GENERATION = ("number", "base", "state", "mode", "documents", "partial", "reason")
_DOCUMENT = ("first_generation", "lifecycle", "missed_crawls", "retry_count", "reason")
_VERSION = (
    "born",
    "died",
    "url",
    "content_type",
    "etag",
    "last_modified",
    "raw_hash",
    "signature",
    "depth",
    "canonical",
)
FACTS_OF_VERSION = (*_VERSION, "fetched_at", "read_again", "links")  # what an import needs of one


async def generations(db: Connection, source: Source) -> list[Facts]:
    """The generations that can be read. One that was made with today's settings does not repeat them."""
    today = source.settings.as_json()
    found = []
    for row in await db.all("mirrored_generations", source=source.id):
        settings = SourceSettings.from_json(json.loads(row["settings"])).as_json()
        facts = _taken(row, _GENERATION, moments=("created_at", "activated_at"), flags=("whole", "changed"))
        facts |= {"counts": Tally(**json.loads(row["tally"])).as_json()} | (
            {} if settings == today else {"settings": settings}
        )
        found.append(facts)
    return found


async def documents(db: Connection, source: Source, *, after: str, limit: int) -> list[tuple[str, Facts, list[Row]]]:
    """The next documents by id: (id, what is known of it, its versions as rows)."""
    active = source.active_generation
    rows = await db.all("mirrored_documents", source=source.id, active=active, after=after, limit=limit)
    if not rows:
        return []
    first, last = rows[0]["id"], rows[-1]["id"]
    versions: dict[str, list[Row]] = {row["id"]: [] for row in rows}
    for row in await db.all("mirrored_versions", source=source.id, active=active, first=first, last=last):
        versions[row["document_id"]].append(row)
    moments = ("first_seen", "since", "verified_at", "last_seen")
    return [(row["id"], _taken(row, _DOCUMENT, moments=moments), versions[row["id"]]) for row in rows]


def version(row: Row) -> Facts:
    facts = _taken(row, _VERSION, moments=("fetched_at",), flags=("read_again",))
    return facts | {"content_hash": row["content_hash"], "links": list(unpack_links(row["links"]))}


async def content(db: Connection, id: int) -> Content:
    row = await db.one("content", id=id)
    assert row is not None, "a version has its content"
    return Content(
        hash=row["hash"],
        title=row["title"],
        markdown=unpack(row["markdown"]),
        sections=tuple(
            Section(
                position=one["position"],
                parent=None if one["parent_section_id"] is None else one["parent_section_id"] % SECTIONS_PER_CONTENT,
                level=one["level"],
                heading=one["heading"],
                anchor=one["anchor"],
                text=one["text"],
            )
            for one in await sections.of_content(db, id)
        ),
    )


async def insert_source(db: Connection, id: str, facts: Mapping[str, Any], generations: Iterable[Facts]) -> None:
    """A source with its generations; it shows none of them yet."""
    told = list(generations)
    values = {name: facts[name] for name in ("name", "version", "kind", "root", "created_at")}
    settings, following = json.dumps(facts["settings"]), max(one["number"] for one in told) + 1
    await db.run("insert_mirrored_source", id=id, settings=settings, next=following, **values)
    await db.run_many(
        "insert_mirrored_generation",
        [
            {name: one[name] for name in (*_GENERATION, "created_at", "activated_at", "whole", "changed")}
            | {
                "source": id,
                "settings": json.dumps(one["settings"]) if "settings" in one else settings,
                "tally": json.dumps(one["counts"]),
            }
            for one in told
        ],
    )


async def insert_documents(db: Connection, source: str, documents: Iterable[tuple[str, Facts]]) -> None:
    names = (*_DOCUMENT, "first_seen", "since", "verified_at")
    await db.run_many(
        "insert_mirrored_document",
        [{name: facts[name] for name in names} | {"id": id, "source": source} for id, facts in documents],
    )


async def insert_versions(db: Connection, source: str, versions: Iterable[tuple[str, int, Facts]]) -> None:
    """Versions as (document, content id, facts)."""
    await db.run_many(
        "insert_mirrored_version",
        [
            {name: facts[name] for name in (*_VERSION, "fetched_at", "read_again")}
            | {"source": source, "document": document, "content": content, "links": pack_links(facts["links"])}
            for document, content, facts in versions
        ],
    )


async def count_documents(db: Connection, source: str, generation: int) -> None:
    await db.run("count_mirrored_documents", source=source, generation=generation)


def _taken(row: Row, names: Iterable[str], *, moments: Iterable[str] = (), flags: Iterable[str] = ()) -> Facts:
    facts = {name: row[name] for name in names}
    facts |= {name: when(row[name]).isoformat(timespec="microseconds") if row[name] else None for name in moments}
    return facts | {name: bool(row[name]) for name in flags}
