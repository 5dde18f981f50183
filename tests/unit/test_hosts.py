"""How a host's budget is divided among those who walk there."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from kept.crawl.host_budget import divide_budget
from kept.model.job import HostShare


def share(place: str, slots: int = 0, at_once: int = 8) -> HostShare:
    return HostShare(lease_id=place, concurrency=at_once, slots=slots)


def test_one_alone_has_all_of_it() -> None:
    assert divide_budget([], "a", 8) == (8, 8, 1)
    assert divide_budget([share("a", 8)], "a", 8) == (8, 8, 1)


def test_one_that_comes_waits_until_the_first_has_given_some_back() -> None:
    assert divide_budget([share("a", 8)], "b", 8) == (0, 4, 2)
    assert divide_budget([share("a", 8), share("b", 0)], "a", 8) == (4, 4, 2)
    assert divide_budget([share("a", 4), share("b", 0)], "b", 8) == (4, 4, 2)


def test_what_is_left_over_goes_to_the_oldest_and_too_many_get_nothing() -> None:
    walkers = [share(place, at_once=3) for place in "abcd"]
    assert [divide_budget(walkers, place, 3)[0] for place in "abcd"] == [1, 1, 1, 0]
    assert [divide_budget(walkers[:2], place, 3)[0] for place in "ab"] == [2, 1]


def test_the_gentlest_source_counts_for_all() -> None:
    assert divide_budget([share("a", 0, at_once=2)], "b", 8) == (1, 1, 2)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60), st.integers(1, 12))
def test_together_they_never_have_more_than_the_budget_and_in_the_end_all_of_it(steps: list[int], budget: int) -> None:
    """Walkers come and renew in any order; each has under way what it may, or still what it could before."""
    held: dict[str, HostShare] = {}
    allotted: dict[str, int] = {}
    for number in [*steps, *[*range(6)] * 6]:
        place = str(number)
        busy = allotted.get(place, 0)
        slots, _, _ = divide_budget(list(held.values()), place, budget)
        held[place] = replace(share(place, at_once=budget), slots=max(slots, busy))
        allotted[place] = slots
        assert sum(one.slots for one in held.values()) <= budget
    assert sum(allotted.values()) == budget
    assert max(allotted.values()) - min(allotted.values()) <= 1
