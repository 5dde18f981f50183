"""Adding a source, with a look at what its scope would take in."""

import asyncio

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData

from kept.errors import InvalidInput, SourceUnavailable
from kept.server.responses import get_principal
from kept.server.web.forms import parse_source_options
from kept.server.web.page import PageRoute, get_services, redirect_to, render_page, wants_fragment
from kept.service import sources
from kept.service.source_request import DEFAULT_SOURCE_SETTINGS, SourceRequest, resolve_request

router = APIRouter(route_class=PageRoute)
PREVIEW_TIMEOUT_SECONDS = 30  # seconds for a look


@router.get("/add")
async def show_add_form(request: Request, root: str = "") -> Response:
    return render_page("add.html", request, said={"root": root}, settings=DEFAULT_SOURCE_SETTINGS, found=None)


@router.post("/add/preview")
async def preview(request: Request) -> Response:
    """What a crawl would begin with. Nothing is kept."""
    services, form = get_services(request), await request.form()
    source = resolve_request(_parse_form(form), get_principal(request).permissions)
    try:
        async with asyncio.timeout(PREVIEW_TIMEOUT_SECONDS):
            found = await services.preview_scope(source.kind, source.root, source.settings)
    except TimeoutError:
        raise SourceUnavailable(f"{source.root} did not answer within {PREVIEW_TIMEOUT_SECONDS} seconds.") from None
    if wants_fragment(request):
        return render_page("preview.html", request, found=found)
    return render_page("add.html", request, said=form, settings=source.settings, found=found)


@router.post("/add")
async def add_source(request: Request) -> Response:
    wanted = _parse_form(await request.form())
    added = await sources.add_source(get_services(request), get_principal(request), wanted)
    return redirect_to(f"/jobs/{added.job.id}")


def _parse_form(form: FormData) -> SourceRequest:
    root, name, version = (str(form.get(field, "")).strip() for field in ("root", "name", "version"))
    if not root:
        raise InvalidInput("Say where the documentation lives: the address of its first page.")
    if "://" not in root and "." in root.partition("/")[0] and not root.startswith((".", "/", "~")):
        root = f"https://{root}"
    return SourceRequest(root=root, options=parse_source_options(form), name=name or None, version=version or None)
