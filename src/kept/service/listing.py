"""What a generation shows, page by page; what is kept in all."""

import base64
import binascii
from dataclasses import dataclass
from typing import Any

from kept.errors import InvalidInput
from kept.search.search import title_from_url
from kept.service.lookup import find_readable_generation, find_source
from kept.store import documents, jobs, sources
from kept.store.database import ReadableDatabase, parse_time


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage:
    """Some of the documents that a generation shows, by URL, and the cursor behind them."""

    source: str
    generation: int
    documents: list[dict[str, Any]]
    next: str | None


async def list_documents(
    db: ReadableDatabase, label: str, *, generation: int | None = None, cursor: str | None = None, limit: int = 100
) -> DocumentPage:
    """The documents of a source, as the active generation shows them, or another one.

    A cursor names the generation that it began with: all its pages are of that one, whatever is activated meanwhile.
    """
    begun, after = _decode_cursor(cursor) if cursor else (generation, "")
    async with db.snapshot() as snapshot:
        source = await find_source(snapshot, label)
        number = begun if begun is not None else (source.active_generation or 0)
        await find_readable_generation(snapshot, source, number)
        rows = await documents.of_generation(snapshot, source.id, number, after=after, limit=limit + 1)
    shown = [
        {
            "document": row["id"],
            "url": row["url"],
            "title": row["title"] or title_from_url(row["url"]),
            "content_type": row["content_type"],
            "lifecycle": row["lifecycle"],
            "first_seen": parse_time(row["first_seen"]).isoformat(),
            "fetched_at": parse_time(row["fetched_at"]).isoformat(),
        }
        for row in rows[:limit]
    ]
    more = _encode_cursor(number, rows[limit - 1]["url"]) if len(rows) > limit else None
    return DocumentPage(source=source.label, generation=number, documents=shown, next=more)


async def content_token(db: ReadableDatabase, labels: list[str] | None = None) -> str:
    """A text that is the same as long as these sources (or all) show the same."""
    async with db.snapshot() as snapshot:
        chosen = {(await find_source(snapshot, label)).id for label in labels or ()}
        active = await sources.list_active_numbers(snapshot)
    return " ".join(f"{id}:{number}" for id, number in active.items() if not chosen or id in chosen)


async def count_jobs_and_documents(db: ReadableDatabase) -> tuple[dict[str, int], dict[str, int]]:
    """Jobs by status; how much is kept."""
    async with db.snapshot() as snapshot:
        return await jobs.count_by_status(snapshot), await sources.count_totals(snapshot)


def _encode_cursor(generation: int, url: str) -> str:
    return base64.urlsafe_b64encode(f"{generation} {url}".encode()).decode().rstrip("=")


def _decode_cursor(cursor: str) -> tuple[int, str]:
    try:
        number, _, url = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().partition(" ")
        if not (number.isascii() and number.isdigit() and len(number) < 10 and url.isprintable()):
            raise ValueError
        return int(number), url
    except (ValueError, binascii.Error):
        raise InvalidInput("This is no cursor. Say the 'next' of the page before, or none.") from None
