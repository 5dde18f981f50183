"""Changes of a generation: counts, reasons, and the change of each document."""

from dataclasses import dataclass
from datetime import datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationChangeCounts:
    """How many versions a generation adds and ends."""

    brought: int  # versions born in the generation
    news: int  # those of them whose page changed, not only its reader
    replacing: int  # those that replace a living version once the generation is active
    ended: int  # versions that died in the generation
    removed: int  # those of them that are not replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeCounts:
    """How many documents a generation added, changed, moved and lost."""

    added: int = 0
    changed: int = 0
    moved: int = 0
    lost: int = 0


MAX_REASONS = 10  # of removals that are shown: the commonest


@dataclass(frozen=True, slots=True, kw_only=True)
class RemovalReason:
    """Why a generation no longer shows some documents of its base."""

    reason: str
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedGeneration:
    """A generation that changed something."""

    source_id: str
    source_name: str
    source_version: str
    number: int
    activated_at: datetime
    rolled_back: str | None  # by a rollback, not by a crawl: to where


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """The change of a document in a generation. ``before_*`` is the version before; None: there was none."""

    document_id: str
    url: str
    title: str
    content_hash: str
    read_again: bool  # the same bytes as before, read by another reader
    removed: bool
    end_reason: str | None  # why it was removed
    before_url: str | None
    before_died: int | None
    before_hash: str | None
