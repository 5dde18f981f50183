"""Error pages for requests that no page answers: unknown addresses, and refusals by middleware."""

import json

from fastapi import APIRouter, Response
from starlette.convertors import Convertor, register_url_convertor
from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.errors import NotFound
from kept.server.auth import wants_html
from kept.server.web.page import PageRoute, render_page

FORWARDED_HEADERS = ("retry-after", "connection")


class _PagePathConvertor(Convertor[str]):
    """Matches every path that does not belong to the API or to MCP."""

    regex = r"(?!(?:api|mcp)(?:/|$)).*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


register_url_convertor("page", _PagePathConvertor())
router = APIRouter(route_class=PageRoute)


@router.get("/{rest:page}")
async def not_found(request: Request) -> Response:
    raise NotFound(f"There is no page {request.url.path}.")


class HtmlErrorMiddleware:
    """Shows problem responses to browsers as pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not wants_html(scope):
            return await self._app(scope, receive, send)
        problem: Message | None = None
        body = b""

        async def send_as_page(message: Message) -> None:
            nonlocal problem, body
            if message["type"] == "http.response.start" and _is_problem(message):
                problem = message
            elif problem is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    await _error_page(scope, problem, body)(scope, receive, send)

        return await self._app(scope, receive, send_as_page)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type") == "application/problem+json"


def _error_page(scope: Scope, start: Message, body: bytes) -> ASGIApp:
    page = render_page("error.html", Request(scope), code=start["status"], message=json.loads(body)["detail"])
    page.headers.update(
        {name: value for name, value in Headers(raw=start["headers"]).items() if name in FORWARDED_HEADERS}
    )
    return page
