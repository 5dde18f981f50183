"""Answers: JSON with an ETag, so that what has not changed need not be sent; and streams of events."""

import hashlib
import json
from collections.abc import AsyncIterator, Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request, Response
from starlette.responses import StreamingResponse

from kept.errors import StoreError
from kept.model.job import CrawlJob
from kept.model.source import Source
from kept.service import events, shapes
from kept.service.asking import Asker
from kept.service.events import Cursor
from kept.service.house import House

ALIVE_SECONDS = 15


def house_of(request: Request) -> House:
    house: House = request.app.state.house
    return house


def asker_of(request: Request) -> Asker:
    asker: Asker = request.state.asker
    return asker


TheHouse = Annotated[House, Depends(house_of)]
TheAsker = Annotated[Asker, Depends(asker_of)]


def answer(
    value: Any, status: int = 200, *, request: Request | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """JSON. With the request: also an ETag of what it says; nothing but that if the caller has it already."""
    body = _json(value)
    if request is None:
        return Response(body, status, dict(headers or {}), media_type="application/json")
    return unchanged(request, body) or tagged(request, body, value)


def added(source: Source, is_new: bool, job: CrawlJob) -> Response:
    """A source that was added, or was there already, and the crawl of it that was asked for."""
    where = {"Location": f"/api/v1/sources/{quote(source.label, safe='@')}"}
    return answer(shapes.crawl(source.label, job, None, 0), 201 if is_new else 200, headers=where)


def unchanged(request: Request, standing: bytes) -> Response | None:
    """304, if the caller has an answer that stands on the same."""
    tag = _tag(request, standing)
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    if tag.removeprefix("W/") in known or "*" in known:
        return Response(status_code=304, headers={"ETag": tag})
    return None


def tagged(request: Request, standing: bytes, value: Any) -> Response:
    headers = {"ETag": _tag(request, standing), "Cache-Control": "private, no-cache"}
    return Response(_json(value), headers=headers, media_type="application/json")


def _json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _tag(request: Request, standing: bytes) -> str:
    """Weak: it says that two answers tell the same, not that they are the same bytes."""
    asked = request.url.path + "?" + request.url.query
    return f'W/"{hashlib.sha256(asked.encode() + b" " + standing).hexdigest()[:24]}"'


def stream(request: Request, house: House, told: Cursor) -> Response:
    """Everything that happens behind the cursor, as server-sent events, until nothing more can come."""
    if events.is_over(told):
        return Response(status_code=204)  # an EventSource does not come back after this
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_events(request, house, told), media_type="text/event-stream", headers=headers)


async def _events(request: Request, house: House, told: Cursor) -> AsyncIterator[bytes]:
    closing, ticker = request.app.state.closing, request.app.state.ticker
    yield b"retry: 1000\n\n"
    while not closing.is_set() and not events.is_over(told):
        version = ticker.version
        try:
            found = await events.read(house.db, told)
        except StoreError:
            return  # the caller comes back, and goes on where this ends
        for event in found:
            head = f"id: {event.cursor.spell()}\nevent: {event.kind}\ndata: "
            yield head.encode() + _json(event.data) + b"\n\n"
        told = found[-1].cursor if found else told
        if not found:
            await ticker.wait(version, ALIVE_SECONDS)
            yield b": still here\n\n"
