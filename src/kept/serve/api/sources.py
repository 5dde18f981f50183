"""What is kept, and its past."""

from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

from fastapi import APIRouter, Query, Request, Response

from kept.model.duration import parse_since
from kept.serve.answers import TheAsker, TheHouse, added, answer, tagged, unchanged
from kept.serve.api import models
from kept.serve.api.models import Label, Number, Text, told
from kept.serve.api.once import OnceKey, once
from kept.service import asking, changes, generations, listing, shapes, sources, wishing

router = APIRouter(tags=["sources"])


@router.post("/sources", status_code=201, responses=models.ADDED)
async def add_source(body: models.NewSource, house: TheHouse, asker: TheAsker, key: OnceKey = None) -> Response:
    """Keeps a site: makes the source and asks for a crawl. The same root again is a refresh, answered with 200."""
    wish = wishing.understand(body.root, body.given(), asker.caller)
    source, is_new, job = await asking.add(
        house,
        asker,
        wish,
        name=body.name,
        version=body.version,
        priority=body.priority,
        once=once(key, "POST /sources", body),
    )
    return added(source, is_new, job)


@router.get("/sources", responses=told(models.Sources))
async def list_sources(request: Request, house: TheHouse) -> Response:
    """All sources, and how they are."""
    views = await sources.list_sources(house.db)
    return answer({"sources": [shapes.source(view) for view in views]}, request=request)


@router.get("/sources/{name}", responses=told(models.Source))
async def show_source(name: Label, request: Request, house: TheHouse) -> Response:
    """One source, and what its history tells of it."""
    view = await sources.show_source(house.db, name, house.rhythm)
    return answer(shapes.source(view) | shapes.learned(view), request=request)


@router.patch("/sources/{name}", responses=told(models.Source))
async def change_source(name: Label, body: models.SourceIn, house: TheHouse, asker: TheAsker) -> Response:
    """Changes settings, from the next crawl on. An empty text clears one."""
    source = await asking.change(house, asker, name, body.given())
    return answer(shapes.source(await sources.show_source(house.db, source.label)))


@router.delete("/sources/{name}", responses=told(models.Removed))
async def remove_source(name: Label, request: Request, house: TheHouse) -> Response:
    """Hides the source at once and frees its name. Files that were uploaded for it are deleted."""
    source = await asking.remove(house, name, request.app.state.settings.uploads_folder)
    return answer({"source": source.label, "removed": True})


@router.get("/sources/{name}/generations", responses=told(models.Generations))
async def list_generations(name: Label, request: Request, house: TheHouse) -> Response:
    """The history of a source."""
    return answer(shapes.generations(*await generations.list_generations(house.db, name)), request=request)


@router.get("/sources/{name}/changes", responses=told(models.Changes))
async def list_changes(
    name: Label,
    request: Request,
    house: TheHouse,
    since: Annotated[Text | None, Query(examples=["2026-11-01", "2d"])] = None,
    cursor: models.CursorText = None,
    limit: models.Limit = 100,
) -> Response:
    """What became of its documents, the latest first."""
    after = parse_since(since, datetime.now(UTC)) if since else None
    found = await changes.changes(house.db, name, since=after, limit=limit, cursor=cursor)
    return answer(shapes.changes(found), request=request)


@router.get("/sources/{name}/diff", responses=told(models.Difference))
async def diff(
    name: Label, request: Request, house: TheHouse, a: Annotated[int, Query(alias="from", ge=1, le=2**31)], to: Number
) -> Response:
    """What was added, removed, changed and moved between two generations."""
    found = await generations.diff(house.db, name, a, to, house.rules)
    return answer(shapes.diff(found), request=request)


@router.get("/sources/{name}/documents", responses=told(models.Documents))
async def list_documents(
    name: Label,
    request: Request,
    house: TheHouse,
    generation: Number | None = None,
    cursor: models.CursorText = None,
    limit: models.Limit = 100,
) -> Response:
    """The documents of a source by URL. `next` leads to the next page, of the same generation."""
    standing = (await listing.standing(house.db, [name])).encode()
    if same := unchanged(request, standing):
        return same
    found = await listing.list_documents(house.db, name, generation=generation, cursor=cursor, limit=limit)
    return tagged(request, standing, asdict(found))


@router.post("/sources/{name}/rollback", responses=told(models.Decided))
async def roll_back(name: Label, body: models.BackTo, house: TheHouse) -> Response:
    """A new generation that shows what an earlier one showed."""
    made = await generations.roll_back(house.db, name, body.generation)
    return answer({"source": name, "generation": made, "rolled_back_to": body.generation})


@router.post("/sources/{name}/activate", responses=told(models.Decided))
async def activate(name: Label, house: TheHouse) -> Response:
    """Makes a held generation live."""
    number = await generations.activate_held(house.db, name, house.rules)
    return answer({"source": name, "generation": number, "state": "active"})


@router.post("/sources/{name}/discard", responses=told(models.Decided))
async def discard(name: Label, house: TheHouse) -> Response:
    """Gives a held generation up."""
    number = await generations.discard_held(house.db, name)
    return answer({"source": name, "generation": number, "state": "abandoned"})
