"""Finding sections by what they mean: the nearest vectors first, then which of them the asked generations show."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kept.embed.embedder import Embedder
from kept.errors import EmbedderUnavailable, TextRejected
from kept.log import Log
from kept.model.tokens import Term
from kept.search import search as words
from kept.search.fuse import fuse_rankings
from kept.search.hit_groups import group_hits
from kept.search.query import Query
from kept.search.search import Hit, SearchScope
from kept.store import sections, sources, vectors
from kept.store.database import Connection
from kept.store.sections import GenerationFilter

log = Log(__name__)

MIN_VECTOR_CANDIDATES = 60
MAX_VECTOR_CANDIDATES = 1000

EmbedderLookup = Callable[[str], Embedder | None]  # the name of a model -> who makes vectors by it, if anybody here can


async def nearest_sections(
    db: Connection, find_embedder: EmbedderLookup, text: str, generations: GenerationFilter, *, limit: int
) -> list[tuple[int, float]]:
    """Ids and scores of the sections nearest to a text that these generations show, best first.

    Nothing where nobody can say what the text means: no model serves yet, or its embedder does not answer.
    """
    model = await vectors.serving_model(db)
    embedder = find_embedder(model.name) if model and model.dimensions else None
    generations = await sources.active_generations(db) if generations is None else generations
    if model is None or embedder is None or not generations:
        return []
    try:
        query = (await embedder.embed([text]))[0]
        if len(query) != model.dimensions:
            raise EmbedderUnavailable(f"{model.name} gives {len(query)} numbers, not {model.dimensions}.")
        if not query.any():  # it has no word in it
            return []
    except (EmbedderUnavailable, TextRejected) as error:
        log.warning("searching by words alone", reason=str(error))
        return []
    width = max(MIN_VECTOR_CANDIDATES, 2 * limit)
    while True:
        near = await vectors.nearest(db, model.id, query, limit=width)
        found = await _visible_sections(db, near, generations)
        if len(found) >= limit:
            return found[:limit]
        if (
            width >= MAX_VECTOR_CANDIDATES or len(near) < width
        ):  # it is a small part of what is kept: look at nothing else
            among = await vectors.in_generations(db, model.id, generations)
            near = await vectors.nearest(db, model.id, query, limit=limit, among=among)
            return (await _visible_sections(db, near, generations))[:limit]
        width *= 4


async def _visible_sections(
    db: Connection, near: Sequence[tuple[int, float]], generations: Sequence[tuple[str, int]]
) -> list[tuple[int, float]]:
    scores = dict(near)
    pairs = await vectors.sections_of(db, list(scores), generations) if scores else []
    found = {section: scores[vector] for vector, section in pairs}
    return sorted(found.items(), key=lambda item: (-item[1], item[0]))


# Hits ----------------------------------------------------------------------------------------------------------

VECTOR_RANKING_DEPTH = 50  # places of the nearest that count
LEXICAL_RANKING_DEPTH = (
    12  # and of those that words find: more would have them look at other candidates than a search by words alone
)


@dataclass(frozen=True, slots=True)
class VectorSearchOptions:
    """What a search goes by."""

    mode: str  # lexical: words; meaning; fused: both
    find_embedder: EmbedderLookup


async def search_with_vectors(
    db: Connection, query: Query, scope: SearchScope, *, limit: int, vector_options: VectorSearchOptions
) -> list[Hit]:
    """The best sections in a place, by what the caller goes by. Words do what meaning cannot."""
    depth = max(VECTOR_RANKING_DEPTH, limit)
    near = await nearest_sections(
        db, vector_options.find_embedder, _terms_text(query.terms), scope.generations, limit=depth
    )
    if not near:
        return await words.lexical_search(db, query, scope, limit=limit)
    scores = dict(near)
    rows = await sections.in_generations(db, list(scores), scope.generations)
    ranked = [
        (scores[row["id"]], row)
        for row in sorted(rows, key=lambda row: (-scores[row["id"]], row["id"], row["source_name"], row["url"]))
        if scope.matches_url(row["url"])
        and not any(_terms_text([term]) in row["text"].lower() for term in query.excluded)
    ]
    meant = _by_section(words.build_hit(group, query, scope) for group in group_hits(ranked))
    if vector_options.mode == "meaning":
        return list(meant.values())[:limit]
    said = _by_section(await words.lexical_search(db, query, scope, limit=max(LEXICAL_RANKING_DEPTH, limit)))
    hits = meant | said
    return [replace(hits[key], score=score) for key, score in fuse_rankings(list(said), list(meant))[:limit]]


def _by_section(hits: Iterable[Hit]) -> dict[tuple[int, str], Hit]:
    return {(hit.section, hit.document): hit for hit in hits}


def _terms_text(terms: Iterable[Term]) -> str:
    return " ".join(word for term in terms for word in term.words)
