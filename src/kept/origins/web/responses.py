"""Translates an HTTP response to a Visit. Pure: statuses, headers and bytes in, a Visit out.

    200                                    Fetched, if it is a page
    304                                    NotModified
    404, 410                               Gone
    401, 403, 408, 429, 5xx, no response   Unreachable: the page may still exist
    wrong type, too large, bomb            Refused

Redirects are followed by the origin, which knows the scope.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus

from kept.model.document import Validators
from kept.model.frontier import Fetched, Gone, NotModified, Refused, Unreachable, Visit
from kept.model.robots_directives import RobotsDirectives, parse_robots_directives
from kept.origins.web.http.messages import FailedRequest, FailureKind, Headers, HttpResponse
from kept.origins.web.rate_limiter import parse_retry_after

OK_STATUSES = (200, 203)
REDIRECT_STATUSES = (301, 302, 303, 307, 308)
PERMANENT_REDIRECTS = (301, 308)
_RETRYABLE_STATUSES = (408, 425, 429)
_MAX_TYPE_LENGTH = 200

# Every other type is passed on: the readers decide what they can read.
_NON_PAGE_TYPES = re.compile(
    r"(?:image|audio|video|font|multipart|model)/|text/(?:css|javascript|calendar|csv)|application/(?:(?:x-)?(?:zip|"
    r"gzip|tar|gtar|bzip2?|xz|7z-compressed|rar-compressed|java-archive|shockwave-flash|msdownload|dosexec|executable|"
    r"elf|iso9660-image|apple-diskimage|debian-package|rpm|javascript|ecmascript|font-\w+|sqlite3|protobuf|wasm)|"
    r"vnd\.(?:android|ms-fontobject|debian|rar|sqlite3)|ogg|wasm|manifest\+json|opensearchdescription\+xml|pgp-)"
)
_RULES_WITH_VALUES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_UNKNOWN_TYPES = ("", "application/octet-stream", "binary/octet-stream", "unknown/unknown")
_HTML_START = re.compile(
    rb"(?i)\s*+(?:<!--.{0,512}?-->\s*+)*+<(?:!doctype html|html|head|body|title|meta|script|h1|div|p)\b", re.S
)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def wants_page_body(status: int, headers: Headers) -> bool:
    return status in OK_STATUSES and _may_be_page(headers.get("Content-Type", ""))


def make_visit(
    response: HttpResponse | FailedRequest, *, now: Callable[[], datetime], robots_agent: str | None
) -> Visit:
    """Return the Visit for a response that is not a redirect.

    ``robots_agent``: our name in X-Robots-Tag; None to ignore that header.
    """
    if isinstance(response, FailedRequest):
        return _failed_visit(response)
    status, headers = response.status, response.headers
    if status in OK_STATUSES:
        return _page_visit(response, robots_agent)
    if status == 304:
        return NotModified(status=304)
    if status in (404, 410):
        return Gone(reason=describe_status(status), status=status)
    return Unreachable(
        reason=describe_status(status),
        status=status,
        is_retryable=status >= 500 or status in _RETRYABLE_STATUSES,
        retry_after=parse_retry_after(headers, now()) if "Retry-After" in headers else None,
    )


def is_html(content_type: str) -> bool:
    return _media_type(content_type) in ("text/html", "application/xhtml+xml")


def describe_status(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"


def parse_validators(headers: Headers) -> Validators:
    """Return the validators for the next conditional request, without values that cannot be sent back unchanged."""
    etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    return Validators(
        etag=etag if 0 < len(etag) <= 512 and etag.isprintable() else None,
        last_modified=modified if "GMT" in modified and modified.isprintable() else None,
    )


def sniff_content_type(body: bytes) -> str:
    """Return the content type of a body whose server sent none."""
    start = body[:1024]
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text/plain; charset=utf-16"
    if _BINARY.search(start):
        return "application/octet-stream"
    if _HTML_START.match(start.removeprefix(b"\xef\xbb\xbf")):
        return "text/html"
    if start.lstrip().startswith(b"<?xml"):
        return "application/xhtml+xml" if b"<html" in start else "application/xml"
    return "application/json" if start.lstrip()[:1] in (b"{", b"[") else "text/plain"


def parse_robots_headers(headers: Headers, agent: str) -> RobotsDirectives:
    """Return the directives in all X-Robots-Tag headers that address this agent or every agent."""
    if "X-Robots-Tag" not in headers:
        return RobotsDirectives()
    return parse_robots_directives(_rules_for_agent(agent.lower(), value) for value in headers.get_all("X-Robots-Tag"))


def _rules_for_agent(agent: str, value: str) -> str:
    """Return the rules of one header for this agent; empty where they address another one."""
    name, colon, rules = value.partition(":")
    name = name.strip().lower()
    if not colon or "," in name or name in _RULES_WITH_VALUES:
        return value
    return rules if name == agent else ""


def _page_visit(response: HttpResponse, robots_agent: str | None) -> Visit:
    status, headers, body = response.status, response.headers, response.body
    content_type = headers.get("Content-Type", "").strip()[:_MAX_TYPE_LENGTH].encode("ascii", "replace").decode()
    media_type = _media_type(content_type)
    if not _may_be_page(content_type):
        return Refused(reason=f"not a page but {media_type[:80]}", status=status)
    if not body:
        return Unreachable(reason="the answer is empty", status=status)
    if body.startswith(b"\x1f\x8b"):
        return Refused(reason="packed in a way it does not say", status=status)
    if media_type in _UNKNOWN_TYPES:
        content_type = sniff_content_type(body)
        if media_type == "" and content_type == "application/octet-stream":
            return Refused(reason="not a page but bytes of unknown type", status=status)
    return Fetched(
        body=body,
        content_type=content_type,
        validators=parse_validators(headers),
        status=status,
        robots_directives=parse_robots_headers(headers, robots_agent) if robots_agent is not None else None,
    )


def _failed_visit(failure: FailedRequest) -> Visit:
    match failure.kind:
        case FailureKind.FORBIDDEN | FailureKind.DECOMPRESSION_BOMB:
            return Refused(reason=failure.reason, status=failure.status)
        case FailureKind.TOO_LARGE:
            return Refused(reason=failure.reason, status=failure.status, by_settings=True)
        case FailureKind.PERMANENT:
            return Unreachable(reason=failure.reason, status=failure.status, is_retryable=False)
        case FailureKind.TEMPORARY:
            return Unreachable(reason=failure.reason, status=failure.status)


@lru_cache(maxsize=256)
def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


@lru_cache(maxsize=256)
def _may_be_page(content_type: str) -> bool:
    return not _NON_PAGE_TYPES.match(_media_type(content_type))
