"""Parsing of robots directives in headers and meta elements."""

import pytest

from kept.model.robots_directives import RobotsDirectives, parse_robots_directives


@pytest.mark.parametrize(
    ("values", "directives"),
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
def test_directives_are_parsed(values: list[str], directives: RobotsDirectives) -> None:
    assert parse_robots_directives(values) == directives


def test_directives_of_two_places_are_combined() -> None:
    assert RobotsDirectives(noindex=True) | RobotsDirectives(nofollow=True) == RobotsDirectives(
        noindex=True, nofollow=True
    )
