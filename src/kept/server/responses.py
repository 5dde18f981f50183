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
from kept.server.change_poller import ChangePoller
from kept.service import events, serializers
from kept.service.access import Principal
from kept.service.context import Services
from kept.service.events import EventCursor

KEEPALIVE_SECONDS = 15


def get_services(request: Request) -> Services:
    house: Services = request.app.state.house
    return house


def get_principal(request: Request) -> Principal:
    asker: Principal = request.state.asker
    return asker


ServicesDep = Annotated[Services, Depends(get_services)]
PrincipalDep = Annotated[Principal, Depends(get_principal)]


def json_response(
    value: Any, status: int = 200, *, request: Request | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """JSON. With the request: also an ETag of what it says; nothing but that if the caller has it already."""
    body = _to_json(value)
    if request is None:
        return Response(body, status, dict(headers or {}), media_type="application/json")
    return not_modified_response(request, body) or json_response_with_etag(request, body, value)


def source_added_response(source: Source, is_new: bool, job: CrawlJob) -> Response:
    """A source that was added, or was there already, and the crawl of it that was asked for."""
    where = {"Location": f"/api/v1/sources/{quote(source.label, safe='@')}"}
    return json_response(serializers.crawl(source.label, job, None, 0), 201 if is_new else 200, headers=where)


def not_modified_response(request: Request, etag_input: bytes) -> Response | None:
    """304, if the caller has an answer that stands on the same."""
    tag = _etag(request, etag_input)
    known = {one.strip().removeprefix("W/") for one in request.headers.get("if-none-match", "").split(",")}
    if tag.removeprefix("W/") in known or "*" in known:
        return Response(status_code=304, headers={"ETag": tag})
    return None


def json_response_with_etag(request: Request, etag_input: bytes, value: Any) -> Response:
    headers = {"ETag": _etag(request, etag_input), "Cache-Control": "private, no-cache"}
    return Response(_to_json(value), headers=headers, media_type="application/json")


def _to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _etag(request: Request, etag_input: bytes) -> str:
    """Weak: it says that two answers tell the same, not that they are the same bytes."""
    asked = request.url.path + "?" + request.url.query
    return f'W/"{hashlib.sha256(asked.encode() + b" " + etag_input).hexdigest()[:24]}"'


def event_stream_response(request: Request, services: Services, cursor: EventCursor) -> Response:
    """Everything that happens behind the cursor, as server-sent events, until nothing more can come."""
    if events.is_finished(cursor):
        return Response(status_code=204)  # an EventSource does not come back after this
    headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
    return StreamingResponse(_sse_events(request, services, cursor), media_type="text/event-stream", headers=headers)


async def _sse_events(request: Request, services: Services, cursor: EventCursor) -> AsyncIterator[bytes]:
    poller: ChangePoller = request.app.state.change_poller
    yield b"retry: 1000\n\n"
    while not poller.is_shutting_down and not events.is_finished(cursor):
        sequence = poller.sequence
        try:
            found = await events.read_events(services.db, cursor)
        except StoreError:
            return  # the caller comes back, and goes on where this ends
        for event in found:
            head = f"id: {event.cursor.encode()}\nevent: {event.kind}\ndata: "
            yield head.encode() + _to_json(event.data) + b"\n\n"
        cursor = found[-1].cursor if found else cursor
        if not found:
            await poller.wait_for_change(sequence, KEEPALIVE_SECONDS)
            yield b": still here\n\n"
