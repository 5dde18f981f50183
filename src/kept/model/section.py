"""Sections as the store returns them. Named tuples, because one search reads hundreds of them."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

GenerationFilter = Sequence[tuple[str, int]] | None
"""Pairs of source id and generation number; None: the active generation of every source."""


class StoredSection(NamedTuple):
    """A section of a stored content."""

    id: int
    parent_id: int | None
    position: int
    level: int
    heading: str
    headings: str  # from the top of the page down to its own heading, one a line
    anchor: str | None
    text: str
    entry: str  # its name as written, if it is a named entry
    entries: tuple[tuple[str, str], ...]  # name and anchor of the named entries in it


class SectionMatch(NamedTuple):
    """A section, the document that shows it, and the generation and source of that document."""

    id: int
    position: int
    heading: str
    headings: str
    anchor: str | None
    text: str
    entry: str  # its name as written, if it is a named entry
    entries: tuple[tuple[str, str], ...]  # name and anchor of the named entries in it
    title: str
    kind: str  # of its page, a PageKind
    document_id: str
    source_id: str
    url: str
    fetched_at: datetime
    verified_at: datetime
    root: str
    source_name: str
    source_version: str
    version_count: int  # of sources with this name among those searched
    generation: int
    is_partial: bool


class SectionText(NamedTuple):
    """The parts of a section that its vector is computed from."""

    id: int
    title: str
    headings: str
    text: str


class FtsCandidates(NamedTuple):
    """Sections that full text found: scores by section id, best first, and those that the generations show."""

    scores: dict[int, float]
    matches: list[SectionMatch]
    has_more: bool  # as many were found as were asked for
