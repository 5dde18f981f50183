"""Adding a source, with a look at what its scope would take in."""

import asyncio

from fastapi import APIRouter, Request, Response

from kept.errors import SourceUnavailable, WrongCall
from kept.serve.answers import asker_of
from kept.serve.web.forms import given
from kept.serve.web.page import PageRoute, go_to, house_of, show, wants_part
from kept.service import asking, wishing

router = APIRouter(route_class=PageRoute)
PATIENCE = 30  # seconds for a look


@router.get("/add")
async def adding(request: Request, root: str = "") -> Response:
    return show("add.html", request, said={"root": root}, settings=wishing.NOTHING_SET, found=None)


@router.post("/add/preview")
async def preview(request: Request) -> Response:
    """What a crawl would begin with. Nothing is kept."""
    house, wish = house_of(request), await _wish(request)
    try:
        async with asyncio.timeout(PATIENCE):
            found = await house.survey(wish.kind, wish.root, wish.settings)
    except TimeoutError:
        raise SourceUnavailable(f"{wish.root} did not answer within {PATIENCE} seconds.") from None
    if wants_part(request):
        return show("preview.html", request, found=found)
    return show("add.html", request, said=await request.form(), settings=wish.settings, found=found)


@router.post("/add")
async def add(request: Request) -> Response:
    house, form = house_of(request), await request.form()
    wish = await _wish(request)
    await house.look_at_root(wish.kind, wish.root, wish.settings)
    name, version = str(form.get("name", "")).strip(), str(form.get("version", "")).strip()
    _, _, job = await asking.add(house, asker_of(request), wish, name=name or None, version=version or None)
    return go_to(f"/jobs/{job.id}")


async def _wish(request: Request) -> wishing.Wish:
    form = await request.form()
    root = str(form.get("root", "")).strip()
    if not root:
        raise WrongCall("Say where the documentation lives: the address of its first page.")
    if "://" not in root and "." in root.partition("/")[0] and not root.startswith((".", "/", "~")):
        root = f"https://{root}"
    wish = wishing.understand(root, given(form), asker_of(request).caller)
    house_of(request).check(wish.kind, wish.root, wish.settings)
    return wish
