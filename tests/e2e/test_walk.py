"""docs/walk.md is true: a page passes every function that it names, and not too many."""

import re
from pathlib import Path

import pytest

from tests.walk import Function, Seen, Walk, trace_all, walk

PAGE = (Path(__file__).parents[2] / "docs" / "walk.md").read_text("utf-8")
MAX_HOPS, MAX_BORDERS = 80, 40


@pytest.fixture(scope="module")
def traced() -> dict[Function, Seen]:
    return trace_all()


@pytest.fixture(scope="module")
def way(traced: dict[Function, Seen]) -> Walk:
    return walk(traced)


def named() -> list[Function]:
    """Return the functions of the page's tables, in their order."""
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (`.*?`) \|", PAGE, re.MULTILINE)
    return [(module, name) for module, names in rows for name in re.findall(r"`([^`]+)`", names)]


def test_every_function_that_the_page_names_is_passed_by_a_page(traced: dict[Function, Seen]) -> None:
    assert len(named()) > 40
    assert [one for one in named() if one not in traced] == []


def test_every_hop_is_on_the_page(way: Walk) -> None:
    assert [one for one in way.hops if one not in named()] == [], "python -m tests.walk shows the table"


def test_a_page_passes_few_functions_and_few_borders(way: Walk) -> None:
    assert len(way.hops) < MAX_HOPS
    assert len(way.borders) < MAX_BORDERS


def test_the_page_states_the_counts(way: Walk) -> None:
    stated = re.search(r"\*\*(\d+) functions and (\d+) borders\*\*", PAGE)
    assert stated
    assert abs(int(stated[1]) - len(way.hops)) <= 3
    assert abs(int(stated[2]) - len(way.borders)) <= 3


def test_only_what_hands_the_page_on_is_a_hop() -> None:
    one, two, helper, other = ("cli/a.py", "one"), ("store/b.py", "two"), ("cli/c.py", "helper"), ("cli/d.py", "other")
    found = walk(
        {
            one: Seen(set(), carries=True),
            two: Seen({one}, carries=True),
            helper: Seen({one}, carries=True),  # looks at the page and returns
            other: Seen({one}, carries=False),  # does not get the page
        }
    )
    assert found.hops == [one, two]
    assert found.borders == {(one, two)}
