"""What an answer means for a crawl. Pure: statuses, headers and bytes in, a Visit out.

    200                                    the page, if it is one
    304                                    what we hold is what it has
    404, 410                               gone
    401, 403, 408, 429, 5xx, no answer     it may be there, but cannot be read now
    wrong type, too large, bomb            not to be kept

Redirects are the client's: it has to look where they lead.
"""

import re
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from http import HTTPStatus

from kept.model.document import Validators
from kept.model.frontier import Fetched, Gone, NotModified, Refused, Unreachable, Visit
from kept.model.wishes import Wishes, wishes_of
from kept.origins.web.exchange import Answer, Headers, NoAnswer, Trouble
from kept.origins.web.pacing import wait_asked

GOOD = (200, 203)
REDIRECTS = (301, 302, 303, 307, 308)
PERMANENT = (301, 308)
_WORTH_ANOTHER_TRY = (408, 425, 429)
_LONGEST_TYPE = 200

# Whatever is none of these is handed on: the readers know best what they can read.
_NOT_PAGES = re.compile(
    r"(?:image|audio|video|font|multipart|model)/|text/(?:css|javascript|calendar|csv)|application/(?:(?:x-)?(?:zip|"
    r"gzip|tar|gtar|bzip2?|xz|7z-compressed|rar-compressed|java-archive|shockwave-flash|msdownload|dosexec|executable|"
    r"elf|iso9660-image|apple-diskimage|debian-package|rpm|javascript|ecmascript|font-\w+|sqlite3|protobuf|wasm)|"
    r"vnd\.(?:android|ms-fontobject|debian|rar|sqlite3)|ogg|wasm|manifest\+json|opensearchdescription\+xml|pgp-)"
)
_RULES_WITH_VALUES = ("unavailable_after", "max-snippet", "max-image-preview", "max-video-preview")
_UNTOLD = ("", "application/octet-stream", "binary/octet-stream", "unknown/unknown")
_HTML = re.compile(
    rb"(?i)\s*+(?:<!--.{0,512}?-->\s*+)*+<(?:!doctype html|html|head|body|title|meta|script|h1|div|p)\b", re.S
)
_BINARY = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


def is_wanted(status: int, headers: Headers) -> bool:
    """Whether the body is worth reading."""
    return status in GOOD and _may_be_page(headers.get("Content-Type", ""))


def visit_of(answer: Answer | NoAnswer, *, now: Callable[[], datetime], obey: str | None) -> Visit:
    """What the crawl learns from an answer that is no redirect.

    ``obey``: our name among robots; None: what pages ask of robots does not count.
    """
    if isinstance(answer, NoAnswer):
        return _missed(answer)
    status, headers = answer.status, answer.headers
    if status in GOOD:
        return _page(answer, obey)
    if status == 304:
        return NotModified(status=304)
    if status in (404, 410):
        return Gone(reason=describe(status), status=status)
    return Unreachable(
        reason=describe(status),
        status=status,
        retry=status >= 500 or status in _WORTH_ANOTHER_TRY,
        retry_after=wait_asked(headers, now()) if "Retry-After" in headers else None,
    )


def is_html(content_type: str) -> bool:
    return _media_type(content_type) in ("text/html", "application/xhtml+xml")


def describe(status: int) -> str:
    try:
        return f"{status} {HTTPStatus(status).phrase}"
    except ValueError:
        return f"status {status}"


def validators_of(headers: Headers) -> Validators:
    """What to ask with next time, as it came. Nonsense, and what could not be said as it came, is left out."""
    etag, modified = headers.get("ETag", ""), headers.get("Last-Modified", "")
    return Validators(
        etag=etag if 0 < len(etag) <= 512 and etag.isprintable() else None,
        last_modified=modified if "GMT" in modified and modified.isprintable() else None,
    )


def sniff(body: bytes) -> str:
    """The type of a body whose server does not say."""
    start = body[:1024]
    if start.startswith(b"%PDF-"):
        return "application/pdf"
    if start.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "text/plain; charset=utf-16"
    if _BINARY.search(start):
        return "application/octet-stream"
    if _HTML.match(start.removeprefix(b"\xef\xbb\xbf")):
        return "text/html"
    if start.lstrip().startswith(b"<?xml"):
        return "application/xhtml+xml" if b"<html" in start else "application/xml"
    return "application/json" if start.lstrip()[:1] in (b"{", b"[") else "text/plain"


def wishes_in(headers: Headers, agent: str) -> Wishes:
    """What X-Robots-Tag asks of us, or of everybody. It may be there more than once."""
    if "X-Robots-Tag" not in headers:
        return Wishes()
    return wishes_of(_meant_for(agent.lower(), value) for value in headers.every("X-Robots-Tag"))


def _meant_for(agent: str, value: str) -> str:
    """The rules of a header for this agent; none if they are another's."""
    named, colon, rules = value.partition(":")
    named = named.strip().lower()
    if not colon or "," in named or named in _RULES_WITH_VALUES:
        return value
    return rules if named == agent else ""


def _page(answer: Answer, obey: str | None) -> Visit:
    status, headers, body = answer.status, answer.headers, answer.body
    content_type = headers.get("Content-Type", "").strip()[:_LONGEST_TYPE].encode("ascii", "replace").decode()
    media_type = _media_type(content_type)
    if not _may_be_page(content_type):
        return Refused(reason=f"not a page but {media_type[:80]}", status=status)
    if not body:
        return Unreachable(reason="the answer is empty", status=status)
    if body.startswith(b"\x1f\x8b"):
        return Refused(reason="packed in a way it does not say", status=status)
    if media_type in _UNTOLD:
        content_type = sniff(body)
        if media_type == "" and content_type == "application/octet-stream":
            return Refused(reason="not a page but bytes of unknown type", status=status)
    return Fetched(
        body=body,
        content_type=content_type,
        validators=validators_of(headers),
        status=status,
        wishes=wishes_in(headers, obey) if obey is not None else None,
    )


def _missed(answer: NoAnswer) -> Visit:
    match answer.trouble:
        case Trouble.CLOSED | Trouble.BOMB:
            return Refused(reason=answer.reason, status=answer.status)
        case Trouble.TOO_LARGE:
            return Refused(reason=answer.reason, status=answer.status, by_settings=True)
        case Trouble.NEVER:
            return Unreachable(reason=answer.reason, status=answer.status, retry=False)
        case Trouble.FAILED:
            return Unreachable(reason=answer.reason, status=answer.status)


@lru_cache(maxsize=256)
def _media_type(content_type: str) -> str:
    return content_type.partition(";")[0].strip().lower()


@lru_cache(maxsize=256)
def _may_be_page(content_type: str) -> bool:
    return not _NOT_PAGES.match(_media_type(content_type))
