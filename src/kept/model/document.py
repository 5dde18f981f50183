"""Documents: their versions, contents and sections, and how a crawl changes them."""

from dataclasses import dataclass
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kept.model.robots_directives import RobotsDirectives

if TYPE_CHECKING:
    from kept.model.index_fields import IndexFields


class Lifecycle(StrEnum):
    """The state of a document after the last crawls."""

    ACTIVE = "active"  # seen and read
    MISSING = "missing"  # no longer seen; it may come back until the grace period ends
    ERROR = "error"  # could not be read; its last version stays visible
    DELETED = "deleted"  # gone, or missing for longer than the grace period; kept for history


COMPANION_MARK = "+"  # in an ETag: of the page, and of what it includes


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """Headers that the origin sent so that the next request can be conditional."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)

    @property
    def own_etag(self) -> str:
        """Return what the origin said of the page itself, without what it includes."""
        return (self.etag or "").partition(COMPANION_MARK)[0]

    def with_companions(self, digest: str) -> "Validators":
        """Return validators that also tell whether what the page includes is the same. A list alone no longer does."""
        return Validators(etag=f"{self.etag}{COMPANION_MARK}{digest}") if self.etag else self

    def as_headers(self) -> dict[str, str]:
        headers = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in headers.items() if value}


class PageKind(StrEnum):
    """The purpose of a page. It guides sections and ranking, never visibility."""

    PAGE = "page"
    INDEX = "index"  # of names: the index of a book, all classes, keywords
    CONTENTS = "contents"  # a table of contents
    CHANGELOG = "changelog"  # release notes, too
    GLOSSARY = "glossary"
    SEARCH = "search"
    MANUAL = "manual"  # a whole manual once more, on one page
    STUB = "stub"  # says nothing itself: a redirect, a placeholder


class Place(NamedTuple):
    """An id or name in the text of a page, and the text that it stands for. Positions count characters of Markdown."""

    anchor: str  # "" for a named entry that the page gives none
    start: int = 0
    end: int = 0  # of a heading's text with all below it, of an entry, else of the rest of the section
    name: str = ""  # of a named entry, as written


class NamedEntry(NamedTuple):
    """The name of an entry, as written, and its anchor, or ""."""

    name: str
    anchor: str


class Section(NamedTuple):
    """A node of a content's heading tree, or a part of a long one. Search returns sections.

    A tuple, like everything that passes between processes: tuples are pickled fastest.
    """

    position: int  # in pre-order, from 0
    parent: int | None  # the position of the parent section
    level: int  # 0 for text before the first heading
    heading: str
    anchor: str | None
    text: str
    entry: str = ""  # its name as written, if it is a named entry and no heading
    entries: tuple[NamedEntry, ...] = ()  # named entries in its text, too short to be sections


SECTIONS_PER_CONTENT = 1 << 20
Rows: TypeAlias = tuple[tuple[Any, ...], ...]


def section_id(content_id: int, position: int) -> int:
    """Compute a section's id from its content and position, so that a tree is stored without reading ids back."""
    return content_id * SECTIONS_PER_CONTENT + position


def section_position(id: int) -> int:
    """Return the position of a section on its page, from its id."""
    return id % SECTIONS_PER_CONTENT


class Content(NamedTuple):
    """Title, markdown and sections behind one hash, stored once however many documents share them."""

    hash: str
    title: str
    markdown: str
    sections: tuple[Section, ...]
    index_fields: "tuple[IndexFields, ...]" = ()  # for each section, if the reader has prepared them
    kind: PageKind = PageKind.PAGE
    places: tuple[Place, ...] = ()  # in the order of the page

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle as plain tuples, which takes half the time of named ones."""
        sections, fields = tuple(map(_plain_section, self.sections)), tuple(map(tuple, self.index_fields))
        places = tuple(map(tuple, self.places))
        return _unpickle_content, (self.hash, self.title, self.markdown, sections, fields, self.kind.value, places)


def _plain_section(section: Section) -> tuple[Any, ...]:
    return (*section[:7], tuple(map(tuple, section.entries))) if section.entries else tuple(section)


def _unpickle_content(
    hash: str, title: str, markdown: str, sections: Rows, fields: Rows, kind: str, places: Rows
) -> Content:
    from kept.model.index_fields import IndexFields

    return Content(
        hash,
        title,
        markdown,
        tuple([_unpickle_section(row) for row in sections]),
        tuple(map(IndexFields._make, fields)),
        PageKind(kind),
        tuple(map(Place._make, places)),
    )


def _unpickle_section(row: tuple[Any, ...]) -> Section:
    return Section._make((*row[:7], tuple(map(NamedEntry._make, row[7]))) if row[7] else row)


RENDERED_CONTENT_TYPE = "text/html; charset=utf-8; rendered"
"""The type of a page that a browser rendered. Only there may a fragment be a page ('#/guide')."""


class ParsedPage(NamedTuple):
    """The content and links that a reader extracted from one page."""

    content: Content
    links: tuple[str, ...] = ()  # canonical URLs, navigation included, in page order
    canonical: str | None = None  # its canonical URL, by a link or by its file name, if it is another one
    moved_to: str | None = None  # target of an immediate meta refresh
    is_js_shell: bool = False  # no text before its scripts have run
    robots_directives: RobotsDirectives = RobotsDirectives()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """The reason why no text could be extracted."""

    reason: str
    is_reader_failure: bool = False  # the reader crashed or timed out; the page itself may be fine


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """A document's state in the generations ``born <= g < died``."""

    id: int
    document_id: str
    born: int
    died: int | None
    url: str
    content_hash: str
    content_type: str
    validators: Validators
    raw_hash: str
    signature: str
    depth: int
    links: tuple[str, ...]
    fetched_at: datetime
    canonical: str | None = None  # the URL that it may be a duplicate of


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One page or file of a source, for its whole life."""

    id: str
    source_id: str
    first_seen: datetime
    lifecycle: Lifecycle
    retry_count: int = 0
    since: datetime | None = None  # when it stopped being active
    missed_crawls: int = 0
    reason: str | None = None
    verified_at: datetime | None = None  # its own; None: shared with its generation


# How a crawl adds to documents, finds former ones again, and changes their lifecycle. ------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class NewVersion:
    """A version that a crawl adds; invisible until its generation is active."""

    document_id: str
    born: int
    pending: bool  # the document has a living version, which this one will replace
    read_again: bool
    url: str
    content_id: int
    content_type: str
    validators: Validators
    raw_hash: str
    signature: str
    depth: int
    links: tuple[str, ...]
    canonical: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class UpcomingVersion:
    """The version that a generation under construction has at a URL, its own or its base's."""

    url: str
    document_id: str
    content_id: int
    content_type: str
    fetched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class NewPage:
    """A URL with content that is no document of the base."""

    version_id: int
    document: str  # the provisional one that the crawl inserted
    url: str
    depth: int
    content_id: int
    size: int


class MatchTier(IntEnum):
    """The order in which former documents are matched with new pages."""

    LOST = 0  # by this crawl
    MISSING = 1
    DELETED = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FormerDocument:
    """A document that the new generation would not show, with its last version."""

    document: str
    url: str
    content_id: int
    tier: MatchTier
    born: int = 0  # generation of its last version


@dataclass(frozen=True, slots=True, kw_only=True)
class ExceptionalDocument:
    """A document that is missing, in error or has its own time of verification, and its outcome in this crawl."""

    id: str
    lifecycle: Lifecycle
    since: datetime | None
    missed_crawls: int
    retry_count: int
    reason: str | None
    verified_at: datetime | None
    url: str | None  # in the base; None if the base does not show it
    outcome: str | None
    reached: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LifecycleChange:
    """A document's lifecycle after a crawl."""

    document: str
    lifecycle: Lifecycle
    since: datetime | None = None
    missed_crawls: int = 0
    retry_count: int = 0
    reason: str | None = None
    verified_at: datetime | None = None
    is_ended: bool = False  # the new generation no longer shows it
    is_grace_over: bool = False  # it was missing, and is deleted now
    is_lost: bool = False  # it ended, and not because of a change of settings


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownDocument:
    """A document in the list of a generation, with the version that the generation shows."""

    id: str
    url: str
    title: str
    content_type: str
    content_hash: str
    lifecycle: Lifecycle
    first_seen: datetime
    fetched_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownVersion:
    """The version of a document that a generation shows, with its text."""

    url: str
    title: str
    markdown: str
    content_id: int
    content_hash: str
    fetched_at: datetime
    verified_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class PastVersion:
    """A version in the history of a document."""

    born: int  # the generation that shows it first
    died: int | None  # the first generation that does not show it any more
    url: str
    title: str
    content_hash: str
    size: int
    read_again: bool  # the same bytes as before, read by another reader
    fetched_at: datetime
    activated_at: datetime | None
    ended_at: datetime | None
    rolled_back: str | None  # by a rollback, not by a crawl: to where
    end_reason: str | None = None  # why the document was removed with it; None: another version follows, or it lives


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentAtUrl:
    """A document that is or was shown at a URL."""

    document_id: str
    source_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DifferingVersion:
    """A version that exactly one of two generations shows."""

    document_id: str
    url: str
    content_hash: str
    is_first: bool  # it is the first of the two that shows it
    is_edited: bool  # the page itself changed between them, not only the reader


@dataclass(frozen=True, slots=True, kw_only=True)
class BornVersion:
    """A version that a generation adds."""

    document_id: str
    url: str
    replaces: bool  # an earlier version of a document, once the generation is active
    read_again: bool  # the same bytes as before, read by another reader
