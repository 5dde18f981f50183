"""The request budget of a host, shared through the database by all crawls of it, in any process.

Each lease holds a share, renewed about once a second, and sooner while shares are being rebalanced. A share only grows
into slots that no other lease holds, and shrinks no faster than its requests end: together they never exceed the
budget. A share that is not renewed expires, first for its holder, then for the others.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress

from kept.errors import LeaseLost, StoreError
from kept.log import Log
from kept.model.job import HostShare, Lease
from kept.origins.origin import HostAllotment, Origin
from kept.store import jobs
from kept.store.database import Database

log = Log(__name__)

RENEW_SECONDS = 1.0
FAST_RENEW_SECONDS = 0.2  # while shares are being rebalanced
SHARE_VALID_SECONDS = 6.0  # for its holder
SHARE_EXPIRY_SECONDS = 10.0  # for the others: later, by more than it takes to start a request


class HostBudget:
    """The shares of one crawl in the budgets of its hosts."""

    def __init__(self, db: Database, lease: Lease, origin: Origin) -> None:
        self._db = db
        self._lease = lease
        self._origin = origin
        self._shares: dict[str, HostAllotment] = {}

    @property
    def is_crowded_out(self) -> bool:
        """Whether older leases need the whole budget of every host, so that waiting is pointless."""
        return bool(self._shares) and not any(share.fair_slots for share in self._shares.values())

    @asynccontextmanager
    async def renewed(self) -> AsyncIterator[None]:
        """Renew the shares while the block runs. The renewal ends by an event: a transaction must not be cancelled."""
        await self._origin.renew_host_slots(self._acquire_share)
        done = asyncio.Event()
        renewal = asyncio.create_task(self._renew_until_done(done))
        try:
            yield
        finally:
            done.set()
            await asyncio.shield(renewal)

    async def _renew_until_done(self, done: asyncio.Event) -> None:
        while not done.is_set():
            is_balanced = all(share.is_balanced for share in self._shares.values())
            with suppress(TimeoutError):
                await asyncio.wait_for(done.wait(), RENEW_SECONDS if is_balanced else FAST_RENEW_SECONDS)
                return
            try:
                await self._origin.renew_host_slots(self._acquire_share)
            except (LeaseLost, StoreError) as error:  # the share expires, and no more requests are sent
                log.warning("share of a host not renewed", job=self._lease.job_id, reason=str(error))

    async def _acquire_share(self, host: str, concurrency: int, in_flight: int) -> HostAllotment:
        self._shares[host] = share = await acquire_share(self._db, self._lease, host, concurrency, in_flight)
        return share


async def acquire_share(db: Database, lease: Lease, host: str, concurrency: int, in_flight: int) -> HostAllotment:
    """Renew a lease's share of a host. Raises LeaseLost if the worker was replaced.

    ``concurrency`` is what the source's settings allow, ``in_flight`` the number of requests under way.
    """
    async with db.transaction() as tx:
        await jobs.lock_host(tx, host)
        shares = await jobs.host_shares(tx, host, expires_after=SHARE_EXPIRY_SECONDS)
        slots, fair_slots, crawlers = divide_budget(shares, lease.id, concurrency)
        reserved = max(slots, in_flight)  # slots in use are not free for the others until their requests end
        if not await jobs.upsert_host_share(
            tx, host, HostShare(lease_id=lease.id, concurrency=concurrency, slots=reserved)
        ):
            raise LeaseLost("This worker was replaced, because its heartbeats stopped. It sends no more requests.")
    return HostAllotment(
        slots=slots,
        fair_slots=fair_slots,
        reserved_slots=reserved,
        crawlers=crawlers,
        valid_seconds=SHARE_VALID_SECONDS,
    )


def divide_budget(shares: Sequence[HostShare], lease_id: str, concurrency: int) -> tuple[int, int, int]:
    """Return a lease's slots now, its fair number of slots, and how many leases share the host.

    ``shares`` are the current ones, the oldest first. The budget is the smallest concurrency among them, divided
    equally; the remainder goes to the oldest.
    """
    order = [share.lease_id for share in shares]
    order += [] if lease_id in order else [lease_id]
    others = [share for share in shares if share.lease_id != lease_id]
    budget = min([concurrency, *(share.concurrency for share in others)])
    quotient, remainder = divmod(budget, len(order))
    fair = quotient + (order.index(lease_id) < remainder)
    free = max(0, budget - sum(share.slots for share in others))
    return min(fair, free), fair, len(order)
