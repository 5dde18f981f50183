"""An address that nothing is behind. Programs that ask for something else have doors of their own."""

from fastapi import APIRouter, Request, Response
from starlette.convertors import Convertor, register_url_convertor

from kept.errors import NotFound
from kept.server.web.page import PageRoute


class _PagePathConvertor(Convertor[str]):
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
