"""Search: the best sections for a query, and the versions of a source."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, get_args

from kept.errors import InvalidInput, NotFound
from kept.model.search_request import HitKind, SearchRequest
from kept.model.section import GenerationFilter
from kept.model.source import Source, parse_label
from kept.search import search as ranked
from kept.search import versions
from kept.search.hit_context import CHARACTERS_PER_TOKEN, HitContext, expand_context, truncate_at_line
from kept.search.query import Query, QueryFilters, parse_query
from kept.search.search import Hit as Hit  # for the interfaces, which may not import search
from kept.search.search import NamedSources, SearchScope
from kept.search.suggest import check_query
from kept.search.suggest import suggest_spelling as find_spelling
from kept.service.context import Services, share_snapshot
from kept.service.lookup import find_readable_generation, find_source
from kept.store import sections, sources
from kept.store.database import Connection, ReadableDatabase

DEFAULT_TOKEN_BUDGET = 100_000  # of texts and contexts together: a thousand pages with contexts are too much
SECTION_BITS = 20  # the lowest bits of a section's id: its position; the others are its content

if TYPE_CHECKING:  # a search by words does without
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions as VectorSearchOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """The hits of a query, and notes about them."""

    query: str
    hits: list[Hit]
    did_you_mean: str | None = None  # the spelling that was searched, if a word of the query is unknown
    without: tuple[str, ...] = ()  # what the query excluded
    vectors_missing: int | None = None  # sections without a vector so far; None: searches use no vectors
    not_reranked: str | None = None  # why the configured reranker was not used


async def run_search(
    services: Services, request: SearchRequest, snapshot: ReadableDatabase | None = None
) -> SearchResult:
    """Search as the settings have it: with vectors, with a reranker. Corrects words that no section has.

    The result is read from one snapshot: a new one, unless the caller shares its own.
    """
    vectors, reranking, missing = services.vector_search(), services.reranking(), None
    async with share_snapshot(snapshot or services.db) as db:
        found = await _search(db, request, vectors, reranking)
        if vectors:
            missing = sum((await count_missing_vectors(db, request.labels, request.version)).values())
    return replace(found, vectors_missing=missing, not_reranked=reranking.error if reranking else None)


async def search_sections(
    db: ReadableDatabase,
    request: SearchRequest,
    *,
    vectors: "VectorSearchOptions | None" = None,
    reranking: "Reranking | None" = None,
) -> list[Hit]:
    """Return the best sections for a query, by words alone unless ``vectors`` are given. Raises InvalidInput."""
    return (await _search(db, request, vectors, reranking)).hits


async def _search(
    db: ReadableDatabase,
    request: SearchRequest,
    vectors: "VectorSearchOptions | None",
    reranking: "Reranking | None",
) -> SearchResult:
    asked, limit = request, request.limit
    if limit < 1 or (request.budget is not None and request.budget < 1):
        raise InvalidInput("--limit and --budget should be at least 1.")
    async with db.snapshot() as snapshot:
        request = await _apply_filters(snapshot, request)
    if request.generation is not None and len(request.labels) != 1:
        raise InvalidInput("A generation belongs to one source: name it with --source.")
    context = _parse_context(request.context)
    if request.kind not in get_args(HitKind):
        raise InvalidInput(f"There is no kind '{request.kind}' of hits: text or code.")
    async with db.snapshot() as snapshot:
        generations = await _resolve_generations(snapshot, request.labels, request.version, request.generation)
        checked = await check_query(snapshot, request.text, generations)
        query = checked.query
        scope = SearchScope(
            generations=generations,
            named=await _named_sources(snapshot, query, generations),
            path=request.path,
            code_only=request.kind == "code",
            language=request.language,
        )
        candidates = max(limit, reranking.top_n) if reranking else limit
        if vectors is None or scope.code_only or scope.language:
            hits = await ranked.lexical_search(snapshot, query, scope, limit=candidates)
        else:
            from kept.search import vector_search

            hits = await vector_search.search_with_vectors(
                snapshot, query, scope, limit=candidates, vector_options=vectors
            )
        if reranking:
            hits = (await reranking.apply(checked.corrected or request.text, hits))[:limit]
        if context or request.budget:
            hits = await _fit_to_budget(snapshot, hits, context, request.budget or DEFAULT_TOKEN_BUDGET)
    return SearchResult(
        query=asked.text,
        hits=hits,
        did_you_mean=checked.corrected,
        without=tuple(" ".join(term.words) for term in query.excluded),
    )


async def _apply_filters(db: Connection, request: SearchRequest) -> SearchRequest:
    """Return the request with the filters that its text names. A source that is not kept stays a word of the text."""
    filters = parse_query(request.text).filters
    if filters == QueryFilters():
        return request
    kept = await sources.all(db)
    known = {source.name for source in kept} | {source.label for source in kept}
    labels = [label for label in filters.sources if label in known]
    words = [label for label in filters.sources if label not in known]
    return replace(
        request,
        text=" ".join([parse_query(request.text).text, *words]),
        labels=request.labels or tuple(labels),
        version=request.version or filters.version or None,
        kind=filters.kind or request.kind,
        language=request.language or filters.language,
    )


async def _named_sources(db: Connection, query: Query, generations: GenerationFilter) -> NamedSources:
    """Return the sources that the first or last word of a query names, among those that are searched."""
    words = [term.words[0] for term in (query.terms[:1] + query.terms[-1:]) if len(term.words) == 1]
    found = await sources.named_by_words(db, words) if words else []
    searched = None if generations is None else dict(generations)
    found = [one for one in found if searched is None or one[0] in searched]
    return NamedSources(
        {name: word for _, _, name, word in found},
        [(id, searched[id] if searched else active) for id, active, _, _ in found],
    )


async def count_missing_vectors(
    db: ReadableDatabase, labels: Sequence[str] = (), version: str | None = None
) -> dict[str, int]:
    """Count the sections without a vector, by source; of all sources unless some are named."""
    from kept.store import vectors

    async with db.snapshot() as snapshot:
        wanted = await _resolve_sources(snapshot, labels, version)
        model = await vectors.serving_model(snapshot)
        missing = await vectors.count_unembedded_sections(snapshot, model.id) if model else {}
    return {source.label: missing[source.id] for source in wanted if source.id in missing}


async def suggest_spelling(
    db: ReadableDatabase, text: str, *, labels: Sequence[str] = (), version: str | None = None
) -> str | None:
    """Return a query with the words that no section has replaced by similar ones; None where there is nothing to do."""
    async with db.snapshot() as snapshot:
        return await find_spelling(snapshot, text, await _resolve_generations(snapshot, labels, version, None))


async def index_progress(db: ReadableDatabase) -> int | None:
    """Return how far an older version's index is rebuilt: meanwhile answers change. None when there is none."""
    async with db.snapshot() as snapshot:
        pending = await sections.pending_rebuild(snapshot)
    return pending[0] if pending else None


async def find_version(db: ReadableDatabase, source: str, target: str = versions.LATEST) -> Source:
    """Return the source of this name whose version matches a target best: ``18``, ``^18``, ``~18.2``, ``latest``."""
    async with db.snapshot() as snapshot:
        found = await _best_versions(snapshot, [source], target)
    return found[0]


async def list_versions(db: ReadableDatabase, source: str) -> list[str]:
    """List the versions of this name, from old to new; a source without a version is an empty text."""
    async with db.snapshot() as snapshot:
        kept = [one.version for one in await sources.all(snapshot) if one.name == source]
        if not kept:
            await find_source(snapshot, source)  # raises with a suggestion
    return sorted(kept, key=versions.version_key)


async def _resolve_generations(
    db: Connection, labels: Sequence[str], version: str | None, generation: int | None
) -> GenerationFilter:
    if not labels and version is None:
        return None
    wanted = await _resolve_sources(db, labels, version)
    if generation is not None:
        await find_readable_generation(db, wanted[0], generation)
    shown = [(source.id, generation or source.active_generation) for source in wanted]
    return [(id, number) for id, number in shown if number is not None]


async def _resolve_sources(db: Connection, labels: Sequence[str], version: str | None) -> list[Source]:
    if version is not None:
        return await _best_versions(db, labels, version)
    return [await find_source(db, label) for label in labels] or await sources.all(db)


async def _best_versions(db: Connection, labels: Sequence[str], target: str) -> list[Source]:
    """Return, of each name, the source whose version matches the target best. Raises NotFound where none does."""
    everything = await sources.all(db)
    names = [parse_label(label)[0] for label in labels] or [source.name for source in everything]
    found: list[Source] = []
    for name in dict.fromkeys(names):
        by_version = {source.version: source for source in everything if source.name == name}
        if labels and not by_version:
            await find_source(db, name)  # raises with a suggestion
        label = versions.best_match(target, by_version)
        if label is not None:
            found.append(by_version[label])
        elif labels:
            there = ", ".join(sorted(filter(None, by_version), key=versions.version_key, reverse=True))
            raise NotFound(f"No version of {name} answers to '{target}'. There is: {there or 'one without a label'}.")
    if not found:
        raise NotFound(f"No source has a version that answers to '{target}'. 'kept list' shows what there is.")
    return found


def _parse_context(context: str | None) -> HitContext | None:
    try:
        return HitContext(context) if context else None
    except ValueError:
        raise InvalidInput(f"There is no context '{context}': {', '.join(HitContext)}.") from None


async def _fit_to_budget(db: Connection, hits: Sequence[Hit], context: HitContext | None, budget: int) -> list[Hit]:
    """Return the hits that fit, with their contexts. The first is truncated rather than left out."""
    left = budget * CHARACTERS_PER_TOKEN
    fitted: list[Hit] = []
    for hit in hits:
        if len(hit.text) > left:
            if fitted:
                break
            hit = replace(hit, text=truncate_at_line(hit.text, left))
        left -= len(hit.text)
        if context:
            page = await sections.of_content(db, hit.section >> SECTION_BITS)
            hit = replace(hit, context=expand_context(page, hit.section, context, max_characters=left))
            left -= len(hit.context or "")
        fitted.append(hit)
    return fitted
