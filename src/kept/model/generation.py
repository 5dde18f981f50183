"""A generation: a complete state of a source."""

from dataclasses import asdict, dataclass
from datetime import datetime
from enum import StrEnum

from kept.model.source import SourceSettings


class GenerationState(StrEnum):
    BUILDING = "building"  # a crawl is filling it
    HELD = "held"  # complete, but it lost too much: a person decides
    ACTIVE = "active"  # what queries see; one per source
    RETIRED = "retired"  # was active; kept for history
    ABANDONED = "abandoned"  # never finished, or discarded; its rows are on their way out


GENERATION_TRANSITIONS: dict[GenerationState, frozenset[GenerationState]] = {
    GenerationState.BUILDING: frozenset({GenerationState.ACTIVE, GenerationState.HELD, GenerationState.ABANDONED}),
    GenerationState.HELD: frozenset({GenerationState.ACTIVE, GenerationState.ABANDONED}),
    GenerationState.ACTIVE: frozenset({GenerationState.RETIRED}),
    GenerationState.RETIRED: frozenset(),
    GenerationState.ABANDONED: frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """How many URLs came to which outcome."""

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
    """Numbered 1, 2, 3 … per source; a number is never used twice."""

    source_id: str
    number: int
    base: int | None  # the generation that was active when this one was begun
    state: GenerationState
    job_id: str | None
    settings: SourceSettings  # the source's settings it was made with
    mode: str | None  # how its crawl looked (see CrawlMode); None for a rollback
    created_at: datetime
    activated_at: datetime | None = None
    documents: int = 0  # how many it shows
    tally: Tally = Tally()
    partial: str | None = None  # why it is not the whole source, if it is not
    reason: str | None = None  # why it is held or abandoned, or what it rolled back to
