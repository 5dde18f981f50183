"""What is refused before a page is reached, by the gate or the bounds, is a page too for people who asked for one."""

import json

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from kept.server.auth import wants_html
from kept.server.web.page import render_page

FORWARDED_HEADERS = ("retry-after", "connection")


class HtmlErrorMiddleware:
    """Shows problems as pages."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not wants_html(scope):
            return await self._app(scope, receive, send)
        problem: Message | None = None
        body = b""

        async def shown(message: Message) -> None:
            nonlocal problem, body
            if message["type"] == "http.response.start" and _is_problem(message):
                problem = message
            elif problem is None:
                await send(message)
            else:
                body += message.get("body", b"")
                if not message.get("more_body"):
                    await _error_page(scope, problem, body)(scope, receive, send)

        return await self._app(scope, receive, shown)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type") == "application/problem+json"


def _error_page(scope: Scope, start: Message, body: bytes) -> ASGIApp:
    page = render_page("error.html", Request(scope), code=start["status"], said=json.loads(body)["detail"])
    page.headers.update(
        {name: value for name, value in Headers(raw=start["headers"]).items() if name in FORWARDED_HEADERS}
    )
    return page
