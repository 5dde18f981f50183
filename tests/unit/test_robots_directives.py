"""What a page asks of robots."""

import pytest

from kept.model.robots_directives import RobotsDirectives, parse_robots_directives


@pytest.mark.parametrize(
    ("values", "wishes"),
    [
        ([], RobotsDirectives()),
        (["index, follow, max-snippet:-1"], RobotsDirectives()),
        (["NoIndex"], RobotsDirectives(noindex=True)),
        ([" noarchive , nofollow "], RobotsDirectives(nofollow=True)),
        (["none"], RobotsDirectives(noindex=True, nofollow=True)),
        (["noindex", "nofollow"], RobotsDirectives(noindex=True, nofollow=True)),
        (["noindexing, not-nofollow"], RobotsDirectives()),
    ],
)
def test_rules_ask(values: list[str], wishes: RobotsDirectives) -> None:
    assert parse_robots_directives(values) == wishes


def test_who_asks_in_two_places_has_asked_for_both() -> None:
    assert RobotsDirectives(noindex=True) | RobotsDirectives(nofollow=True) == RobotsDirectives(
        noindex=True, nofollow=True
    )
