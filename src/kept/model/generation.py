"""A generation: a complete state of a source."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from kept.model.source import SourceSettings


class GenerationState(StrEnum):
    BUILDING = "building"  # a crawl is filling it
    HELD = "held"  # complete, but too much was lost or failed: a person decides
    ACTIVE = "active"  # what queries see; one per source
    RETIRED = "retired"  # was active; kept for history
    ABANDONED = "abandoned"  # never finished, or discarded; its rows are being deleted

    @property
    def is_readable(self) -> bool:
        """Whether the generation is or was active, so that it can be searched and read by number."""
        return self in (GenerationState.ACTIVE, GenerationState.RETIRED)


GENERATION_TRANSITIONS: dict[GenerationState, frozenset[GenerationState]] = {
    GenerationState.BUILDING: frozenset({GenerationState.ACTIVE, GenerationState.HELD, GenerationState.ABANDONED}),
    GenerationState.HELD: frozenset({GenerationState.ACTIVE, GenerationState.ABANDONED}),
    GenerationState.ACTIVE: frozenset({GenerationState.RETIRED}),
    GenerationState.RETIRED: frozenset(),
    GenerationState.ABANDONED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """Number of URLs by outcome."""

    new: int = 0
    changed: int = 0
    unchanged: int = 0
    moved: int = 0
    gone: int = 0
    failed: int = 0
    skipped: int = 0

    def as_json(self) -> dict[str, int]:
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A state of a source, numbered 1, 2, 3 … per source. A number is never reused."""

    source_id: str
    number: int
    base: int | None  # the generation that was active when this one was started
    state: GenerationState
    job_id: str | None
    settings: SourceSettings  # of the source, when this generation was crawled
    mode: str | None  # its crawl's CrawlMode; None for a rollback
    created_at: datetime
    activated_at: datetime | None = None
    documents: int = 0  # how many it contains
    tally: Tally = Tally()
    partial: str | None = None  # why it is incomplete: "limit" or "errors"
    reason: str | None = None  # why it is held or abandoned, or which generation it rolled back to


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
    before_url: str | None
    before_died: int | None
    before_hash: str | None
