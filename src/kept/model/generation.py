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
    dead_links: int = 0  # links to what was never kept and is not there

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
    partial: str | None = None  # why it is incomplete: "limit", "trap" or "errors"
    reason: str | None = None  # why it is held or abandoned, or which generation it rolled back to
