"""What a page asks of robots."""

import pytest

from kept.model.wishes import Wishes, wishes_of


@pytest.mark.parametrize(
    ("values", "wishes"),
    [
        ([], Wishes()),
        (["index, follow, max-snippet:-1"], Wishes()),
        (["NoIndex"], Wishes(noindex=True)),
        ([" noarchive , nofollow "], Wishes(nofollow=True)),
        (["none"], Wishes(noindex=True, nofollow=True)),
        (["noindex", "nofollow"], Wishes(noindex=True, nofollow=True)),
        (["noindexing, not-nofollow"], Wishes()),
    ],
)
def test_rules_ask(values: list[str], wishes: Wishes) -> None:
    assert wishes_of(values) == wishes


def test_who_asks_in_two_places_has_asked_for_both() -> None:
    assert Wishes(noindex=True) | Wishes(nofollow=True) == Wishes(noindex=True, nofollow=True)
