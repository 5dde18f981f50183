"""Vector search: the nearest vectors, filtered by generation, alone or fused with lexical search."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from kept.embed.embedder import Embedder
from kept.errors import EmbedderUnavailable, TextRejected
from kept.log import Log
from kept.model.section import GenerationFilter
from kept.model.tokens import Term
from kept.search.fuse import fuse_rankings
from kept.search.hit_groups import group_hits
from kept.search.query import Query
from kept.search.search import Hit, SearchScope, build_hit, lexical_search
from kept.store import sections, sources, vectors
from kept.store.database import Connection

log = Log(__name__)

MIN_VECTOR_CANDIDATES = 60
MAX_VECTOR_CANDIDATES = 1000

EmbedderLookup = Callable[[str], Embedder | None]  # by the name of a model; None: not available here


async def nearest_sections(
    db: Connection, find_embedder: EmbedderLookup, text: str, generations: GenerationFilter, *, limit: int
) -> list[tuple[int, float]]:
    """Return ids and scores of the visible sections nearest to a text, best first.

    Returns nothing when no model serves yet or its embedder is not available: the caller falls back to lexical search.
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
        if not query.any():  # a zero vector: the text has no word that the model knows
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
        if width >= MAX_VECTOR_CANDIDATES or len(near) < width:
            # These generations are a small part of the store: compare with their vectors alone.
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

VECTOR_RANKING_DEPTH = 50
LEXICAL_RANKING_DEPTH = 12  # more would widen the candidates beyond those of a lexical search alone


@dataclass(frozen=True, slots=True)
class VectorSearchOptions:
    """How a search uses vectors."""

    mode: str  # meaning: vectors alone; fused: both
    find_embedder: EmbedderLookup


async def search_with_vectors(
    db: Connection, query: Query, scope: SearchScope, *, limit: int, vector_options: VectorSearchOptions
) -> list[Hit]:
    """Return the best sections by vectors, or by both rankings. Falls back to lexical search without vectors."""
    depth = max(VECTOR_RANKING_DEPTH, limit)
    near = await nearest_sections(db, vector_options.find_embedder, _query_text(query), scope.generations, limit=depth)
    if not near:
        return await lexical_search(db, query, scope, limit=limit)
    scores = dict(near)
    matches = await sections.in_generations(db, list(scores), scope.generations)
    matches.sort(key=lambda match: (-scores[match.id], match.id, match.source_name, match.url))
    ranked = [
        (scores[match.id], match)
        for match in matches
        if scope.matches_url(match.url)
        and not any(_terms_text([term]) in match.text.lower() for term in query.excluded)
    ]
    vector_hits = _by_section(build_hit(group, query, scope) for group in group_hits(ranked))
    if vector_options.mode == "meaning":
        return list(vector_hits.values())[:limit]
    lexical_hits = _by_section(await lexical_search(db, query, scope, limit=max(LEXICAL_RANKING_DEPTH, limit)))
    hits = vector_hits | lexical_hits
    fused = fuse_rankings(list(lexical_hits), list(vector_hits))[:limit]
    return [replace(hits[key], score=score) for key, score in fused]


def _by_section(hits: Iterable[Hit]) -> dict[tuple[int, str], Hit]:
    return {(hit.section, hit.document): hit for hit in hits}


def _query_text(query: Query) -> str:
    return _terms_text(query.terms) or query.text


def _terms_text(terms: Iterable[Term]) -> str:
    return " ".join(word for term in terms for word in term.words)
