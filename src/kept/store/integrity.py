"""Checks that a database is sound: its file, its rows, and its contents by their hashes."""

from kept.model.document import Content
from kept.store import export
from kept.store.compression import ZstdError
from kept.store.database import Connection

MAX_PROBLEMS = 20  # shown of each kind


async def engine_problems(db: Connection) -> list[str]:
    return [row["what"] for row in await db.all("engine_problems", limit=MAX_PROBLEMS)]


async def find_violations(db: Connection) -> dict[str, list[str]]:
    """Return the rules that rows break: the rule, and the first few rows that break it."""
    found = {
        "every version has a content and a document": await db.all("versions_without_content", limit=MAX_PROBLEMS),
        "every section has a content": await db.all("sections_without_content", limit=MAX_PROBLEMS),
        "every section is in the full text": await db.all("sections_without_full_text", limit=MAX_PROBLEMS),
        "the full text has nothing but sections": await db.all("full_text_without_section", limit=MAX_PROBLEMS),
        "every source points at its active generation": await db.all("wrong_active_generations", limit=MAX_PROBLEMS),
        "a generation counts the documents that it shows": await db.all("wrong_document_counts", limit=MAX_PROBLEMS),
        "active documents are shown, deleted ones are not": await db.all("wrong_lifecycles", limit=MAX_PROBLEMS),
    }
    return {rule: [f"{row['id']} {row['what']}".strip() for row in rows] for rule, rows in found.items() if rows}


async def list_contents(db: Connection, after: int, *, limit: int) -> list[tuple[int, str, str]]:
    """Return the next contents: id, hash, title."""
    rows = await db.all("contents_after", after=after, limit=limit)
    return [(row["id"], row["hash"], row["title"]) for row in rows]


async def try_load_content(db: Connection, id: int) -> Content | None:
    """Return a content with its sections; None if it cannot be decompressed."""
    try:
        return await export.load_content(db, id)
    except (ValueError, EOFError, AssertionError, ZstdError):
        return None
