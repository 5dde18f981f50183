"""Errors as HTTP problem details (RFC 9457)."""

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

QUOTA_RETRY_SECONDS = 60
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
    problem = {"type": "about:blank", "title": _title(status), "status": status, "detail": detail} | more
    body = json.dumps(problem, ensure_ascii=False).encode("utf-8", "replace")
    return Response(body, status, dict(headers or {}), media_type="application/problem+json")


def error_response(error: KeptError) -> Response:
    """Return the response to a request that raised this error."""
    status, detail, headers = to_http_error(error)
    return problem_response(status, replace_cli_hints(detail, _ENDPOINT_FOR_COMMAND), headers)


def to_http_error(error: KeptError) -> tuple[int, str, Mapping[str, str]]:
    """Return status, detail and headers. Details that concern only the operator are left out."""
    detail, no_headers = str(error), dict[str, str]()
    match error:
        case InvalidInput():
            return 400, detail, no_headers
        case AccessDenied():
            return 401, detail, no_headers
        case NotFound():
            return 404, detail, no_headers
        case NeedsDecision():
            return 409, detail, no_headers
        case QuotaExceeded():
            return 429, detail, {"Retry-After": str(QUOTA_RETRY_SECONDS)}
        case SecretUnavailable():
            return 409, "A secret that the site needs is not available on the server.", no_headers
        case SourceUnavailable():
            return 422, detail, no_headers  # not 502: the client named this site; the server itself is well
        case StoreFull():
            return 507, detail, no_headers
        case StoreError():
            return 503, "The database does not answer.", {"Retry-After": str(STORE_RETRY_SECONDS)}
        case _:
            return 409, detail, no_headers


def install_error_handlers(app: FastAPI) -> None:
    """Make the application answer every error with a problem response."""

    async def kept_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, KeptError)
        if isinstance(error, StoreError):
            log.warning("store failed", reason=str(error))
        return error_response(error)

    async def validation_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        errors = [{"at": _field_path(item["loc"]), "detail": item["msg"]} for item in error.errors()[:20]]
        return problem_response(422, "; ".join(f"{item['at']}: {item['detail']}" for item in errors), errors=errors)

    async def http_error(_: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        return problem_response(error.status_code, _http_error_detail(error), error.headers)

    async def unexpected_error(request: Request, error: Exception) -> Response:
        where = "".join(traceback.format_exception(error))
        log.warning("request failed", method=request.method, path=request.url.path, where=where)
        return problem_response(500, "This is a bug in Kept. The log of the server has the details.")

    app.add_exception_handler(KeptError, kept_error)
    app.add_exception_handler(RequestValidationError, validation_error)
    app.add_exception_handler(HTTPException, http_error)
    app.add_exception_handler(Exception, unexpected_error)


def _http_error_detail(error: HTTPException) -> str:
    match error.status_code:
        case 404:
            return "There is nothing at this address. The API is described at /api/v1/openapi.json."
        case 405:
            return "This address does not support this method."
        case _:
            return str(error.detail)


def _title(status: int) -> str:
    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return "Error"


def _field_path(location: tuple[int | str, ...]) -> str:
    return ".".join(map(str, location))
