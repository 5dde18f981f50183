"""Adding a source, with a look at what its scope would take in."""

import asyncio

from fastapi import APIRouter, Request, Response

from kept.errors import InvalidInput, SourceUnavailable
from kept.server.responses import get_principal
from kept.server.web.forms import parse_source_options
from kept.server.web.page import PageRoute, get_services, redirect_to, render_page, wants_fragment
from kept.service import access, source_request

router = APIRouter(route_class=PageRoute)
PREVIEW_TIMEOUT_SECONDS = 30  # seconds for a look


@router.get("/add")
async def show_add_form(request: Request, root: str = "") -> Response:
    return render_page(
        "add.html", request, said={"root": root}, settings=source_request.DEFAULT_SOURCE_SETTINGS, found=None
    )


@router.post("/add/preview")
async def preview(request: Request) -> Response:
    """What a crawl would begin with. Nothing is kept."""
    house, wish = get_services(request), await _parse_source_request(request)
    try:
        async with asyncio.timeout(PREVIEW_TIMEOUT_SECONDS):
            found = await house.preview_scope(wish.kind, wish.root, wish.settings)
    except TimeoutError:
        raise SourceUnavailable(f"{wish.root} did not answer within {PREVIEW_TIMEOUT_SECONDS} seconds.") from None
    if wants_fragment(request):
        return render_page("preview.html", request, found=found)
    return render_page("add.html", request, said=await request.form(), settings=wish.settings, found=found)


@router.post("/add")
async def add_source(request: Request) -> Response:
    house, form = get_services(request), await request.form()
    wish = await _parse_source_request(request)
    await house.probe_root(wish.kind, wish.root, wish.settings)
    name, version = str(form.get("name", "")).strip(), str(form.get("version", "")).strip()
    _, _, job = await access.add_source(house, get_principal(request), wish, name=name or None, version=version or None)
    return redirect_to(f"/jobs/{job.id}")


async def _parse_source_request(request: Request) -> source_request.SourceRequest:
    form = await request.form()
    root = str(form.get("root", "")).strip()
    if not root:
        raise InvalidInput("Say where the documentation lives: the address of its first page.")
    if "://" not in root and "." in root.partition("/")[0] and not root.startswith((".", "/", "~")):
        root = f"https://{root}"
    wish = source_request.parse_source_request(root, parse_source_options(form), get_principal(request).permissions)
    get_services(request).check_source(wish.kind, wish.root, wish.settings)
    return wish
