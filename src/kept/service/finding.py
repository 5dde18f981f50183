"""Search: the best sections for a query."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from kept.errors import WrongCall
from kept.search import search as ranked
from kept.search.query import parse
from kept.search.search import Hit as Hit  # the doors show it
from kept.service.naming import readable, source_of
from kept.store import sources
from kept.store.database import Database

if TYPE_CHECKING:  # a search by words does without
    from kept.search.meaning import By as By


async def search(
    db: Database,
    text: str,
    *,
    labels: Sequence[str] = (),
    limit: int = 10,
    generation: int | None = None,
    by: "By | None" = None,
) -> list[Hit]:
    """The best sections for a query; across all sources unless some are named. By words, unless said otherwise."""
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
        if by is None:
            return await ranked.search(snapshot, query, numbered, limit=limit)
        from kept.search import meaning

        return await meaning.search(snapshot, query, numbered, limit=limit, by=by)


async def vectors_missing(db: Database, labels: Sequence[str] = ()) -> dict[str, int]:
    """How many sections of each source only words can find so far; across all sources unless some are named."""
    from kept.store import vectors

    async with db.snapshot() as snapshot:
        asked = [await source_of(snapshot, label) for label in labels] or await sources.all(snapshot)
        model = await vectors.serving(snapshot)
        lacking = await vectors.missing(snapshot, model.id) if model else {}
    return {source.label: lacking[source.id] for source in asked if source.id in lacking}
