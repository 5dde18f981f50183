"""Contents and their sections: stored once, however many documents share them."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence

from kept.model.document import Content
from kept.store import sections
from kept.store.compression import compress_all, decompress
from kept.store.database import Connection


async def get_or_insert(db: Connection, contents: Mapping[str, Content]) -> dict[str, int]:
    """The ids of these contents, by hash. What was not there is stored, with its sections and full text.

    Whatever is reused is locked against garbage collection until the transaction ends.
    """
    held = await _lock_by_hash(db, contents)
    missing = sorted(contents.keys() - held.keys())
    if missing:
        stored = [contents[hash] for hash in missing]
        packed = await asyncio.to_thread(
            compress_all, [content.markdown for content in stored]
        )  # others go on meanwhile
        rows = [
            {"hash": content.hash, "title": content.title, "markdown": markdown, "size": len(content.markdown)}
            for content, markdown in zip(stored, packed, strict=True)
        ]
        await db.run_many("insert_content", rows)
        added = await _lock_by_hash(db, missing)
        # Another worker may have stored one of them meanwhile; then its sections are there, and stay as they are.
        await sections.insert_sections(db, ((added[hash], contents[hash]) for hash in missing))
        held |= added
    return held


async def get_markdown(db: Connection, id: int) -> str:
    """The markdown of a content; empty if it is not there."""
    row = await db.one("content", id=id)
    return decompress(row["markdown"]) if row else ""


async def list_unreferenced(db: Connection, *, after: int, limit: int) -> list[int]:
    """Contents that no version has, as it seems: all of them may have to be looked at, so nobody should wait for it."""
    return [row["id"] for row in await db.all("unreferenced_contents", after=after, limit=limit)]


async def lock(db: Connection, ids: Sequence[int]) -> list[int]:
    """Those of them that nobody uses at the moment, locked so that nobody starts to."""
    return [row["id"] for row in await db.all("lock_contents_for_deletion", ids=list(ids))]


async def delete(db: Connection, id: int) -> bool:
    """True if it is gone, with everything that was made of it; False if somebody needs it after all. It is locked."""
    if await db.one("unreferenced_content", id=id) is None:
        return False
    await sections.delete_by_content(db, id)
    return await db.run("delete_content", id=id) > 0


async def _lock_by_hash(db: Connection, hashes: Iterable[str]) -> dict[str, int]:
    return {row["hash"]: row["id"] for row in await db.all("lock_contents_by_hash", hashes=sorted(hashes))}
