"""Search: the best sections for a query."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, get_args

from kept.errors import InvalidInput, NotFound
from kept.model.section import GenerationFilter
from kept.model.source import Source, parse_label
from kept.search import search as ranked
from kept.search import versions
from kept.search.hit_context import CHARACTERS_PER_TOKEN, HitContext, expand_context, truncate_at_line
from kept.search.query import parse_query
from kept.search.search import Hit as Hit  # the doors show it
from kept.search.search import SearchScope
from kept.service.context import Services
from kept.service.lookup import find_readable_generation, find_source
from kept.store import sections, sources
from kept.store.database import Connection, ReadableDatabase

HitKind = Literal["text", "code"]
ContextKind = Literal["parent", "siblings", "document"]
DEFAULT_TOKEN_BUDGET = (
    100_000  # tokens of texts and contexts together, where no budget says otherwise: a thousand pages are too much
)
SECTION_BITS = 20  # of a section's id: its position; the rest is its content

if TYPE_CHECKING:  # a search by words does without
    from kept.search.rerank import Reranking
    from kept.search.vector_search import VectorSearchOptions as VectorSearchOptions


class SearchOptions(TypedDict, total=False):
    """What else may be said about a search: see ``search``."""

    limit: int
    generation: int | None
    path: str
    kind: str
    language: str
    context: str | None
    budget: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchResult:
    """What a query found, and what the person should know about it."""

    query: str
    hits: list[Hit]
    did_you_mean: str | None = None  # another spelling, if nothing was found
    vectors_missing: int | None = None  # sections that only words can find so far; None: searches go by words
    not_reranked: str | None = None  # why, if there is a reranker


async def run_search(
    services: Services,
    text: str,
    *,
    labels: Sequence[str] = (),
    version: str | None = None,
    **options: Unpack[SearchOptions],
) -> SearchResult:
    """``search`` as every door offers it, by whatever searches go by here."""
    by, second = services.vector_search(), services.reranking()
    hits = await search_sections(
        services.db, text, labels=labels, version=version, vectors=by, reranking=second, **options
    )
    return SearchResult(
        query=text,
        hits=hits,
        did_you_mean=None if hits else await suggest_spelling(services.db, text, labels=labels, version=version),
        vectors_missing=sum((await count_missing_vectors(services.db, labels, version)).values()) if by else None,
        not_reranked=second.error if second else None,
    )


async def search_sections(
    db: ReadableDatabase,
    text: str,
    *,
    labels: Sequence[str] = (),
    limit: int = 10,
    generation: int | None = None,
    version: str | None = None,
    path: str = "",
    kind: str = "text",
    language: str = "",
    context: str | None = None,
    budget: int | None = None,
    vectors: "VectorSearchOptions | None" = None,
    reranking: "Reranking | None" = None,
) -> list[Hit]:
    """The best sections for a query; across all sources unless some are named. By words, unless said otherwise;
    in the order of a second look, if there is one.

    A version narrows to the sources of each name that answer best to it (``18``, ``^18``, ``latest``), a path to what
    lies below it, the kind ``code`` or a language to what stands in code blocks. Context is what stands around each
    hit. A budget, in tokens, is what texts and contexts may take together: as many hits as fit.
    """
    query = parse_query(text)
    if limit < 1 or (budget is not None and budget < 1):
        raise InvalidInput("--limit and --budget should be at least 1.")
    if generation is not None and len(labels) != 1:
        raise InvalidInput("A generation belongs to one source: name it with --source.")
    wanted = _parse_context(context)
    if kind not in get_args(HitKind):
        raise InvalidInput(f"There is no kind '{kind}' of hits: text or code.")
    async with db.snapshot() as snapshot:
        generations = await _resolve_generations(snapshot, labels, version, generation)
        place = SearchScope(generations=generations, path=path, code_only=kind == "code", language=language)
        wide = max(limit, reranking.top_n) if reranking else limit
        if vectors is None or place.code_only or language:
            hits = await ranked.lexical_search(snapshot, query, place, limit=wide)
        else:
            from kept.search import vector_search

            hits = await vector_search.search_with_vectors(snapshot, query, place, limit=wide, vector_options=vectors)
        if reranking:
            hits = (await reranking.apply(text, hits))[:limit]
        if wanted or budget:
            hits = await _fit_to_budget(snapshot, hits, wanted, budget or DEFAULT_TOKEN_BUDGET)
        return hits


async def count_missing_vectors(
    db: ReadableDatabase, labels: Sequence[str] = (), version: str | None = None
) -> dict[str, int]:
    """How many sections of each source only words can find so far; across all sources unless some are named."""
    from kept.store import vectors

    async with db.snapshot() as snapshot:
        asked = await _resolve_sources(snapshot, labels, version)
        model = await vectors.serving_model(snapshot)
        lacking = await vectors.count_unembedded_sections(snapshot, model.id) if model else {}
    return {source.label: lacking[source.id] for source in asked if source.id in lacking}


async def suggest_spelling(
    db: ReadableDatabase, text: str, *, labels: Sequence[str] = (), version: str | None = None
) -> str | None:
    """Another spelling of a query that found nothing; None if nothing there is like it."""
    from kept.search.suggest import suggest_spelling  # most searches find something

    async with db.snapshot() as snapshot:
        return await suggest_spelling(
            snapshot, parse_query(text), await _resolve_generations(snapshot, labels, version, None)
        )


async def find_version(db: ReadableDatabase, source: str, target: str = versions.LATEST) -> Source:
    """The source of this name whose version answers best to the target: ``18``, ``^18``, ``~18.2``, ``latest``."""
    async with db.snapshot() as snapshot:
        found = await _best_versions(snapshot, [source], target)
    return found[0]


async def list_versions(db: ReadableDatabase, source: str) -> list[str]:
    """The versions of this name that are kept, from old to new; one without a label is empty."""
    async with db.snapshot() as snapshot:
        kept = [one.version for one in await sources.all(snapshot) if one.name == source]
        if not kept:
            await find_source(snapshot, source)  # says which source was perhaps meant
    return sorted(kept, key=versions.version_key)


async def _resolve_generations(
    db: Connection, labels: Sequence[str], version: str | None, generation: int | None
) -> GenerationFilter:
    if not labels and version is None:
        return None
    asked = await _resolve_sources(db, labels, version)
    if generation is not None:
        await find_readable_generation(db, asked[0], generation)
    shown = [(source.id, generation or source.active_generation) for source in asked]
    return [(id, number) for id, number in shown if number is not None]


async def _resolve_sources(db: Connection, labels: Sequence[str], version: str | None) -> list[Source]:
    if version is not None:
        return await _best_versions(db, labels, version)
    return [await find_source(db, label) for label in labels] or await sources.all(db)


async def _best_versions(db: Connection, labels: Sequence[str], target: str) -> list[Source]:
    """Of each name, the source that answers best to the target; at least one."""
    everything = await sources.all(db)
    names = [parse_label(label)[0] for label in labels] or [source.name for source in everything]
    found: list[Source] = []
    for name in dict.fromkeys(names):
        by_version = {source.version: source for source in everything if source.name == name}
        if labels and not by_version:
            await find_source(db, name)  # says what there is instead
        label = versions.best_match(target, by_version)
        if label is not None:
            found.append(by_version[label])
        elif labels:
            there = ", ".join(sorted(filter(None, by_version), key=versions.version_key, reverse=True))
            raise NotFound(f"No version of {name} answers to '{target}'. There is: {there or 'one without a label'}.")
    if not found:
        raise NotFound(f"No source has a version that answers to '{target}'. 'kept list' shows what there is.")
    return found


def _parse_context(wanted: str | None) -> HitContext | None:
    try:
        return HitContext(wanted) if wanted else None
    except ValueError:
        raise InvalidInput(f"There is no context '{wanted}': {', '.join(HitContext)}.") from None


async def _fit_to_budget(db: Connection, hits: Sequence[Hit], wanted: HitContext | None, budget: int) -> list[Hit]:
    """The hits with their contexts, as far as they fit. The first is cut rather than left out."""
    left = budget * CHARACTERS_PER_TOKEN
    fitted: list[Hit] = []
    for hit in hits:
        if len(hit.text) > left:
            if fitted:
                break
            hit = replace(hit, text=truncate_at_line(hit.text, left))
        left -= len(hit.text)
        if wanted:
            page = await sections.of_content(db, hit.section >> SECTION_BITS)
            hit = replace(hit, context=expand_context(page, hit.section, wanted, max_characters=left))
            left -= len(hit.context or "")
        fitted.append(hit)
    return fitted
