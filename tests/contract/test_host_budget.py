"""Sharing of the request budget of one host among crawls, on both databases."""

from kept.crawl import host_budget
from kept.crawl.host_budget import HostBudget
from kept.jobs import queue
from kept.origins.origin import AllotHostSlots
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import Site, make_lease, make_source

HOST = "docs.test:443"


class SlotSite(Site):
    """A site that remembers its slots."""

    wanted_slots = 2
    slots = 0

    async def renew_host_slots(self, allot: AllotHostSlots) -> None:
        self.slots = (await allot(HOST, self.wanted_slots, self.slots)).slots


@on_both_databases
async def test_a_later_crawl_waits_for_its_share_and_is_crowded_out_only_where_it_has_none(db: Database) -> None:
    origins, budgets = [], []
    for name in ("first", "second", "third"):
        source = await make_source(db, name, root=f"https://docs.test/{name}/")
        await queue.enqueue(db, source.id)
        origins.append(SlotSite({}))
        budgets.append(HostBudget(db, await make_lease(db), origins[-1]))
    first, second, third = origins

    async def renew(number: int) -> None:
        await origins[number].renew_host_slots(budgets[number]._acquire_share)

    await renew(0)
    await renew(1)
    assert (first.slots, second.slots) == (2, 0), "the first has not released anything yet"
    assert not budgets[1].is_crowded_out, "it will get a slot"
    await renew(0)
    await renew(0)  # what was under way the first time has ended
    await renew(1)
    assert (first.slots, second.slots) == (1, 1)
    await renew(2)
    assert third.slots == 0
    assert budgets[2].is_crowded_out
    assert [budget.is_crowded_out for budget in budgets[:2]] == [False, False]


@on_both_databases
async def test_a_share_is_renewed_sooner_while_it_is_rebalanced(db: Database) -> None:
    for name in ("first", "second"):
        await queue.enqueue(db, (await make_source(db, name, root=f"https://docs.test/{name}/")).id)
    first, second = await make_lease(db), await make_lease(db)
    assert (await host_budget.acquire_share(db, first, HOST, 8, 0)).is_balanced
    assert not (await host_budget.acquire_share(db, second, HOST, 8, 0)).is_balanced, "it waits"
    giving = await host_budget.acquire_share(db, first, HOST, 8, 8)
    assert (giving.slots, giving.reserved_slots, giving.is_balanced) == (4, 8, False), "all of it is still in use"
    assert (await host_budget.acquire_share(db, first, HOST, 8, 4)).is_balanced
    assert (await host_budget.acquire_share(db, second, HOST, 8, 0)).is_balanced
