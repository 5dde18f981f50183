"""Sitemaps (sitemaps.org) as XML, gzipped XML or plain lines.

Bytes, URLs, files and depth are bounded. A document type declaration is refused: without one there are no entities,
and so no entity bombs.
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
MAX_DEPTH = 3  # sitemaps in an index of an index
_MAX_VALUE_LENGTH = 8_192
_MAX_ENTRY_BYTES = 1024 * 1024  # one with a thousand images takes a fifth of that
_YIELD_SECONDS = 0.02  # how long parsing may block the event loop


class InvalidSitemap(Exception):
    """The file is not a sitemap, or damaged."""


@dataclass(frozen=True, slots=True)
class SitemapPage:
    url: str
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class ChildSitemap:
    """A sitemap that an index names."""

    url: str


# ── Parsing one sitemap ──────────────────────────────────────────────────────────────────────────────────────────────


def parse(body: bytes) -> Iterator[SitemapPage | ChildSitemap]:
    """Yield the entries of a sitemap. Raises InvalidSitemap, possibly after some entries."""
    entries: Iterator[SitemapPage | ChildSitemap] = (
        _read_xml(_decompressed(body)) if _looks_like_xml(body) else _read_lines(body)
    )
    for count, entry in enumerate(entries):
        if count == MAX_URLS:
            raise InvalidSitemap(f"names more than {MAX_URLS:,} URLs")
        yield entry


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
    parser = _SitemapParser()
    bytes_since_entry = 0
    try:
        for piece in pieces:
            parser.feed(piece)
            entries = parser.take()
            yield from entries
            bytes_since_entry = 0 if entries else bytes_since_entry + len(piece)
            if bytes_since_entry > _MAX_ENTRY_BYTES:
                raise InvalidSitemap(f"has an entry of more than {_MAX_ENTRY_BYTES:,} bytes")
        parser.feed(b"", last=True)
    except InvalidSitemap:
        yield from parser.take()  # the entries before the damage
        raise


class _SitemapParser:
    """An expat parser that collects <loc> and <lastmod> of <url> and <sitemap> in any namespace."""

    def __init__(self) -> None:
        self._entries: list[SitemapPage | ChildSitemap] = []
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
        entries, self._entries = self._entries, []
        return entries

    def _refuse(self, *_: object) -> None:
        raise InvalidSitemap("declares a document type")

    def _start(self, name: str, attributes: object) -> None:
        local = name.rpartition(" ")[2]
        if not self._path and local not in ("urlset", "sitemapindex"):
            raise InvalidSitemap(f"is not a sitemap but <{local[:40]}>")
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
                self._entries.append(ChildSitemap(url))
            elif local == "url":
                self._entries.append(SitemapPage(url, _parse_datetime(self._values.get("lastmod", ""))))


_LINE = re.compile(rb"[^\s][^\r\n]*")


def _read_lines(body: bytes) -> Iterator[SitemapPage]:
    for line in _LINE.finditer(body):
        url = canonicalize_url(line[0].decode("utf-8-sig", "replace"))
        if url is None or not url.startswith("http"):
            raise InvalidSitemap("is neither XML nor a list of URLs")
        yield SitemapPage(url)


_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?\Z")


def _parse_datetime(text: str) -> datetime | None:
    """Parse a W3C date and time; UTC without a time zone."""
    if match := _DATE.match(text):
        text += "-01" * (2 - len([part for part in match.groups() if part]))
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# ── Listing a site ───────────────────────────────────────────────────────────────────────────────────────────────────


async def list_pages(
    client: HttpClient, *, declared: Iterable[str], guessed: Iterable[str], admits: Callable[[str], bool]
) -> AsyncIterator[ListedUrl | ListingFailure]:
    """Yield the admitted pages of these sitemaps, and a failure for each that should exist and cannot be read."""
    expected = dict.fromkeys(declared)
    pending = [(url, 1) for url in expected] + [(url, 1) for url in dict.fromkeys(guessed) if url not in expected]
    seen = {url for url, _ in pending}
    files = 0
    while pending:
        url, depth = pending.pop(0)
        if files == MAX_FILES:
            yield ListingFailure(url=url, reason=f"more than {MAX_FILES:,} sitemaps")
            return
        files += 1
        response = await client.get_following_redirects(url, max_bytes=MAX_BYTES)
        if isinstance(response, FailedRequest) or response.status != 200:
            if url in expected or is_failure(response):
                yield ListingFailure(url=url, reason=f"sitemap: {failure_reason(response)}")
            continue
        yielded_at, is_sitemap = monotonic(), url in expected
        try:
            for entry in parse(response.body):
                is_sitemap = True
                if monotonic() - yielded_at > _YIELD_SECONDS:
                    await asyncio.sleep(0)
                    yielded_at = monotonic()
                if isinstance(entry, SitemapPage):
                    if admits(entry.url):
                        yield ListedUrl(url=entry.url, modified_at=entry.modified_at)
                elif entry.url not in seen and len(pending) <= MAX_FILES:  # one more than allowed, to report the excess
                    if depth == MAX_DEPTH:
                        raise InvalidSitemap("is an index below too many others")
                    seen.add(entry.url)
                    expected[entry.url] = None
                    pending.append((entry.url, depth + 1))
        except InvalidSitemap as error:
            if is_sitemap:  # not a page served with 200 for every URL
                yield ListingFailure(url=url, reason=f"sitemap {error}")


def is_failure(response: HttpResponse | FailedRequest) -> bool:
    """Return whether a guessed file may exist and could not be read. "Not found" is not a failure."""
    return isinstance(response, FailedRequest) or response.status == 429 or response.status >= 500


def failure_reason(response: HttpResponse | FailedRequest) -> str:
    return response.reason if isinstance(response, FailedRequest) else f"status {response.status}"
