"""Finding and reading: search, documents, their history, why one is not there, how one would be kept."""

from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from kept import __version__
from kept.serve.answers import TheAsker, TheHouse, answer, tagged, unchanged
from kept.serve.api import models
from kept.serve.api.models import Document, Number, Text, told
from kept.service import comparing, finding, ledger, listing, reading, shapes, wishing
from kept.service.house import House

router = APIRouter(tags=["documents"])

Section = Annotated[Text | None, Query(description="The anchor of a section.")]


@router.get("/search", responses=told(models.Hits))
async def search(
    request: Request,
    house: TheHouse,
    q: Annotated[Text, Query(min_length=1, examples=["connection pool"])],
    source: Annotated[list[models.Words] | None, Query(max_length=50)] = None,
    limit: models.Limit = 10,
    generation: Number | None = None,
    version: Annotated[models.Words | None, Query(description="18, ^18, ~18.2, latest")] = None,
    path: Annotated[models.Words, Query(description="Only pages below it; * stands for a part of it.")] = "",
    kind: finding.Kind = "text",
    language: Annotated[models.Words, Query(description="Only in code of this language.")] = "",
    context: Annotated[finding.Around | None, Query(description="What stands around each hit.")] = None,
    budget: Annotated[int | None, Query(ge=1, le=1_000_000, description="Tokens for texts and contexts.")] = None,
) -> Response:
    """The best sections, across all sources or those named. Nothing found: perhaps another spelling."""
    standing = await _standing(house, None if version else source)
    if standing and (same := unchanged(request, standing)):
        return same
    found = await finding.find(
        house,
        q,
        labels=source or (),
        limit=limit,
        generation=generation,
        version=version,
        path=path,
        kind=kind,
        language=language,
        context=context,
        budget=budget,
    )
    shape = shapes.search(found)
    return tagged(request, standing, shape) if standing else answer(shape, request=request)


async def _standing(house: House, labels: list[str] | None) -> bytes | None:
    """What a search by words stands on: it need not be done again to see that it would find the same.

    None for a search by meaning, which finds more whenever a section has got its vector, and for one whose hits are
    ordered by somebody who may be away.
    """
    if house.searches_by() or house.second_look():
        return None
    return f"{__version__} {await listing.standing(house.db, labels)}".encode()


@router.get("/documents", responses=told(models.DocumentText))
async def read_url(
    request: Request,
    house: TheHouse,
    url: Annotated[Text, Query(min_length=1)],
    section: Section = None,
    generation: Number | None = None,
) -> Response:
    """A document by its URL."""
    return answer(
        shapes.page(await reading.read(house.db, url, section=section, generation=generation, rules=house.rules)),
        request=request,
    )


@router.get("/documents/{id}", responses=told(models.DocumentText))
async def read(
    id: Document, request: Request, house: TheHouse, section: Section = None, generation: Number | None = None
) -> Response:
    """A document, or a section of it, as Markdown."""
    return answer(
        shapes.page(await reading.read(house.db, id, section=section, generation=generation, rules=house.rules)),
        request=request,
    )


@router.get("/documents/{id}/history", responses=told(models.History))
async def history(id: Document, request: Request, house: TheHouse) -> Response:
    """What became of a document: its versions and moves."""
    return answer(shapes.history(await reading.history(house.db, id)), request=request)


@router.get("/documents/{id}/diff", responses=told(models.TextDifference))
async def diff(
    id: Document,
    request: Request,
    house: TheHouse,
    a: Annotated[int, Query(alias="from", ge=1, le=2_000_000_000)],
    to: Number,
) -> Response:
    """What differs between a document in two generations: both texts, and the lines that differ."""
    found = await comparing.document_diff(house.db, id, a, to, rules=house.rules)
    return answer(shapes.document_diff(found), request=request)


@router.get("/why", responses=told(models.Why))
async def why(request: Request, house: TheHouse, url: Annotated[Text, Query(min_length=1)]) -> Response:
    """What the last crawl made of a URL, and why."""
    return answer(shapes.why(await ledger.why(house.db, url, house.why_not)), request=request)


@router.post("/try", responses=told(models.Look))
async def try_page(body: models.Page, house: TheHouse, asker: TheAsker) -> Response:
    """One page as it would be kept. Nothing is kept."""
    wish = wishing.understand(body.url, body.given(), asker.caller)
    house.check(wish.kind, wish.root, wish.settings)
    return answer(shapes.look(await house.try_page(wish.kind, wish.root, wish.settings)))
