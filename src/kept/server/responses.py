"""Dependencies of handlers, and JSON responses with an ETag, so that unchanged answers need not be sent again."""

import hashlib
import json
from collections.abc import Mapping
from typing import Annotated, Any
from urllib.parse import quote

from fastapi import Depends, Request, Response

from kept.service import serializers
from kept.service.access import Principal
from kept.service.context import Services
from kept.service.sources import AddedSource


def get_services(request: Request) -> Services:
    services: Services = request.app.state.services
    return services


def get_principal(request: Request) -> Principal:
    """Return the principal that the auth middleware has found."""
    principal: Principal = request.state.principal
    return principal


ServicesDep = Annotated[Services, Depends(get_services)]
PrincipalDep = Annotated[Principal, Depends(get_principal)]


def json_response(
    value: Any, status: int = 200, *, request: Request | None = None, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a JSON response. With the request, it has an ETag, or is a 304 if the client has the same answer."""
    body = to_json(value)
    if request is None:
        return Response(body, status, dict(headers or {}), media_type="application/json")
    return not_modified_response(request, body) or json_response_with_etag(request, body, value)


def source_added_response(added: AddedSource) -> Response:
    """Return 201 for a new source, 200 for a known one, with the crawl that was requested."""
    label = added.source.label
    location = {"Location": f"/api/v1/sources/{quote(label, safe='@')}"}
    return json_response(serializers.crawl(label, added.job, None, 0), 201 if added.is_new else 200, headers=location)


def not_modified_response(request: Request, etag_input: bytes) -> Response | None:
    """Return a 304 if the client has the answer with this ETag input, else None."""
    etag = _etag(request, etag_input)
    known = {value.strip().removeprefix("W/") for value in request.headers.get("if-none-match", "").split(",")}
    if etag.removeprefix("W/") in known or "*" in known:
        return Response(status_code=304, headers={"ETag": etag})
    return None


def json_response_with_etag(request: Request, etag_input: bytes, value: Any) -> Response:
    headers = {"ETag": _etag(request, etag_input), "Cache-Control": "private, no-cache"}
    return Response(to_json(value), headers=headers, media_type="application/json")


def to_json(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _etag(request: Request, etag_input: bytes) -> str:
    """Return a weak ETag: equal tags mean equal content, not equal bytes."""
    target = request.url.path + "?" + request.url.query
    return f'W/"{hashlib.sha256(target.encode() + b" " + etag_input).hexdigest()[:24]}"'
