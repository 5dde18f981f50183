"""The frontier entries that one worker has leased: its own until they are settled or the worker is gone.

The source's limits are enforced here: what may not be visited is not leased. What a guard may refuse is deferred until
nothing else is open (``admission``).
"""

from collections.abc import Awaitable, Callable, Iterable
from datetime import timedelta
from functools import partial
from typing import TypeAlias

from kept.crawl import admission, settle
from kept.crawl.context import CrawlContext
from kept.crawl.decide import VisitResult
from kept.crawl.links import LinkDiscovery
from kept.model.frontier import LIMIT_REASON, FrontierEntry
from kept.store import frontier, jobs
from kept.store.database import Connection

LEASE_BATCH_SIZE = 200  # at most
LEASE_BATCH_SECONDS = 1.0  # lease what is visited in this time, and leave the rest to other workers

LeaseEntries: TypeAlias = Callable[..., Awaitable[list[FrontierEntry]]]


class EntryLeases:
    """Leases about as many entries at once as are visited in a second."""

    def __init__(self, context: CrawlContext, link_discovery: LinkDiscovery) -> None:
        self._context = context
        self._link_discovery = link_discovery
        self._urls: set[str] = set()  # leased, and not settled
        self.visits_per_second: float | None = None  # None until the first batch is committed

    @property
    def batch_size(self) -> int:
        """How many entries to lease at once. The origin's concurrency changes as other workers come and go."""
        concurrency, speed = self._context.origin.concurrency, self.visits_per_second
        wanted = 4 * concurrency if speed is None else round(speed * LEASE_BATCH_SECONDS)
        return min(LEASE_BATCH_SIZE, max(wanted, concurrency, 1))

    async def lease_next(self, *, retried: bool = False) -> list[FrontierEntry]:
        """Lease the next entries: reached ones, then a round of deferred ones, then those only known from the base.

        ``retried``: an earlier try may have leased entries although its connection broke. They are released first.
        """
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            if retried:
                unknown = await frontier.list_leased_urls(tx, self._context.lease.id) - self._urls
                await frontier.release_urls(tx, self._context.job.id, unknown)
            remaining = await self._remaining_pages(tx)
            lease = partial(frontier.lease, tx, self._context.job.id, lease_id=self._context.lease.id)
            size = self.batch_size
            entries = await lease(limit=size, known=remaining is not None)
            if remaining:
                entries += await lease(limit=min(remaining, size))
            elif remaining == 0 and not entries:
                await self._skip_over_limit(tx)
            if not entries and not (await frontier.open_entries(tx, self._context.job.id)).has_reached:
                await self._start_next_round(tx, retried=retried)
                entries = await lease(limit=size) or await self._lease_unreached(tx, lease, size)
        self._urls.update(entry.url for entry in entries)
        return entries

    def forget(self, results: Iterable[VisitResult]) -> None:
        """Forget entries that were settled, or are to be visited later."""
        self._urls.difference_update(result.entry.url for result in results)

    async def _start_next_round(self, tx: Connection, *, retried: bool) -> None:
        """Let the guards decide about deferred entries; when none are left, follow what redirects in vain.

        The job is locked: another worker may have done it.
        """
        context = self._context
        context.job = await jobs.lock(tx, context.job.id) or context.job
        remaining = await self._remaining_pages(tx)
        open_entries = await frontier.open_entries(tx, context.job.id)
        if open_entries.has_deferred and not open_entries.has_reached:
            await admission.admit_next_round(tx, context, remaining)
            open_entries = await frontier.open_entries(tx, context.job.id)
        if not open_entries.has_reached and not open_entries.has_deferred:
            await self._link_discovery.follow_failed_redirects(tx, retried=retried)
            open_entries = await frontier.open_entries(tx, context.job.id)
        if not open_entries.has_reached and not open_entries.has_deferred:
            await admission.skip_too_deep(tx, context)

    async def _lease_unreached(self, tx: Connection, lease: LeaseEntries, size: int) -> list[FrontierEntry]:
        open_entries = await frontier.open_entries(tx, self._context.job.id)
        is_waiting = open_entries.has_reached or open_entries.has_deferred
        return [] if is_waiting else await lease(limit=size, reached=False)

    async def release_all(self) -> None:
        """Release all entries of this worker, so that other workers may visit them."""
        async with self._context.db.transaction() as tx:
            await jobs.lock_lease(tx, self._context.lease)
            await frontier.release_entries(tx, self._context.lease.id)
        self._urls.clear()

    async def _remaining_pages(self, tx: Connection) -> int | None:
        """Return how many new documents the limits still admit; None without a limit.

        Entries leased by other workers count too, so the job is locked until the transaction ends.
        """
        limits = self._context.source.settings.limits
        started_at = self._context.job.started_at
        elapsed = self._context.now() - started_at if started_at else timedelta()
        if limits.max_seconds is not None and elapsed > timedelta(seconds=limits.max_seconds):
            return 0
        if limits.max_pages is None:
            return None
        self._context.job = await jobs.lock(tx, self._context.job.id) or self._context.job
        leased = await frontier.count_leased_new(tx, self._context.job.id)
        new = self._context.job.progress.tally.new + await jobs.count_new_since_progress(tx, self._context.job.id)
        return max(0, limits.max_pages - self._context.base_document_count - new - leased)

    async def _skip_over_limit(self, tx: Connection) -> None:
        """Skip all open entries that would become new documents."""
        context = self._context
        context.job = await jobs.lock(tx, context.job.id) or context.job
        if await frontier.count_leased_new(tx, context.job.id):
            return  # one of them may turn out to be no document, which leaves room for another
        skipped = await frontier.skip_new(tx, context.job.id, reason=LIMIT_REASON, batch=context.job.batch + 1)
        if skipped:
            context.job = await settle.update_progress(tx, await jobs.advance_batch(tx, context.job.id, limited=True))
