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
from kept.origins.origin import HostAllotment, Origin
from kept.store import hosts
from kept.store.database import Database
from kept.store.hosts import HostShare
from kept.store.jobs import Lease

log = Log(__name__)

RENEW_SECONDS = 1.0
FAST_RENEW_SECONDS = 0.2  # while somebody waits for what another gives up
SHARE_VALID_SECONDS = 6.0  # for its holder
SHARE_EXPIRY_SECONDS = 10.0  # for the others: later, by more than a request takes to begin


class HostBudget:
    """One walk's shares of the hosts that it asks."""

    def __init__(self, db: Database, lease: Lease, origin: Origin) -> None:
        self._db = db
        self._lease = lease
        self._origin = origin
        self._shares: dict[str, HostAllotment] = {}

    @property
    def is_crowded_out(self) -> bool:
        """Whether those who were here before need all that may be asked: there is nothing to wait for."""
        return bool(self._shares) and not any(one.fair_slots for one in self._shares.values())

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Keeps the shares up meanwhile. The renewal is told to end, not cancelled: so is every transaction."""
        await self._origin.renew_host_slots(self._acquire_share)
        done = asyncio.Event()
        keeping = asyncio.create_task(self._renew_until_done(done))
        try:
            yield
        finally:
            done.set()
            await asyncio.shield(keeping)

    async def _renew_until_done(self, done: asyncio.Event) -> None:
        while not done.is_set():
            is_settled = all(one.is_balanced for one in self._shares.values())
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), RENEW_SECONDS if is_settled else FAST_RENEW_SECONDS)
                return
            try:
                await self._origin.renew_host_slots(self._acquire_share)
            except (LeaseLost, StoreError) as error:  # it lapses, and nothing more is asked
                log.warning("share of a host not renewed", job=self._lease.job_id, reason=str(error))

    async def _acquire_share(self, host: str, concurrency: int, in_flight: int) -> HostAllotment:
        self._shares[host] = mine = await acquire_share(self._db, self._lease, host, concurrency, in_flight)
        return mine


async def acquire_share(db: Database, lease: Lease, host: str, concurrency: int, in_flight: int) -> HostAllotment:
    """What this place may ask of a host now. ``at_once``: what its source would have; ``busy``: what is under way."""
    async with db.transaction() as tx:
        await hosts.lock(tx, host)
        others = await hosts.shares(tx, host, expires_after=SHARE_EXPIRY_SECONDS)
        slots, part, walkers = divide_budget(others, lease.id, concurrency)
        held = max(slots, in_flight)  # others may not have what is still in use here, though it will not be used again
        if not await hosts.upsert_share(tx, host, HostShare(lease_id=lease.id, concurrency=concurrency, slots=held)):
            raise LeaseLost("This worker was taken for dead and replaced; it asks for nothing more.")
    return HostAllotment(
        slots=slots, fair_slots=part, reserved_slots=held, crawlers=walkers, valid_seconds=SHARE_VALID_SECONDS
    )


def divide_budget(shares: Sequence[HostShare], lease_id: str, concurrency: int) -> tuple[int, int, int]:
    """This place's slots, its part, and how many share the host. In equal parts; what is left over goes to the oldest.

    ``shares``: as they are held now, the oldest first. The budget is what the gentlest of them would have.
    """
    order = [one.lease_id for one in shares]
    order += [] if lease_id in order else [lease_id]
    others = [one for one in shares if one.lease_id != lease_id]
    budget = min([concurrency, *(one.concurrency for one in others)])
    part, left = divmod(budget, len(order))
    fair = part + (order.index(lease_id) < left)
    free = max(0, budget - sum(one.slots for one in others))
    return min(fair, free), fair, len(order)
