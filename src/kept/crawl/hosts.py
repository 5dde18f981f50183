"""A host's budget, shared through the database by all who walk there, in whichever process.

Each place keeps a share, renewed about once a second, and sooner while shares change hands. A share only grows into
what nobody else holds, and shrinks no faster than the requests under way end: together they never ask more than the
budget. One that is not renewed lapses, first for its holder, then for the others.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from kept.errors import LeaseLost, StoreError
from kept.log import Log
from kept.origins.origin import Origin, Share
from kept.store import hosts
from kept.store.database import Database
from kept.store.hosts import HostShare
from kept.store.jobs import Place

log = Log(__name__)

RENEW_SECONDS = 1.0
SOON_SECONDS = 0.2  # while somebody waits for what another gives up
VALID_SECONDS = 6.0  # for its holder
LAPSE_SECONDS = 10.0  # for the others: later, by more than a request takes to begin


class Sharing:
    """One walk's shares of the hosts that it asks."""

    def __init__(self, db: Database, place: Place, origin: Origin) -> None:
        self._db = db
        self._place = place
        self._origin = origin
        self._shares: dict[str, Share] = {}

    @property
    def is_crowded_out(self) -> bool:
        """Whether those who were here before need all that may be asked: there is nothing to wait for."""
        return bool(self._shares) and not any(one.part for one in self._shares.values())

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Keeps the shares up meanwhile. The renewal is told to end, not cancelled: so is every transaction."""
        await self._origin.share(self._budget)
        done = asyncio.Event()
        keeping = asyncio.create_task(self._keep(done))
        try:
            yield
        finally:
            done.set()
            await asyncio.shield(keeping)

    async def _keep(self, done: asyncio.Event) -> None:
        while not done.is_set():
            is_settled = all(one.is_settled for one in self._shares.values())
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), RENEW_SECONDS if is_settled else SOON_SECONDS)
                return
            try:
                await self._origin.share(self._budget)
            except (LeaseLost, StoreError) as error:  # it lapses, and nothing more is asked
                log.warning("share of a host not renewed", job=self._place.job_id, reason=str(error))

    async def _budget(self, host: str, at_once: int, busy: int) -> Share:
        self._shares[host] = mine = await share(self._db, self._place, host, at_once, busy)
        return mine


async def share(db: Database, place: Place, host: str, at_once: int, busy: int) -> Share:
    """What this place may ask of a host now. ``at_once``: what its source would have; ``busy``: what is under way."""
    async with db.transaction() as tx:
        await hosts.lock(tx, host)
        others = await hosts.shares(tx, host, lapse=LAPSE_SECONDS)
        slots, part, walkers = divide(others, place.id, at_once)
        held = max(slots, busy)  # others may not have what is still in use here, though it will not be used again
        if not await hosts.keep(tx, host, HostShare(place_id=place.id, at_once=at_once, slots=held)):
            raise LeaseLost("This worker was taken for dead and replaced; it asks for nothing more.")
    return Share(slots=slots, part=part, held=held, walkers=walkers, seconds=VALID_SECONDS)


def divide(shares: Sequence[HostShare], place: str, at_once: int) -> tuple[int, int, int]:
    """This place's slots, its part, and how many share the host. In equal parts; what is left over goes to the oldest.

    ``shares``: as they are held now, the oldest first. The budget is what the gentlest of them would have.
    """
    order = [one.place_id for one in shares]
    order += [] if place in order else [place]
    others = [one for one in shares if one.place_id != place]
    budget = min([at_once, *(one.at_once for one in others)])
    part, left = divmod(budget, len(order))
    fair = part + (order.index(place) < left)
    free = max(0, budget - sum(one.slots for one in others))
    return min(fair, free), fair, len(order)
