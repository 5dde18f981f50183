"""What all pages share: templates, headers, and errors in words.

What was crawled is text to every template, never markup: autoescape is on, and the one place that makes markup of it
is ``rendering``. Should something slip through all the same, the policy below lets no script of its own run.
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
from kept.service.context import Services

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; "
    "base-uri 'none'; frame-ancestors 'none'"
)
PAGE_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # the sites of sources need not know what is read here
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
"""Where a page of a long list begins: behind this URL."""

GenerationParam: TypeAlias = Annotated[int, Query(ge=1, le=2_000_000_000)]
"""Of a generation."""


def render_page(template: str, request: Request, *, code: int = 200, **facts: Any) -> HTMLResponse:
    facts |= {"path": request.url.path, "code": code, "logged_in": KEY_COOKIE in request.cookies}
    text = _templates.get_template(template).render(**facts)
    return HTMLResponse(text, code, PAGE_HEADERS)


def render_fragment(template: str, **facts: Any) -> str:
    return _templates.get_template(template).render(**facts)


def redirect_to(path: str) -> RedirectResponse:
    """After a form was sent: a page that may be loaded again without sending it again."""
    return RedirectResponse(path, 303, PAGE_HEADERS)


def get_services(request: Request) -> Services:
    house: Services = request.app.state.house
    return house


def wants_fragment(request: Request) -> bool:
    """Whether htmx asks for what is inside a page, not for the page."""
    return "HX-Request" in request.headers and "HX-History-Restore-Request" not in request.headers


class PageRoute(APIRoute):
    """A page, whatever happens: an error is one too."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        answer = super().get_route_handler()

        async def page(request: Request) -> Response:
            try:
                return await answer(request)
            except RequestValidationError as error:
                where = ", ".join(str(one["loc"][-1]) for one in error.errors())
                return _error_page(request, InvalidInput(f"This address makes no sense here: look at {where}."))
            except KeptError as error:
                return _error_page(request, error)

        return page


def _error_page(request: Request, error: KeptError) -> Response:
    code, said, headers = to_http_error(error)
    if wants_fragment(request):
        return render_page(
            "error_part.html", request, said=strip_cli_hints(said)
        )  # htmx shows what comes with 200 only
    page = render_page("error.html", request, code=code, said=strip_cli_hints(said))
    page.headers.update(headers)
    return page
