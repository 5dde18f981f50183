"""A document and what it was: versions, contents, sections."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from kept.model.robots_directives import RobotsDirectives

if TYPE_CHECKING:
    from kept.model.index_fields import IndexFields


class Lifecycle(StrEnum):
    """What the last crawls made of a document."""

    ACTIVE = "active"  # seen, in good order
    MISSING = "missing"  # not seen any more; waiting for it to come back until the grace period ends
    ERROR = "error"  # could not be read; still shown as it was
    DELETED = "deleted"  # gone by evidence, or missing for too long; kept for history


@dataclass(frozen=True, slots=True, kw_only=True)
class Validators:
    """What the origin gave us so that we can ask "has it changed?" next time."""

    etag: str | None = None
    last_modified: str | None = None

    def __bool__(self) -> bool:
        return bool(self.etag or self.last_modified)

    def as_headers(self) -> dict[str, str]:
        offered = {"If-None-Match": self.etag, "If-Modified-Since": self.last_modified}
        return {name: value for name, value in offered.items() if value}


class Section(NamedTuple):
    """A node of a content's heading tree, or a part of a long one. It is what search finds.

    A tuple, as all that goes from process to process: no other noun is packed and unpacked as quickly.
    """

    position: int  # in pre-order, from 0
    parent: int | None  # the position of the section above
    level: int  # 0 for what stands before the first heading
    heading: str
    anchor: str | None
    text: str


SECTIONS_PER_CONTENT = 1 << 20
Rows: TypeAlias = tuple[tuple[Any, ...], ...]


def section_id(content_id: int, position: int) -> int:
    """The id of a section follows from its content and position, so a tree is stored without asking for ids."""
    return content_id * SECTIONS_PER_CONTENT + position


class Content(NamedTuple):
    """Title, markdown and sections behind one hash; the same wherever it is found."""

    hash: str
    title: str
    markdown: str
    sections: tuple[Section, ...]
    index_fields: "tuple[IndexFields, ...]" = ()  # for each section, if the reader has prepared them

    def __reduce__(self) -> tuple[Any, ...]:
        """Packed as plain tuples, in half the time that so many named ones take."""
        sections, words = tuple(map(tuple, self.sections)), tuple(map(tuple, self.index_fields))
        return _unpacked, (self.hash, self.title, self.markdown, sections, words)


def _unpacked(hash: str, title: str, markdown: str, sections: Rows, words: Rows) -> Content:
    from kept.model.index_fields import IndexFields

    return Content(hash, title, markdown, tuple(map(Section._make, sections)), tuple(map(IndexFields._make, words)))


RENDERED_CONTENT_TYPE = "text/html; charset=utf-8; rendered"
"""The type of a page as its scripts made it, in a browser of ours. Only there may a fragment be a page ('#/guide')."""


class ParsedPage(NamedTuple):
    """What a reader made of the bytes of one page."""

    content: Content
    links: tuple[str, ...] = ()  # canonical, navigation included, in the order of the page
    canonical: str | None = None  # the URL that it should be known by, as it says or as its name says, if another
    moved_to: str | None = None  # where the page sends its reader at once
    is_js_shell: bool = False  # nothing to read before its scripts have run
    robots_directives: RobotsDirectives = RobotsDirectives()


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """These bytes cannot be made into words, and why."""

    reason: str
    is_reader_failure: bool = False  # the reader broke down over them, which says little about the page


@dataclass(frozen=True, slots=True, kw_only=True)
class Version:
    """What a document was over the generations ``born <= g < died``."""

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
    canonical: str | None = None  # the URL of which it may be a duplicate


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
