"""Search: the best sections for a query."""

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, TypedDict, Unpack, get_args

from kept.errors import NoSuchThing, WrongCall
from kept.model.nouns import dataclass
from kept.model.source import Source, parse_label
from kept.search import search as ranked
from kept.search import versions
from kept.search.context import CHARACTERS_PER_TOKEN, Context, around, cut
from kept.search.query import parse
from kept.search.search import Hit as Hit  # the doors show it
from kept.search.search import Place
from kept.service.house import House
from kept.service.naming import readable, source_of
from kept.store import sections, sources
from kept.store.database import Connection, Database
from kept.store.sections import Generations

Kind = Literal["text", "code"]
Around = Literal["parent", "siblings", "document"]
AROUND = 100_000  # tokens of texts and contexts together, where no budget says otherwise: a thousand pages are too much
SECTION_BITS = 20  # of a section's id: its position; the rest is its content

if TYPE_CHECKING:  # a search by words does without
    from kept.search.meaning import By as By
    from kept.search.rerank import SecondLook


class Narrowed(TypedDict, total=False):
    """What else may be said about a search: see ``search``."""

    limit: int
    generation: int | None
    path: str
    kind: str
    language: str
    context: str | None
    budget: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """What a query found, and what the person should know about it."""

    query: str
    hits: list[Hit]
    did_you_mean: str | None = None  # another spelling, if nothing was found
    vectors_missing: int | None = None  # sections that only words can find so far; None: searches go by words
    not_reranked: str | None = None  # why, if there is a reranker


async def find(
    house: House, text: str, *, labels: Sequence[str] = (), version: str | None = None, **narrowed: Unpack[Narrowed]
) -> Found:
    """``search`` as every door offers it, by whatever searches go by here."""
    by, second = house.searches_by(), house.second_look()
    hits = await search(house.db, text, labels=labels, version=version, by=by, second=second, **narrowed)
    return Found(
        query=text,
        hits=hits,
        did_you_mean=None if hits else await did_you_mean(house.db, text, labels=labels, version=version),
        vectors_missing=sum((await vectors_missing(house.db, labels, version)).values()) if by else None,
        not_reranked=second.failed if second else None,
    )


async def search(
    db: Database,
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
    by: "By | None" = None,
    second: "SecondLook | None" = None,
) -> list[Hit]:
    """The best sections for a query; across all sources unless some are named. By words, unless said otherwise;
    in the order of a second look, if there is one.

    A version narrows to the sources of each name that answer best to it (``18``, ``^18``, ``latest``), a path to what
    lies below it, the kind ``code`` or a language to what stands in code blocks. Context is what stands around each
    hit. A budget, in tokens, is what texts and contexts may take together: as many hits as fit.
    """
    query = parse(text)
    if limit < 1 or (budget is not None and budget < 1):
        raise WrongCall("--limit and --budget should be at least 1.")
    if generation is not None and len(labels) != 1:
        raise WrongCall("A generation belongs to one source: name it with --source.")
    wanted = _context(context)
    if kind not in get_args(Kind):
        raise WrongCall(f"There is no kind '{kind}' of hits: text or code.")
    async with db.snapshot() as snapshot:
        generations = await _generations(snapshot, labels, version, generation)
        place = Place(generations=generations, path=path, code=kind == "code", language=language)
        wide = max(limit, second.hits) if second else limit
        if by is None or place.code or language:
            hits = await ranked.search(snapshot, query, place, limit=wide)
        else:
            from kept.search import meaning

            hits = await meaning.search(snapshot, query, place, limit=wide, by=by)
        if second:
            hits = (await second.order(text, hits))[:limit]
        if wanted or budget:
            hits = await _fitted(snapshot, hits, wanted, budget or AROUND)
        return hits


async def vectors_missing(db: Database, labels: Sequence[str] = (), version: str | None = None) -> dict[str, int]:
    """How many sections of each source only words can find so far; across all sources unless some are named."""
    from kept.store import vectors

    async with db.snapshot() as snapshot:
        asked = await _sources(snapshot, labels, version)
        model = await vectors.serving(snapshot)
        lacking = await vectors.missing(snapshot, model.id) if model else {}
    return {source.label: lacking[source.id] for source in asked if source.id in lacking}


async def did_you_mean(
    db: Database, text: str, *, labels: Sequence[str] = (), version: str | None = None
) -> str | None:
    """Another spelling of a query that found nothing; None if nothing there is like it."""
    from kept.search.suggest import suggest  # most searches find something

    async with db.snapshot() as snapshot:
        return await suggest(snapshot, parse(text), await _generations(snapshot, labels, version, None))


async def find_version(db: Database, source: str, target: str = versions.LATEST) -> Source:
    """The source of this name whose version answers best to the target: ``18``, ``^18``, ``~18.2``, ``latest``."""
    async with db.snapshot() as snapshot:
        found = await _answering(snapshot, [source], target)
    return found[0]


async def versions_of(db: Database, source: str) -> list[str]:
    """The versions of this name that are kept, from old to new; one without a label is empty."""
    async with db.snapshot() as snapshot:
        kept = [one.version for one in await sources.all(snapshot) if one.name == source]
        if not kept:
            await source_of(snapshot, source)  # says which source was perhaps meant
    return sorted(kept, key=versions.order)


async def _generations(
    db: Connection, labels: Sequence[str], version: str | None, generation: int | None
) -> Generations:
    if not labels and version is None:
        return None
    asked = await _sources(db, labels, version)
    if generation is not None:
        await readable(db, asked[0], generation)
    shown = [(source.id, generation or source.active_generation) for source in asked]
    return [(id, number) for id, number in shown if number is not None]


async def _sources(db: Connection, labels: Sequence[str], version: str | None) -> list[Source]:
    if version is not None:
        return await _answering(db, labels, version)
    return [await source_of(db, label) for label in labels] or await sources.all(db)


async def _answering(db: Connection, labels: Sequence[str], target: str) -> list[Source]:
    """Of each name, the source that answers best to the target; at least one."""
    everything = await sources.all(db)
    names = [parse_label(label)[0] for label in labels] or [source.name for source in everything]
    found: list[Source] = []
    for name in dict.fromkeys(names):
        by_version = {source.version: source for source in everything if source.name == name}
        if labels and not by_version:
            await source_of(db, name)  # says what there is instead
        label = versions.best(target, by_version)
        if label is not None:
            found.append(by_version[label])
        elif labels:
            there = ", ".join(sorted(filter(None, by_version), key=versions.order, reverse=True))
            raise NoSuchThing(
                f"No version of {name} answers to '{target}'. There is: {there or 'one without a label'}."
            )
    if not found:
        raise NoSuchThing(f"No source has a version that answers to '{target}'. 'kept list' shows what there is.")
    return found


def _context(wanted: str | None) -> Context | None:
    try:
        return Context(wanted) if wanted else None
    except ValueError:
        raise WrongCall(f"There is no context '{wanted}': {', '.join(Context)}.") from None


async def _fitted(db: Connection, hits: Sequence[Hit], wanted: Context | None, budget: int) -> list[Hit]:
    """The hits with their contexts, as far as they fit. The first is cut rather than left out."""
    left = budget * CHARACTERS_PER_TOKEN
    fitted: list[Hit] = []
    for hit in hits:
        if len(hit.text) > left:
            if fitted:
                break
            hit = replace(hit, text=cut(hit.text, left))
        left -= len(hit.text)
        if wanted:
            page = await sections.of_content(db, hit.section >> SECTION_BITS)
            hit = replace(hit, context=around(page, hit.section, wanted, room=left))
            left -= len(hit.context or "")
        fitted.append(hit)
    return fitted
