"""Division of a host's request budget among the leases that crawl it."""

from hypothesis import given
from hypothesis import strategies as st

from kept.crawl.host_budget import divide_budget
from kept.model.job import HostShare


def share(lease_id: str, slots: int = 0, concurrency: int = 8) -> HostShare:
    return HostShare(lease_id=lease_id, concurrency=concurrency, slots=slots)


def test_a_single_crawl_has_the_whole_budget() -> None:
    assert divide_budget([], "a", 8) == (8, 8, 1)
    assert divide_budget([share("a", 8)], "a", 8) == (8, 8, 1)


def test_a_second_crawl_waits_until_the_first_has_released_slots() -> None:
    assert divide_budget([share("a", 8)], "b", 8) == (0, 4, 2)
    assert divide_budget([share("a", 8), share("b", 0)], "a", 8) == (4, 4, 2)
    assert divide_budget([share("a", 4), share("b", 0)], "b", 8) == (4, 4, 2)


def test_the_remainder_goes_to_the_oldest_and_too_many_get_nothing() -> None:
    shares = [share(lease, concurrency=3) for lease in "abcd"]
    assert [divide_budget(shares, lease, 3)[0] for lease in "abcd"] == [1, 1, 1, 0]
    assert [divide_budget(shares[:2], lease, 3)[0] for lease in "ab"] == [2, 1]


def test_the_smallest_concurrency_is_the_budget_of_all() -> None:
    assert divide_budget([share("a", 0, concurrency=2)], "b", 8) == (1, 1, 2)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 12))
def test_together_they_never_exceed_the_budget_and_in_the_end_use_all_of_it(steps: list[int], budget: int) -> None:
    """Leases come and renew in any order; each has as many requests under way as it was allotted last."""
    shares: dict[str, HostShare] = {}
    allotted: dict[str, int] = {}
    for number in [*steps, *[*range(6)] * 6]:
        lease = str(number)
        in_flight = allotted.get(lease, 0)
        slots, _, _ = divide_budget(list(shares.values()), lease, budget)
        shares[lease] = share(lease, concurrency=budget, slots=max(slots, in_flight))
        allotted[lease] = slots
        assert sum(one.slots for one in shares.values()) <= budget
    assert sum(allotted.values()) == budget
    assert max(allotted.values()) - min(allotted.values()) <= 1
