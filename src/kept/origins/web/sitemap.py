"""Sitemaps: the pages that a site itself lists (sitemaps.org), from XML, gzipped XML or plain lines.

Bounded like everything that comes from outside: bytes, URLs, files and depth. A document type declaration ends the
reading: without one there are no entities, and no bombs made of them.
"""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from datetime import UTC, datetime
from time import monotonic
from xml.parsers import expat

from kept.model.frontier import Listed, Unlisted
from kept.model.nouns import dataclass
from kept.model.url import canonical
from kept.origins.web.decoding import Undecodable, unpack_gzip
from kept.origins.web.egress import Egress
from kept.origins.web.exchange import Answer, NoAnswer

LARGEST = 50 * 1024 * 1024  # of one file, unpacked; the standard's own limit
MOST_URLS = 50_000  # of one file; also the standard's
MOST_FILES = 1_000
DEEPEST = 3  # an index of indexes of sitemaps
_LONGEST_VALUE = 8_192
_LARGEST_ENTRY = 1024 * 1024  # bytes; one with a thousand pictures takes a fifth of that
_BREATH = 0.02  # seconds, after which others may go on: reading is a processor's work


class NotASitemap(Exception):
    """What was found is something else, or damaged."""


@dataclass(frozen=True, slots=True)
class Page:
    url: str
    modified_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Child:
    """Another sitemap, named by an index."""

    url: str


# ── Reading one ──────────────────────────────────────────────────────────────────────────────────────────────────────


def read(body: bytes) -> Iterator[Page | Child]:
    """What a sitemap names. NotASitemap, possibly after some of them, where it makes no sense or there are too many."""
    found: Iterator[Page | Child] = _read_xml(_unpacked(body)) if _looks_like_xml(body) else _read_lines(body)
    for count, one in enumerate(found):
        if count == MOST_URLS:
            raise NotASitemap(f"names more than {MOST_URLS:,} URLs")
        yield one


def _looks_like_xml(body: bytes) -> bool:
    return body.startswith(b"\x1f\x8b") or body.lstrip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n")[:1] == b"<"


def _unpacked(body: bytes) -> Iterator[bytes]:
    if not body.startswith(b"\x1f\x8b"):
        for start in range(0, len(body), 1 << 16):
            yield body[start : start + (1 << 16)]
        return
    size = 0
    try:
        for piece in unpack_gzip(body):
            size += len(piece)
            if size > LARGEST:
                raise NotASitemap(f"unpacks to more than {LARGEST:,} bytes")
            yield piece
    except Undecodable as error:
        raise NotASitemap(f"cannot be unpacked: {error}") from None


def _read_xml(pieces: Iterable[bytes]) -> Iterator[Page | Child]:
    reading = _Reading()
    for_nothing = 0
    try:
        for piece in pieces:
            reading.feed(piece)
            taken = reading.taken()
            yield from taken
            for_nothing = 0 if taken else for_nothing + len(piece)
            if for_nothing > _LARGEST_ENTRY:
                raise NotASitemap(f"has an entry of more than {_LARGEST_ENTRY:,} bytes")
        reading.feed(b"", last=True)
    except NotASitemap:
        yield from reading.taken()  # what stands before the damage
        raise


class _Reading:
    """An expat parser that gathers <loc> and <lastmod> of <url> and <sitemap>, whatever their namespace."""

    def __init__(self) -> None:
        self._found: list[Page | Child] = []
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
            raise NotASitemap(f"is not well-formed ({error})") from None

    def taken(self) -> list[Page | Child]:
        found, self._found = self._found, []
        return found

    def _refuse(self, *_: object) -> None:
        raise NotASitemap("declares a document type")

    def _start(self, name: str, attributes: object) -> None:
        local = name.rpartition(" ")[2]
        if not self._path and local not in ("urlset", "sitemapindex"):
            raise NotASitemap(f"is no sitemap but <{local[:40]}>")
        self._path.append(local)
        if len(self._path) == 2:
            self._values = {}
        elif len(self._path) == 3 and local in ("loc", "lastmod"):
            self._text = []
        elif len(self._path) > 100:
            raise NotASitemap("is nested too deeply")

    def _data(self, text: str) -> None:
        if self._text is not None and sum(map(len, self._text)) < _LONGEST_VALUE:
            self._text.append(text)

    def _end(self, name: str) -> None:
        local = self._path.pop()
        if self._text is not None:
            self._values[local] = "".join(self._text).strip()
            self._text = None
        elif len(self._path) == 1 and (url := canonical(self._values.get("loc", ""))):
            if local == "sitemap":
                self._found.append(Child(url))
            elif local == "url":
                self._found.append(Page(url, _moment(self._values.get("lastmod", ""))))


_LINE = re.compile(rb"[^\s][^\r\n]*")


def _read_lines(body: bytes) -> Iterator[Page]:
    for line in _LINE.finditer(body):
        url = canonical(line[0].decode("utf-8-sig", "replace"))
        if url is None or not url.startswith("http"):
            raise NotASitemap("is neither XML nor a list of URLs")
        yield Page(url)


_DATE = re.compile(r"\d{4}(-\d\d(-\d\d)?)?\Z")


def _moment(text: str) -> datetime | None:
    """A W3C date and time, in UTC where it does not say."""
    if match := _DATE.match(text):
        text += "-01" * (2 - len([part for part in match.groups() if part]))
    try:
        moment = datetime.fromisoformat(text)
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


# ── Reading all of a site ────────────────────────────────────────────────────────────────────────────────────────────


async def listed(
    egress: Egress, *, named: Iterable[str], guessed: Iterable[str], admits: Callable[[str], bool]
) -> AsyncIterator[Listed | Unlisted]:
    """The pages of these sitemaps that are admitted, and the sitemaps that should be there and cannot be read."""
    expected = dict.fromkeys(named)
    open = [(url, 1) for url in expected] + [(url, 1) for url in dict.fromkeys(guessed) if url not in expected]
    seen = {url for url, _ in open}
    files = 0
    while open:
        url, depth = open.pop(0)
        if files == MOST_FILES:
            yield Unlisted(url=url, reason=f"more than {MOST_FILES:,} sitemaps")
            return
        files += 1
        answer = await egress.follow(url, most=LARGEST)
        if isinstance(answer, NoAnswer) or answer.status != 200:
            if url in expected or is_trouble(answer):
                yield Unlisted(url=url, reason=f"sitemap: {why_unread(answer)}")
            continue
        breathed, is_one = monotonic(), url in expected
        try:
            for found in read(answer.body):
                is_one = True
                if monotonic() - breathed > _BREATH:
                    await asyncio.sleep(0)
                    breathed = monotonic()
                if isinstance(found, Page):
                    if admits(found.url):
                        yield Listed(url=found.url, modified_at=found.modified_at)
                elif found.url not in seen and len(open) <= MOST_FILES:  # the one too many tells that there are more
                    if depth == DEEPEST:
                        raise NotASitemap("is an index below too many others")
                    seen.add(found.url)
                    expected[found.url] = None  # an index says that it is there
                    open.append((found.url, depth + 1))
        except NotASitemap as error:
            if is_one:  # a page served with 200 for whatever one asks for is none
                yield Unlisted(url=url, reason=f"sitemap {error}")


def is_trouble(answer: Answer | NoAnswer) -> bool:
    """Whether something may be there that we could not read. "Not found", to a guess, is an answer."""
    return isinstance(answer, NoAnswer) or answer.status == 429 or answer.status >= 500


def why_unread(answer: Answer | NoAnswer) -> str:
    return answer.reason if isinstance(answer, NoAnswer) else f"status {answer.status}"
