"""A noun is what the standard library's frozen dataclass with slots is, in everything that anybody relies on."""

import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, asdict, field, fields, replace
from dataclasses import dataclass as standard
from typing import Any

import pytest

from kept.model.nouns import dataclass as noun


@noun(frozen=True, slots=True)
class Point:
    x: int
    y: int = 0


@noun(frozen=True, slots=True, kw_only=True)
class Place(Point):
    name: str
    tags: list[str] = field(default_factory=list)
    key: str = field(default="", repr=False)
    seen: int = field(default=0, compare=False)

    def __post_init__(self) -> None:
        if self.x < 0:
            raise ValueError("left of everything")


@noun(frozen=True, slots=True)
class Nothing:
    pass


@noun(frozen=True, slots=True)
class Odd:
    x: int

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Odd) and other.x % 2 == self.x % 2

    def __repr__(self) -> str:
        return "odd"


def both(make: Callable[[Any], type]) -> tuple[type, type]:
    return make(noun), make(standard)


def a_page(decorator: Any) -> type:
    @decorator(frozen=True, slots=True, kw_only=True)
    class Page:
        """A page."""

        url: str
        links: tuple[str, ...] = ()
        secret: str = field(default="", repr=False)
        seen: dict[str, int] = field(default_factory=dict, compare=False)

    return Page


def test_it_says_what_the_standard_one_says() -> None:
    ours, theirs = both(a_page)
    given = {"url": "u", "links": ("a",), "secret": "s", "seen": {"b": 1}}
    assert repr(ours(**given)) == repr(theirs(**given))
    assert "secret" not in repr(ours(**given))
    assert asdict(ours(**given)) == asdict(theirs(**given)) == given
    assert [(one.name, one.kw_only) for one in fields(ours)] == [(one.name, one.kw_only) for one in fields(theirs)]
    assert ours.__slots__ == theirs.__slots__
    assert ours.__doc__ == theirs.__doc__
    assert ours.__match_args__ == theirs.__match_args__
    assert not hasattr(ours(url="u"), "__dict__")


@pytest.mark.parametrize("given", [{}, {"url": "u", "more": 1}, {"links": ()}])
def test_it_takes_what_the_standard_one_takes(given: dict[str, Any]) -> None:
    for page in both(a_page):
        with pytest.raises(TypeError):
            page(**given)
        with pytest.raises(TypeError):
            page("u")


def test_nouns_are_equal_by_what_is_compared_and_only_among_their_own_class() -> None:
    assert Place(x=1, name="a", seen=1) == Place(x=1, name="a", seen=2)
    assert Place(x=1, name="a") != Place(x=1, name="b")
    assert Point(1, 0) != Place(x=1, name="a")
    assert Point(1) != (1, 0)
    assert len({Point(1), Point(1, 0), Point(2)}) == 2
    assert Nothing() == Nothing()
    assert len({Nothing(), Nothing()}) == 1
    with pytest.raises(TypeError):
        hash(Place(x=1, name="a"))  # a list is in it


def test_what_a_class_says_itself_stands() -> None:
    assert Odd(1) == Odd(3)
    assert Odd(1) != Odd(2)
    assert repr(Odd(1)) == "odd"


def test_a_noun_stays_as_it_is() -> None:
    place = Place(x=1, name="a")
    with pytest.raises(FrozenInstanceError):
        place.x = 2  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del place.name
    with pytest.raises((FrozenInstanceError, AttributeError)):
        place.other = 1  # type: ignore[attr-defined]
    assert replace(place, x=2) == Place(x=2, name="a")
    assert place == Place(x=1, name="a")


def test_each_has_its_own_default_and_is_checked_when_it_is_made() -> None:
    one, other = Place(x=1, name="a"), Place(x=1, name="a")
    assert one.tags is not other.tags
    with pytest.raises(ValueError, match="left"):
        Place(x=-1, name="a")
    with pytest.raises(ValueError, match="left"):
        replace(one, x=-1)


def test_it_goes_from_process_to_process_and_can_be_matched() -> None:
    place = Place(x=1, y=2, name="a", tags=["t"], key="k")
    assert pickle.loads(pickle.dumps(place)) == place
    assert pickle.loads(pickle.dumps(place)).key == "k"
    match Point(1, 2):
        case Point(x, y):
            assert (x, y) == (1, 2)


def test_all_that_a_noun_has_is_given_when_it_is_made() -> None:
    class Later:
        when: int = field(init=False)

    with pytest.raises(AssertionError):
        noun(frozen=True, slots=True)(Later)


def test_what_is_no_noun_is_left_to_the_standard_library() -> None:
    @noun(slots=True)
    class Count:
        n: int = 0

    count = Count()
    count.n += 1
    assert count == Count(1)
