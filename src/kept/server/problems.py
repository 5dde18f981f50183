"""Errors in the language of HTTP: problem details (RFC 9457), translated in one place."""

import json
import traceback
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from kept.errors import (
    AccessDenied,
    InvalidInput,
    KeptError,
    NeedsDecision,
    NotFound,
    QuotaExceeded,
    SecretUnavailable,
    SourceUnavailable,
    StoreError,
    StoreFull,
)
from kept.log import Log
from kept.server.error_text import replace_cli_hints

log = Log(__name__)

QUOTA_RETRY_SECONDS = 60  # a quota is not over in a moment
STORE_RETRY_SECONDS = 5
_ENDPOINT_FOR_COMMAND = {
    "list": "GET /api/v1/sources",
    "add": "POST /api/v1/sources",
    "search": "GET /api/v1/search",
    "refresh": "POST /api/v1/sources/NAME/crawls",
    "generations": "GET /api/v1/sources/NAME/generations",
    "activate": "POST /api/v1/sources/NAME/activate",
    "discard": "POST /api/v1/sources/NAME/discard",
    "history": "GET /api/v1/documents/ID/history",
    "jobs": "GET /api/v1/jobs",
    "resume": "POST /api/v1/jobs/ID/resume",
    "cancel": "POST /api/v1/jobs/ID/cancel",
}


def problem_response(status: int, detail: str, headers: Mapping[str, str] | None = None, **more: Any) -> Response:
    told = {"type": "about:blank", "title": _title(status), "status": status, "detail": detail} | more
    body = json.dumps(told, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), media_type="application/problem+json")


def error_response(error: KeptError) -> Response:
    """The answer to a call that ended with this error."""
    status, said, headers = to_http_error(error)
    return problem_response(status, replace_cli_hints(said, _ENDPOINT_FOR_COMMAND), headers)


def to_http_error(error: KeptError) -> tuple[int, str, Mapping[str, str]]:
    """Status, sentence and headers. What only concerns whoever runs the server is not told."""
    said, nothing = str(error), dict[str, str]()
    match error:
        case InvalidInput():
            return 400, said, nothing
        case AccessDenied():
            return 401, said, nothing
        case NotFound():
            return 404, said, nothing
        case NeedsDecision():
            return 409, said, nothing
        case QuotaExceeded():
            return 429, said, {"Retry-After": str(QUOTA_RETRY_SECONDS)}
        case SecretUnavailable():
            return 409, "A value that the site has to be told cannot be had on the server.", nothing
        case SourceUnavailable():
            return 422, said, nothing  # not 502: it is the caller who named this site, not the server that is ill
        case StoreFull():
            return 507, said, nothing
        case StoreError():
            return 503, "The database does not answer.", {"Retry-After": str(STORE_RETRY_SECONDS)}
        case _:
            return 409, said, nothing


def install_error_handlers(app: FastAPI) -> None:
    """From now on every error of the application is a problem."""

    async def kept(_: Request, error: Exception) -> Response:
        assert isinstance(error, KeptError)
        if isinstance(error, StoreError):
            log.warning("store failed", reason=str(error))
        return error_response(error)

    async def invalid(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        wrong = [{"at": _field_path(one["loc"]), "detail": one["msg"]} for one in error.errors()[:20]]
        return problem_response(422, "; ".join(f"{one['at']}: {one['detail']}" for one in wrong), errors=wrong)

    async def http(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem_response(error.status_code, _http_error_detail(error), error.headers)

    async def unexpected(request: Request, error: Exception) -> Response:
        where = "".join(traceback.format_exception(error))
        log.warning("request failed", method=request.method, path=request.url.path, where=where)
        return problem_response(500, "This is a bug in Kept; its log says more.")

    app.add_exception_handler(KeptError, kept)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, http)
    app.add_exception_handler(Exception, unexpected)


def _http_error_detail(error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return "There is nothing at this address. The API is described at /api/v1/openapi.json."
        case 405:
            return "This method is not for this address."
        case _:
            return str(error.detail)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def _field_path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))
