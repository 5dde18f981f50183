"""The entries that one walk has taken: its own until they are settled or it is gone. Limits are kept here."""

from datetime import timedelta
from functools import partial

from kept.crawl import settle
from kept.crawl.ground import Ground
from kept.model.frontier import Entry
from kept.store import frontier, jobs
from kept.store.database import Connection

LEASED_AT_ONCE = 200  # at most
LEASED_SECONDS = 1.0  # as much as is visited in that time: the rest is left to others, who may be there or come


class Leases:
    """Taken as many at once as are visited in a second."""

    def __init__(self, ground: Ground) -> None:
        self._ground = ground
        self.pace: float | None = None  # visits a second; None: nobody knows yet

    @property
    def stride(self) -> int:
        """How many are taken at once, now: what may be asked of a host changes as others come and go."""
        at_once = self._ground.origin.concurrency
        visited = 4 * at_once if self.pace is None else round(self.pace * LEASED_SECONDS)
        return min(LEASED_AT_ONCE, max(visited, at_once, 1))

    async def take(self) -> list[Entry]:
        """The next entries: reached ones first; when none is left, what is only remembered."""
        async with self._ground.db.transaction() as tx:
            await jobs.hold(tx, self._ground.place)
            room = await self._room(tx)
            lease = partial(frontier.lease, tx, self._ground.job.id, worker=self._ground.place.id)
            stride = self.stride
            entries = await lease(limit=stride, known=room is not None)
            if room:
                entries += await lease(limit=min(room, stride))
            elif room == 0 and not entries:
                await self._keep_out(tx)
            if not entries and not (await frontier.unfinished(tx, self._ground.job.id)).reached:
                entries = await lease(limit=stride, reached=False)
        return entries

    async def give_back(self) -> None:
        """What is leased and may not be asked for: others perhaps may."""
        async with self._ground.db.transaction() as tx:
            await jobs.hold(tx, self._ground.place)
            await frontier.give_back(tx, self._ground.place.id)

    async def _room(self, tx: Connection) -> int | None:
        """How many new documents a limit still admits; None: there is no limit. What all who walk here have leased
        counts, so the job is locked: nobody else leases meanwhile.
        """
        limits = self._ground.source.settings.limits
        started = self._ground.job.started_at
        walked = self._ground.now() - started if started else timedelta()
        if limits.max_seconds is not None and walked > timedelta(seconds=limits.max_seconds):
            return 0
        if limits.max_pages is None:
            return None
        self._ground.job = await jobs.lock(tx, self._ground.job.id) or self._ground.job
        under_way = await frontier.new_under_way(tx, self._ground.job.id)
        new = self._ground.job.progress.tally.new + await jobs.uncounted_new(tx, self._ground.job.id)
        return max(0, limits.max_pages - self._ground.known - new - under_way)

    async def _keep_out(self, tx: Connection) -> None:
        ground = self._ground
        ground.job = await jobs.lock(tx, ground.job.id) or ground.job
        if await frontier.new_under_way(tx, ground.job.id):
            return  # one of them may turn out to be no document
        skipped = await frontier.skip_new(tx, ground.job.id, reason="a limit was reached", batch=ground.job.batch + 1)
        if skipped:
            ground.job = await settle.count(tx, await jobs.number_batch(tx, ground.job.id, limited=True))
