"""Finding sections by what they mean: the nearest vectors first, then which of them the asked generations show."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from kept.embed.embedder import Embedder
from kept.errors import EmbedderUnavailable, TextRefused
from kept.log import Log
from kept.model.nouns import dataclass
from kept.model.words import Term
from kept.search import search as words
from kept.search.fuse import fuse
from kept.search.grouping import grouped
from kept.search.query import Query
from kept.search.search import Hit, Place
from kept.store import sections, sources, vectors
from kept.store.database import Connection
from kept.store.sections import Generations

log = Log(__name__)

OVERFETCH = 60
WIDEST = 1000

EmbedderOf = Callable[[str], Embedder | None]  # the name of a model -> who makes vectors by it, if anybody here can


async def nearest(
    db: Connection, embedder_of: EmbedderOf, text: str, generations: Generations, *, limit: int
) -> list[tuple[int, float]]:
    """Ids and scores of the sections nearest to a text that these generations show, best first.

    Nothing where nobody can say what the text means: no model serves yet, or its embedder does not answer.
    """
    model = await vectors.serving(db)
    embedder = embedder_of(model.name) if model and model.dimensions else None
    generations = await sources.active_generations(db) if generations is None else generations
    if model is None or embedder is None or not generations:
        return []
    try:
        query = (await embedder.embed([text]))[0]
        if len(query) != model.dimensions:
            raise EmbedderUnavailable(f"{model.name} gives {len(query)} numbers, not {model.dimensions}.")
        if not query.any():  # it has no word in it
            return []
    except (EmbedderUnavailable, TextRefused) as error:
        log.warning("searching by words alone", reason=str(error))
        return []
    width = max(OVERFETCH, 2 * limit)
    while True:
        near = await vectors.nearest(db, model.id, query, limit=width)
        found = await _shown(db, near, generations)
        if len(found) >= limit:
            return found[:limit]
        if width >= WIDEST or len(near) < width:  # it is a small part of what is kept: look at nothing else
            among = await vectors.in_generations(db, model.id, generations)
            near = await vectors.nearest(db, model.id, query, limit=limit, among=among)
            return (await _shown(db, near, generations))[:limit]
        width *= 4


async def _shown(
    db: Connection, near: Sequence[tuple[int, float]], generations: Sequence[tuple[str, int]]
) -> list[tuple[int, float]]:
    scores = dict(near)
    pairs = await vectors.sections_of(db, list(scores), generations) if scores else []
    found = {section: scores[vector] for vector, section in pairs}
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


# Hits ----------------------------------------------------------------------------------------------------------

DEPTH = 50  # places of the nearest that count
SAID = 12  # and of those that words find: more would have them look at other candidates than a search by words alone


@dataclass(frozen=True, slots=True)
class By:
    """What a search goes by."""

    mode: str  # lexical: words; meaning; fused: both
    embedder_of: EmbedderOf


async def search(db: Connection, query: Query, place: Place, *, limit: int, by: By) -> list[Hit]:
    """The best sections in a place, by what the caller goes by. Words do what meaning cannot."""
    depth = max(DEPTH, limit)
    near = await nearest(db, by.embedder_of, _spelled(query.terms), place.generations, limit=depth)
    if not near:
        return await words.search(db, query, place, limit=limit)
    scores = dict(near)
    rows = await sections.in_generations(db, list(scores), place.generations)
    ranked = [
        (scores[row["id"]], row)
        for row in sorted(rows, key=lambda row: (-scores[row["id"]], row["id"], row["source_name"], row["url"]))
        if place.admits(row["url"]) and not any(_spelled([term]) in row["text"].lower() for term in query.without)
    ]
    meant = _by_place(words.hit_of(group, query, place) for group in grouped(ranked))
    if by.mode == "meaning":
        return list(meant.values())[:limit]
    said = _by_place(await words.search(db, query, place, limit=max(SAID, limit)))
    hits = meant | said
    return [replace(hits[key], score=score) for key, score in fuse(list(said), list(meant))[:limit]]


def _by_place(hits: Iterable[Hit]) -> dict[tuple[int, str], Hit]:
    return {(hit.section, hit.document): hit for hit in hits}


def _spelled(terms: Iterable[Term]) -> str:
    return " ".join(word for term in terms for word in term.words)
