"""The context of one crawl: what all of its parts share."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from kept.crawl.start import start_generation
from kept.model.job import CrawlJob, Lease
from kept.model.source import Source
from kept.origins.origin import Origin
from kept.store import generations
from kept.store.database import Database, current_time


@dataclass(slots=True, kw_only=True)
class CrawlContext:
    """Everything but the job stays the same during a crawl. The job is as it was last read."""

    db: Database
    lease: Lease
    source: Source
    origin: Origin
    signature: str  # of the pipeline that reads pages today
    on_progress: Callable[[CrawlJob], None]
    fixed_now: datetime | None  # for tests
    job: CrawlJob = field(init=False)
    base_generation: int | None = None
    base_document_count: int = 0
    _clock_offset: tuple[datetime, float] = field(init=False)

    async def start(self) -> None:
        """Start the job's generation, or continue the one that was started before, and read its base."""
        self.job = await start_generation(
            self.db, self.lease, lists_everything=self.origin.lists_everything, now=self.fixed_now
        )
        async with self.db.snapshot() as snapshot:
            self._clock_offset = (await current_time(snapshot), time.monotonic())
            generation = await generations.get(snapshot, self.source.id, self.job.generation or 0)
            if generation and generation.base:
                base = await generations.get(snapshot, self.source.id, generation.base)
                self.base_generation, self.base_document_count = generation.base, base.documents if base else 0

    def now(self) -> datetime:
        """Return the time by the database's clock, without a query."""
        moment, at = self._clock_offset
        return moment + timedelta(seconds=time.monotonic() - at)
