"""One document: readable, its past, and what changed between two versions of it."""

import asyncio

from fastapi import APIRouter, Request, Response

from kept.errors import NoSuchThing
from kept.model.generation import GenerationState
from kept.model.nouns import dataclass
from kept.serve.web.diff import compare
from kept.serve.web.page import Number, PageRoute, go_to, house_of, show
from kept.serve.web.rendering import Text
from kept.service import browsing, generations, reading
from kept.service.house import House
from kept.service.reading import History

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """A version of a document, and a generation in which it can be read."""

    generation: int
    until: int | None  # the generation that showed it no more
    title: str
    url: str
    fetched_at: str


@router.get("/documents/{id}")
async def document(request: Request, id: str, generation: Number | None = None) -> Response:
    house = house_of(request)
    history, past = await _past(house, id)
    if generation is None and past and past[-1].until is not None:
        return go_to(f"/documents/{id}?generation={past[-1].generation}")  # it is not shown any more
    page = await reading.read(house.db, id, generation=generation, rules=house.rules)
    headings = await browsing.outline(house.db, page.document, page.generation)
    text = await asyncio.to_thread(Text, page.markdown, page.url)
    found = await browsing.documents_at(house.db, history.source, page.generation, text.links)
    then = "" if generation is None else f"?generation={generation}"
    kept = {url: f"/documents/{other}{then}" for url, other in found.items()}
    return show(
        "document.html",
        request,
        page=page,
        label=history.source,
        then=generation is not None and bool(past) and _is_over(past[-1], page.generation),
        headings=headings,
        titled=text.has_title,
        body=await asyncio.to_thread(text.html, headings, kept),
        past=past,
        at=_place(past, page.generation),
    )


@router.get("/documents/{id}/diff")
async def difference(request: Request, id: str, a: Number | None = None, b: Number | None = None) -> Response:
    """What changed from one generation to another; between the last two versions, unless they are named."""
    house = house_of(request)
    history, past = await _past(house, id)
    if not past:
        raise NoSuchThing("This document has no version that could be compared.")
    a = past[max(0, len(past) - 2)].generation if a is None else a
    b = past[-1].generation if b is None else b
    before, after = [await reading.read(house.db, id, generation=one, rules=house.rules) for one in (a, b)]
    lines, whole = await asyncio.to_thread(compare, before.markdown, after.markdown)
    return show(
        "diff.html",
        request,
        label=history.source,
        past=past,
        at=(_place(past, a), _place(past, b)),
        before=before,
        after=after,
        lines=lines,
        whole=whole,
        same=not any(line.differs for line in lines),
    )


def _is_over(latest: Moment, generation: int) -> bool:
    """Whether something else is shown by now, or nothing."""
    return generation < latest.generation or latest.until is not None


async def _past(house: House, id: str) -> tuple[History, list[Moment]]:
    """A document's versions that some generation still shows, oldest first."""
    history = await reading.history(house.db, id)
    _, found = await generations.list_generations(house.db, history.source)
    readable = [one.number for one in found if one.state in (GenerationState.ACTIVE, GenerationState.RETIRED)]
    moments = []
    for one in history.versions:
        born, until = one["generation"], one["until"]
        number = next((at for at in readable if born <= at and (until is None or at < until)), None)
        if number is not None:
            facts = {name: one[name] for name in ("until", "title", "url", "fetched_at")}
            moments.append(Moment(generation=number, **facts))
    return history, moments


def _place(past: list[Moment], generation: int) -> int:
    """Which of the versions a generation shows, counted from 0."""
    return max((at for at, one in enumerate(past) if one.generation <= generation), default=0)
