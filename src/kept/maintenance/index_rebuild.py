"""Rebuilds the full text of what an older version of Kept indexed, a batch of pages at a time.

Searches go on meanwhile: a page that is not rebuilt yet is found as before, by its words. A pass may be killed
anywhere: each batch is one transaction, which also moves the mark behind which nothing is left to do.
"""

import time
from dataclasses import dataclass

from kept.model.document import NamedEntry, Section, section_position
from kept.model.index_fields import build_index_fields
from kept.store import contents, sections
from kept.store.database import Connection, Database

BATCH_SIZE = 50
PASS_SECONDS = 20.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RebuildReport:
    """The result of one pass."""

    contents: int = 0


async def rebuild_index(db: Database, *, seconds: float = PASS_SECONDS) -> RebuildReport:
    """Rebuild for some seconds, or until all is done."""
    done, end = 0, time.monotonic() + seconds
    while True:
        async with db.snapshot() as snapshot:  # most passes find nothing, and write nothing
            if not await sections.pending_rebuild(snapshot):
                return RebuildReport(contents=done)
        async with db.transaction() as tx:
            batch = await sections.next_to_rebuild(tx, limit=BATCH_SIZE)
            for content_id in batch:
                await _rebuild(tx, content_id)
            await sections.mark_rebuilt(tx, batch[-1] if batch else None)
        done += len(batch)
        if time.monotonic() >= end:
            return RebuildReport(contents=done)


async def _rebuild(tx: Connection, content_id: int) -> None:
    stored = await sections.of_content(tx, content_id)
    fields = build_index_fields(
        await contents.get_title(tx, content_id),
        [
            Section(
                one.position,
                None if one.parent_id is None else section_position(one.parent_id),
                one.level,
                one.heading,
                one.anchor,
                one.text,
                one.entry,
                tuple(NamedEntry(*entry) for entry in one.entries),
            )
            for one in stored
        ],
    )
    await sections.replace_index(tx, [(one.id, words) for one, words in zip(stored, fields, strict=True)])
