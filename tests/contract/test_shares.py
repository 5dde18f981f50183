"""What several walks may ask of one host, on both databases."""

from kept.crawl import hosts
from kept.crawl.hosts import Sharing
from kept.origins.origin import Budget
from kept.store.database import Database
from kept.work import queue
from tests.contract.stories import story
from tests.given import Site, a_place, a_source

HOST = "docs.test:443"


class Asked(Site):
    """A site with so many slots, whose share is renewed when it is told to."""

    at_once = 2
    slots = 0

    async def share(self, budget: Budget) -> None:
        self.slots = (await budget(HOST, self.at_once, self.slots)).slots


@story
async def test_one_that_comes_later_waits_for_its_part_and_leaves_only_where_it_has_none(db: Database) -> None:
    origins, sharings = [], []
    for name in ("first", "second", "third"):
        source = await a_source(db, name, root=f"https://docs.test/{name}/")
        await queue.request(db, source.id)
        origins.append(Asked({}))
        sharings.append(Sharing(db, await a_place(db), origins[-1]))
    first, second, third = origins

    async def renew(number: int) -> None:
        await origins[number].share(sharings[number]._budget)

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
async def test_a_share_that_changes_hands_is_renewed_sooner(db: Database) -> None:
    for name in ("first", "second"):
        await queue.request(db, (await a_source(db, name, root=f"https://docs.test/{name}/")).id)
    first, second = await a_place(db), await a_place(db)
    assert (await hosts.share(db, first, HOST, 8, 0)).is_settled
    assert not (await hosts.share(db, second, HOST, 8, 0)).is_settled, "it waits"
    giving = await hosts.share(db, first, HOST, 8, 8)
    assert (giving.slots, giving.held, giving.is_settled) == (4, 8, False), "all of it is still in use"
    assert (await hosts.share(db, first, HOST, 8, 4)).is_settled
    assert (await hosts.share(db, second, HOST, 8, 0)).is_settled
