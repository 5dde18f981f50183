"""What all parts of one walk stand on: the job and its source, the origin, and the moment."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kept.crawl import activate
from kept.model.job import CrawlJob
from kept.model.source import Source
from kept.origins.origin import Origin
from kept.store import generations
from kept.store.database import Database, current_time
from kept.store.jobs import Lease


@dataclass(slots=True, kw_only=True)
class CrawlContext:
    """Only the job changes: it is as it was last seen."""

    db: Database
    lease: Lease
    source: Source
    origin: Origin
    signature: str
    on_progress: Callable[[CrawlJob], None]
    fixed_now: datetime | None
    job: CrawlJob = field(init=False)
    base_generation: int | None = None  # the generation that this one is built on
    base_document_count: int = 0  # documents of the base
    _clock_offset: tuple[datetime, float] = field(init=False)

    async def start(self) -> None:
        """There is a generation to fill, or the one that was begun before."""
        lists_everything = self.origin.lists_everything
        self.job = await activate.start_generation(
            self.db, self.lease, lists_everything=lists_everything, now=self.fixed_now
        )
        async with self.db.snapshot() as snapshot:
            self._clock_offset = (await current_time(snapshot), time.monotonic())
            generation = await generations.get(snapshot, self.source.id, self.job.generation or 0)
            if generation and generation.base:
                base = await generations.get(snapshot, self.source.id, generation.base)
                self.base_generation, self.base_document_count = generation.base, base.documents if base else 0

    def now(self) -> datetime:
        """The database's clock, without asking it each time."""
        moment, at = self._clock_offset
        return moment + timedelta(seconds=time.monotonic() - at)
