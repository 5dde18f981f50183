"""Search: the best sections for a query."""

from collections.abc import Sequence

from kept.errors import WrongCall
from kept.search import search as ranked
from kept.search.query import parse
from kept.search.search import Hit as Hit  # the doors show it
from kept.service.naming import readable, source_of
from kept.store import sources
from kept.store.database import Database


async def search(
    db: Database, text: str, *, labels: Sequence[str] = (), limit: int = 10, generation: int | None = None
) -> list[Hit]:
    """The best sections for a query; across all sources unless some are named."""
    query = parse(text)
    if limit < 1:
        raise WrongCall("--limit should be at least 1.")
    if generation is not None and len(labels) != 1:
        raise WrongCall("A generation belongs to one source: name it with --source.")
    async with db.snapshot() as snapshot:
        asked = [await source_of(snapshot, label) for label in labels] or await sources.all(snapshot)
        shown = [(source.id, generation or source.active_generation) for source in asked]
        if generation is not None:
            await readable(snapshot, asked[0], generation)
        numbered = [(id, number) for id, number in shown if number is not None]
        return await ranked.search(snapshot, query, numbered, limit=limit)
