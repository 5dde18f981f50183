"""The form that adds a source, with a preview of its scope; the fields of a source's settings."""

from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.datastructures import FormData

from kept.errors import InvalidInput
from kept.server.responses import get_principal, get_services
from kept.server.web.page import PageRoute, redirect_to, render_page, wants_fragment
from kept.service import previews, sources
from kept.service.source_options import SOURCE_OPTIONS, SourceOptions
from kept.service.source_request import DEFAULT_SOURCE_SETTINGS, SourceRequest, resolve_request

router = APIRouter(route_class=PageRoute)


@router.get("/add")
async def show_add_form(request: Request, root: str = "") -> Response:
    return render_page("add.html", request, form={"root": root}, settings=DEFAULT_SOURCE_SETTINGS, preview=None)


@router.post("/add/preview")
async def preview(request: Request) -> Response:
    """Show the pages that a crawl would begin with. Nothing is stored."""
    principal, form = get_principal(request), await request.form()
    source = resolve_request(_parse_source_request(form), principal)
    scope_preview = await previews.preview_scope(get_services(request), principal, source)
    if wants_fragment(request):
        return render_page("preview.html", request, preview=scope_preview)
    return render_page("add.html", request, form=form, settings=source.settings, preview=scope_preview)


@router.post("/add")
async def add_source(request: Request) -> Response:
    source_request = _parse_source_request(await request.form())
    added = await sources.add_source(get_services(request), get_principal(request), source_request)
    return redirect_to(f"/jobs/{added.job.id}")


def _parse_source_request(form: FormData) -> SourceRequest:
    root, name, version = (str(form.get(field, "")).strip() for field in ("root", "name", "version"))
    if not root:
        raise InvalidInput("Say where the documentation lives: the address of its first page.")
    if "://" not in root and "." in root.partition("/")[0] and not root.startswith((".", "/", "~")):
        root = f"https://{root}"
    return SourceRequest(root=root, options=parse_source_options(form), name=name or None, version=version or None)


_SEPARATED_BY_SPACES = ("scope",)  # URL prefixes have no spaces in them; other lists have one entry a line


def parse_source_options(form: Mapping[str, Any], *, clear_empty: bool = False) -> SourceOptions:
    """Return the options of a form. Fields that are empty are cleared with ``clear_empty``, else left out."""
    options: dict[str, Any] = {}
    for option in SOURCE_OPTIONS:
        if "web" not in option.on or option.name not in form:
            continue
        text = str(form[option.name]).replace("\0", "").strip()
        if not text:
            options[option.name] = "" if clear_empty else None
        elif option.kind == "texts":
            parts = text.split() if option.name in _SEPARATED_BY_SPACES else text.splitlines()
            options[option.name] = [part.strip() for part in parts]
        else:
            options[option.name] = True if option.kind == "flag" else text
    return SourceOptions(**options)
