"""Contents and their sections: stored once, however many documents share them.

Garbage collection lists those that seem unused, without a lock; locks those that no crawl is about to use; and deletes
those that are unused still.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from kept.model.document import Content, Place
from kept.store import sections
from kept.store.compression import compress_all, compress_places, decompress, decompress_places
from kept.store.database import Connection


async def get_or_insert(db: Connection, contents: Mapping[str, Content]) -> dict[str, int]:
    """Return the ids of these contents, by hash. New ones are stored, with their sections and full text.

    Existing ones are locked against garbage collection until the transaction ends.
    """
    ids = await _lock_by_hash(db, contents)
    missing = sorted(contents.keys() - ids.keys())
    if missing:
        new = [contents[hash] for hash in missing]
        # In a thread: the event loop goes on meanwhile.
        compressed = await asyncio.to_thread(compress_all, [content.markdown for content in new])
        rows = [
            {
                "hash": content.hash,
                "title": content.title,
                "markdown": markdown,
                "size": len(content.markdown),
                "kind": content.kind.value,
                "places": compress_places(content.places),
            }
            for content, markdown in zip(new, compressed, strict=True)
        ]
        await db.run_many("insert_content", rows)
        added = await _lock_by_hash(db, missing)
        # Another worker may have stored one of them meanwhile, with its sections: these are left as they are.
        await sections.insert_sections(db, ((added[hash], contents[hash]) for hash in missing))
        ids |= added
    return ids


async def get_markdown(db: Connection, id: int) -> str:
    """Return the Markdown of a content; empty if there is none of this id."""
    row = await db.one("content", id=id)
    return decompress(row["markdown"]) if row else ""


async def get_places(db: Connection, id: int) -> tuple[Place, ...]:
    """Return the places of a content, in the order of the page; none if a reader from before places made it."""
    row = await db.one("places_of_content", id=id)
    return decompress_places(row["places"]) if row else ()


async def get_title(db: Connection, id: int) -> str:
    row = await db.one("content", id=id)
    return str(row["title"]) if row else ""


async def list_unreferenced(db: Connection, *, after: int, limit: int) -> list[int]:
    """Return contents that no version seems to have. It may read all of them: call it in a snapshot, without locks."""
    return [row["id"] for row in await db.all("unreferenced_contents", after=after, limit=limit)]


async def lock(db: Connection, ids: Sequence[int]) -> list[int]:
    """Lock contents against use. Returns those that no other transaction is using."""
    return [row["id"] for row in await db.all("lock_contents_for_deletion", ids=list(ids))]


async def delete(db: Connection, ids: Sequence[int]) -> int:
    """Delete locked contents with their sections, but none that a version uses after all. Returns how many."""
    unused = [row["id"] for row in await db.all("still_unreferenced_contents", ids=list(ids))]
    await sections.delete_by_content(db, unused)
    return await db.run("delete_contents", ids=unused)


async def _lock_by_hash(db: Connection, hashes: Iterable[str]) -> dict[str, int]:
    return {row["hash"]: row["id"] for row in await db.all("lock_contents_by_hash", hashes=sorted(hashes))}
