"""Sitemaps: the pages that a site itself lists (sitemaps.org), from XML, gzipped XML or plain lines.

Bounded like everything that comes from outside: bytes, URLs, files and depth. A document type declaration ends the
reading: without one there are no entities, and no bombs made of them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from time import monotonic
from xml.parsers import expat

from kept.model.frontier import ListedUrl, ListingFailure
from kept.model.url import canonicalize_url
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.decoding import UndecodableBody, decompress_gzip
from kept.origins.web.http.messages import FailedRequest, HttpResponse

MAX_BYTES = 50 * 1024 * 1024  # of one file, unpacked; the standard's own limit
MAX_URLS = 50_000  # of one file; also the standard's
MAX_FILES = 1_000
MAX_DEPTH = 3  # an index of indexes of sitemaps
_MAX_VALUE_LENGTH = 8_192
_MAX_ENTRY_BYTES = 1024 * 1024  # bytes; one with a thousand pictures takes a fifth of that
_YIELD_SECONDS = 0.02  # seconds, after which others may go on: reading is a processor's work


class InvalidSitemap(Exception):
    """What was found is something else, or damaged."""


@dataclass(frozen=True, slots=True)
class SitemapPage:
    url: str
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChildSitemap:
    """Another sitemap, named by an index."""

    url: str


# ── Reading one ──────────────────────────────────────────────────────────────────────────────────────────────────────


def parse(body: bytes) -> Iterator[SitemapPage | ChildSitemap]:
    """What a sitemap names. NotASitemap, possibly after some of them, where it makes no sense or there are too many."""
    found: Iterator[SitemapPage | ChildSitemap] = (
        _read_xml(_decompressed(body)) if _looks_like_xml(body) else _read_lines(body)
    )
    for count, one in enumerate(found):
        if count == MAX_URLS:
            raise InvalidSitemap(f"names more than {MAX_URLS:,} URLs")
        yield one


def _looks_like_xml(body: bytes) -> bool:
    return body.startswith(b"\x1f\x8b") or body.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")[:1] == b"<"


def _decompressed(body: bytes) -> Iterator[bytes]:
    if not body.startswith(b"\x1f\x8b"):
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]
        return
    size = 0
    try:
        for piece in decompress_gzip(body):
            size += len(piece)
            if size > MAX_BYTES:
                raise InvalidSitemap(f"unpacks to more than {MAX_BYTES:,} bytes")
            yield piece
    except UndecodableBody as error:
        raise InvalidSitemap(f"cannot be unpacked: {error}") from None


def _read_xml(pieces: Iterable[bytes]) -> Iterator[SitemapPage | ChildSitemap]:
    reading = _SitemapParser()
    for_nothing = 0
    try:
        for piece in pieces:
            reading.feed(piece)
            taken = reading.take()
            yield from taken
            for_nothing = 0 if taken else for_nothing + len(piece)
            if for_nothing > _MAX_ENTRY_BYTES:
                raise InvalidSitemap(f"has an entry of more than {_MAX_ENTRY_BYTES:,} bytes")
        reading.feed(b"", last=True)
    except InvalidSitemap:
        yield from reading.take()  # what stands before the damage
        raise


class _SitemapParser:
    """An expat parser that gathers <loc> and <lastmod> of <url> and <sitemap>, whatever their namespace."""

    def __init__(self) -> None:
        self._found: list[SitemapPage | ChildSitemap] = []
        self._path: list[str] = []
        self._text: list[str] | None = None
        self._values: dict[str, str] = {}
        parser = expat.ParserCreate(namespace_separator=" ")
        parser.StartDoctypeDeclHandler = self._refuse
        parser.EntityDeclHandler = self._refuse
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._data
        parser.buffer_text = True
        self._parser = parser

    def feed(self, piece: bytes, last: bool = False) -> None:
        try:
            self._parser.Parse(piece, last)
        except (expat.ExpatError, ValueError) as error:
            raise InvalidSitemap(f"is not well-formed ({error})") from None

    def take(self) -> list[SitemapPage | ChildSitemap]:
        found, self._found = self._found, []
        return found

    def _refuse(self, *_: object) -> None:
        raise InvalidSitemap("declares a document type")

    def _start(self, name: str, attributes: object) -> None:
        local = name.rpartition(" ")[2]
        if not self._path and local not in ("urlset", "sitemapindex"):
            raise InvalidSitemap(f"is no sitemap but <{local[:40]}>")
        self._path.append(local)
        if len(self._path) == 2:
            self._values = {}
        elif len(self._path) == 3 and local in ("loc", "lastmod"):
            self._text = []
        elif len(self._path) > 100:
            raise InvalidSitemap("is nested too deeply")

    def _data(self, text: str) -> None:
        if self._text is not None and sum(map(len, self._text)) < _MAX_VALUE_LENGTH:
            self._text.append(text)

    def _end(self, name: str) -> None:
        local = self._path.pop()
        if self._text is not None:
            self._values[local] = "".join(self._text).strip()
            self._text = None
        elif len(self._path) == 1 and (url := canonicalize_url(self._values.get("loc", ""))):
            if local == "sitemap":
                self._found.append(ChildSitemap(url))
            elif local == "url":
                self._found.append(SitemapPage(url, _parse_datetime(self._values.get("lastmod", ""))))


_LINE = re.compile(rb"[^\s][^\r\n]*")


def _read_lines(body: bytes) -> Iterator[SitemapPage]:
    for line in _LINE.finditer(body):
        url = canonicalize_url(line[0].decode("utf-8-sig", "replace"))
        if url is None or not url.startswith("http"):
            raise InvalidSitemap("is neither XML nor a list of URLs")
        yield SitemapPage(url)


_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?\Z")


def _parse_datetime(text: str) -> datetime | None:
    """A W3C date and time, in UTC where it does not say."""
    if match := _DATE.match(text):
        text += "-01" * (2 - len([part for part in match.groups() if part]))
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# ── Reading all of a site ────────────────────────────────────────────────────────────────────────────────────────────


async def list_pages(
    client: HttpClient, *, declared: Iterable[str], guessed: Iterable[str], admits: Callable[[str], bool]
) -> AsyncIterator[ListedUrl | ListingFailure]:
    """The pages of these sitemaps that are admitted, and the sitemaps that should be there and cannot be read."""
    expected = dict.fromkeys(declared)
    open = [(url, 1) for url in expected] + [(url, 1) for url in dict.fromkeys(guessed) if url not in expected]
    seen = {url for url, _ in open}
    files = 0
    while open:
        url, depth = open.pop(0)
        if files == MAX_FILES:
            yield ListingFailure(url=url, reason=f"more than {MAX_FILES:,} sitemaps")
            return
        files += 1
        answer = await client.get_following_redirects(url, max_bytes=MAX_BYTES)
        if isinstance(answer, FailedRequest) or answer.status != 200:
            if url in expected or is_failure(answer):
                yield ListingFailure(url=url, reason=f"sitemap: {failure_reason(answer)}")
            continue
        breathed, is_one = monotonic(), url in expected
        try:
            for found in parse(answer.body):
                is_one = True
                if monotonic() - breathed > _YIELD_SECONDS:
                    await asyncio.sleep(0)
                    breathed = monotonic()
                if isinstance(found, SitemapPage):
                    if admits(found.url):
                        yield ListedUrl(url=found.url, modified_at=found.modified_at)
                elif found.url not in seen and len(open) <= MAX_FILES:  # the one too many tells that there are more
                    if depth == MAX_DEPTH:
                        raise InvalidSitemap("is an index below too many others")
                    seen.add(found.url)
                    expected[found.url] = None  # an index says that it is there
                    open.append((found.url, depth + 1))
        except InvalidSitemap as error:
            if is_one:  # a page served with 200 for whatever one asks for is none
                yield ListingFailure(url=url, reason=f"sitemap {error}")


def is_failure(response: HttpResponse | FailedRequest) -> bool:
    """Whether something may be there that we could not read. "Not found", to a guess, is an answer."""
    return isinstance(response, FailedRequest) or response.status == 429 or response.status >= 500


def failure_reason(response: HttpResponse | FailedRequest) -> str:
    return response.reason if isinstance(response, FailedRequest) else f"status {response.status}"
