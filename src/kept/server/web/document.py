"""One document: readable, its past, and what changed between two versions of it."""

import asyncio
from dataclasses import dataclass

from fastapi import APIRouter, Request, Response

from kept.errors import NotFound
from kept.server.web.diff import diff_rows
from kept.server.web.markdown_html import MarkdownPage
from kept.server.web.page import GenerationParam, PageRoute, get_services, redirect_to, render_page
from kept.service import browsing, documents, generations
from kept.service.context import Services
from kept.service.documents import DocumentHistory

router = APIRouter(route_class=PageRoute)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadableVersion:
    """A version of a document, and a generation in which it can be read."""

    generation: int
    until: int | None  # the generation that showed it no more
    title: str
    url: str
    fetched_at: str


@router.get("/documents/{id}")
async def show_document(request: Request, id: str, generation: GenerationParam | None = None) -> Response:
    house = get_services(request)
    history, past = await _readable_versions(house, id)
    if generation is None and past and past[-1].until is not None:
        return redirect_to(f"/documents/{id}?generation={past[-1].generation}")  # it is not shown any more
    page = await documents.read_document(house.db, id, generation=generation, rules=house.lifecycle_rules)
    headings = await browsing.get_outline(house.db, page.document, page.generation)
    text = await asyncio.to_thread(MarkdownPage, page.markdown, page.url)
    found = await browsing.find_documents_at(house.db, history.source, page.generation, text.links)
    then = "" if generation is None else f"?generation={generation}"
    kept = {url: f"/documents/{other}{then}" for url, other in found.items()}
    return render_page(
        "document.html",
        request,
        page=page,
        label=history.source,
        then=generation is not None and bool(past) and _is_outdated(past[-1], page.generation),
        headings=headings,
        titled=text.has_title,
        body=await asyncio.to_thread(text.html, headings, kept),
        past=past,
        at=_version_index(past, page.generation),
    )


@router.get("/documents/{id}/diff")
async def show_diff(
    request: Request, id: str, a: GenerationParam | None = None, b: GenerationParam | None = None
) -> Response:
    """What changed from one generation to another; between the last two versions, unless they are named."""
    house = get_services(request)
    history, past = await _readable_versions(house, id)
    if not past:
        raise NotFound("This document has no version that could be compared.")
    a = past[max(0, len(past) - 2)].generation if a is None else a
    b = past[-1].generation if b is None else b
    before, after = [
        await documents.read_document(house.db, id, generation=one, rules=house.lifecycle_rules) for one in (a, b)
    ]
    lines, whole = await asyncio.to_thread(diff_rows, before.markdown, after.markdown)
    return render_page(
        "diff.html",
        request,
        label=history.source,
        past=past,
        at=(_version_index(past, a), _version_index(past, b)),
        before=before,
        after=after,
        lines=lines,
        whole=whole,
        same=not any(line.differs for line in lines),
    )


def _is_outdated(latest: ReadableVersion, generation: int) -> bool:
    """Whether something else is shown by now, or nothing."""
    return generation < latest.generation or latest.until is not None


async def _readable_versions(services: Services, id: str) -> tuple[DocumentHistory, list[ReadableVersion]]:
    """A document's versions that some generation still shows, oldest first."""
    history = await documents.read_history(services.db, id)
    _, found = await generations.list_generations(services.db, history.source)
    readable = [one.number for one in found if one.state.is_readable]
    moments = []
    for one in history.versions:
        born, until = one["generation"], one["until"]
        number = next((at for at in readable if born <= at and (until is None or at < until)), None)
        if number is not None:
            facts = {name: one[name] for name in ("until", "title", "url", "fetched_at")}
            moments.append(ReadableVersion(generation=number, **facts))
    return history, moments


def _version_index(versions: list[ReadableVersion], generation: int) -> int:
    """Which of the versions a generation shows, counted from 0."""
    return max((at for at, one in enumerate(versions) if one.generation <= generation), default=0)
