"""Shares of several crawls in one host, on both databases."""

from kept.crawl import host_budget
from kept.crawl.host_budget import HostBudget
from kept.jobs import queue
from kept.origins.origin import AllotHostSlots
from kept.store.database import Database
from tests.contract.stories import story
from tests.given import Site, a_lease, a_source

HOST = "docs.test:443"


class Asked(Site):
    """An origin with a number of slots, whose share is renewed on demand."""

    at_once = 2
    slots = 0

    async def renew_host_slots(self, allot: AllotHostSlots) -> None:
        self.slots = (await allot(HOST, self.at_once, self.slots)).slots


@story
async def test_a_later_worker_waits_for_its_share_and_leaves_only_without_one(db: Database) -> None:
    origins, sharings = [], []
    for name in ("first", "second", "third"):
        source = await a_source(db, name, root=f"https://docs.test/{name}/")
        await queue.enqueue(db, source.id)
        origins.append(Asked({}))
        sharings.append(HostBudget(db, await a_lease(db), origins[-1]))
    first, second, third = origins

    async def renew(number: int) -> None:
        await origins[number].renew_host_slots(sharings[number]._acquire_share)

    await renew(0)
    await renew(1)
    assert (first.slots, second.slots) == (2, 0), "the first has not given up anything yet"
    assert not sharings[1].is_crowded_out, "but it will"
    await renew(0)
    await renew(0)  # what was under way the first time has ended
    await renew(1)
    assert (first.slots, second.slots) == (1, 1)
    await renew(2)
    assert third.slots == 0
    assert sharings[2].is_crowded_out
    assert [sharing.is_crowded_out for sharing in sharings[:2]] == [False, False]


@story
async def test_a_share_that_is_not_balanced_is_renewed_sooner(db: Database) -> None:
    for name in ("first", "second"):
        await queue.enqueue(db, (await a_source(db, name, root=f"https://docs.test/{name}/")).id)
    first, second = await a_lease(db), await a_lease(db)
    assert (await host_budget.acquire_share(db, first, HOST, 8, 0)).is_balanced
    assert not (await host_budget.acquire_share(db, second, HOST, 8, 0)).is_balanced, "it waits"
    giving = await host_budget.acquire_share(db, first, HOST, 8, 8)
    assert (giving.slots, giving.reserved_slots, giving.is_balanced) == (4, 8, False), "all of it is still in use"
    assert (await host_budget.acquire_share(db, first, HOST, 8, 4)).is_balanced
    assert (await host_budget.acquire_share(db, second, HOST, 8, 0)).is_balanced
