"""Shared by all pages: templates, headers, and error pages.

Crawled content is text to every template, never markup: autoescape is on, and only ``markdown_html`` turns it into
markup. As a second defence, the content security policy allows no scripts but our own.
"""

from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from fastapi import Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, RedirectResponse
from fastapi.routing import APIRoute
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from kept.errors import InvalidInput, KeptError
from kept.server.auth import KEY_COOKIE
from kept.server.error_text import strip_cli_hints
from kept.server.problems import to_http_error
from kept.server.web import assets, filters

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # sites of sources do not learn which pages are read here
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-cache",
    "Vary": "HX-Request",
}

_templates = Environment(
    loader=FileSystemLoader(Path(__file__).with_name("templates")),
    autoescape=True,
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
)
_templates.globals["asset"] = assets.asset_url
_templates.filters |= filters.FILTERS


AfterUrl: TypeAlias = Annotated[str, Query(max_length=4000, pattern=r"^[^\x00]*$")]
"""The URL after which a page of a long list begins."""

GenerationParam: TypeAlias = Annotated[int, Query(ge=1, le=2_000_000_000)]
"""The number of a generation."""


def render_page(template: str, request: Request, *, code: int = 200, **values: Any) -> HTMLResponse:
    values |= {"path": request.url.path, "code": code, "logged_in": KEY_COOKIE in request.cookies}
    text = _templates.get_template(template).render(**values)
    return HTMLResponse(text, code, PAGE_HEADERS)


def render_fragment(template: str, **values: Any) -> str:
    return _templates.get_template(template).render(**values)


def redirect_to(path: str) -> RedirectResponse:
    """Redirect after a POST to a page that can be reloaded without sending the form again."""
    return RedirectResponse(path, 303, PAGE_HEADERS)


def wants_fragment(request: Request) -> bool:
    """Whether htmx requests a part of the page, not the whole page."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


class PageRoute(APIRoute):
    """A route that answers errors with a page too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                return await handler(request)
            except RequestValidationError as error:
                fields = ", ".join(str(item["loc"][-1]) for item in error.errors())
                return _error_page(request, InvalidInput(f"This address is not valid: check {fields}."))
            except KeptError as error:
                return _error_page(request, error)

        return handle


def _error_page(request: Request, error: KeptError) -> Response:
    code, detail, headers = to_http_error(error)
    message = strip_cli_hints(detail)
    if wants_fragment(request):
        return render_page("error_part.html", request, message=message)  # with 200: htmx shows no other status
    page = render_page("error.html", request, code=code, message=message)
    page.headers.update(headers)
    return page
