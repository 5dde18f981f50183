"""The form that adds a source, with a preview of its scope; the fields of a source's settings."""

import asyncio
import re
from collections.abc import Mapping
from typing import Any

from fastapi import APIRouter, Request, Response

from kept.errors import InvalidInput, SourceUnavailable
from kept.server.responses import get_principal, get_services
from kept.server.web.page import PageRoute, redirect_to, render_page, wants_fragment
from kept.service import access, source_request
from kept.service.source_options import SourceOptions

router = APIRouter(route_class=PageRoute)
PREVIEW_TIMEOUT_SECONDS = 30


@router.get("/add")
async def show_add_form(request: Request, root: str = "") -> Response:
    return render_page(
        "add.html", request, form={"root": root}, settings=source_request.DEFAULT_SOURCE_SETTINGS, preview=None
    )


@router.post("/add/preview")
async def preview(request: Request) -> Response:
    """Show the pages that a crawl would begin with. Nothing is stored."""
    services, wish = get_services(request), await _parse_source_request(request)
    try:
        async with asyncio.timeout(PREVIEW_TIMEOUT_SECONDS):
            scope_preview = await services.preview_scope(wish.kind, wish.root, wish.settings)
    except TimeoutError:
        raise SourceUnavailable(f"{wish.root} did not answer within {PREVIEW_TIMEOUT_SECONDS} seconds.") from None
    if wants_fragment(request):
        return render_page("preview.html", request, preview=scope_preview)
    return render_page("add.html", request, form=await request.form(), settings=wish.settings, preview=scope_preview)


@router.post("/add")
async def add_source(request: Request) -> Response:
    services, form = get_services(request), await request.form()
    wish = await _parse_source_request(request)
    await services.probe_root(wish.kind, wish.root, wish.settings)
    name, version = str(form.get("name", "")).strip(), str(form.get("version", "")).strip()
    _, _, job = await access.add_source(
        services, get_principal(request), wish, name=name or None, version=version or None
    )
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


_NUMBER_FIELDS = {"max_pages": 1, "max_depth": 0}  # and their smallest values
_LINE_FIELDS = ("include", "exclude", "tag")
_WORD_FIELDS = ("scope",)  # separated by spaces
_TEXT_FIELDS = ("schedule", "select")


def parse_source_options(form: Mapping[str, Any], *, clear_empty: bool = False) -> SourceOptions:
    """Return the options of a form. Fields that are empty are cleared with ``clear_empty``, else left out."""
    options: dict[str, Any] = {}
    form = {name: str(value).replace("\0", "") for name, value in form.items()}
    for name in (*_LINE_FIELDS, *_WORD_FIELDS):
        if name in form:
            parts = form[name].split() if name in _WORD_FIELDS else form[name].splitlines()
            values = [part.strip() for part in parts if part.strip()]
            options[name] = values or ([""] if clear_empty else None)
    for name in _TEXT_FIELDS:
        if name in form:
            text = form[name].strip()
            options[name] = text if text or clear_empty else None
    for name in _NUMBER_FIELDS:
        if name in form:
            text = form[name].strip()
            options[name] = _parse_number(name, text) if text else "" if clear_empty else None
    return SourceOptions(**options)


def _parse_number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < _NUMBER_FIELDS[name]:
        raise InvalidInput(f"{name} should be a whole number from {_NUMBER_FIELDS[name]} on; it is '{text}'.")
    return int(text)
