"""The entries that one walk has taken: its own until they are settled or it is gone. Limits are kept here."""

from datetime import timedelta
from functools import partial

from kept.crawl import settle
from kept.crawl.context import CrawlContext
from kept.model.frontier import FrontierEntry
from kept.store import frontier, jobs
from kept.store.database import Connection

LEASE_BATCH_SIZE = 200  # at most
LEASE_BATCH_SECONDS = 1.0  # as much as is visited in that time: the rest is left to others, who may be there or come


class EntryLeases:
    """Taken as many at once as are visited in a second."""

    def __init__(self, context: CrawlContext) -> None:
        self._context = context
        self.visits_per_second: float | None = None  # visits a second; None: nobody knows yet

    @property
    def batch_size(self) -> int:
        """How many are taken at once, now: what may be asked of a host changes as others come and go."""
        at_once = self._context.origin.concurrency
        visited = 4 * at_once if self.visits_per_second is None else round(self.visits_per_second * LEASE_BATCH_SECONDS)
        return min(LEASE_BATCH_SIZE, max(visited, at_once, 1))

    async def lease_next(self) -> list[FrontierEntry]:
        """The next entries: reached ones first; when none is left, what is only remembered."""
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            room = await self._remaining_pages(tx)
            lease = partial(frontier.lease, tx, self._context.job.id, worker=self._context.lease.id)
            stride = self.batch_size
            entries = await lease(limit=stride, known=room is not None)
            if room:
                entries += await lease(limit=min(room, stride))
            elif room == 0 and not entries:
                await self._skip_over_limit(tx)
            if not entries and not (await frontier.open_entries(tx, self._context.job.id)).has_reached:
                entries = await lease(limit=stride, reached=False)
        return entries

    async def release_all(self) -> None:
        """What is leased and may not be asked for: others perhaps may."""
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            await frontier.release_entries(tx, self._context.lease.id)

    async def _remaining_pages(self, tx: Connection) -> int | None:
        """How many new documents a limit still admits; None: there is no limit. What all who walk here have leased
        counts, so the job is locked: nobody else leases meanwhile.
        """
        limits = self._context.source.settings.limits
        started = self._context.job.started_at
        walked = self._context.now() - started if started else timedelta()
        if limits.max_seconds is not None and walked > timedelta(seconds=limits.max_seconds):
            return 0
        if limits.max_pages is None:
            return None
        self._context.job = await jobs.lock(tx, self._context.job.id) or self._context.job
        under_way = await frontier.count_leased_new(tx, self._context.job.id)
        new = self._context.job.progress.tally.new + await jobs.count_new_since_progress(tx, self._context.job.id)
        return max(0, limits.max_pages - self._context.base_document_count - new - under_way)

    async def _skip_over_limit(self, tx: Connection) -> None:
        context = self._context
        context.job = await jobs.lock(tx, context.job.id) or context.job
        if await frontier.count_leased_new(tx, context.job.id):
            return  # one of them may turn out to be no document
        skipped = await frontier.skip_new(tx, context.job.id, reason="a limit was reached", batch=context.job.batch + 1)
        if skipped:
            context.job = await settle.update_progress(tx, await jobs.advance_batch(tx, context.job.id, limited=True))
