"""What a person types becomes terms; nothing that is typed is a syntax error."""

import pytest

from kept.search.query import parse


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("connection pool", ("connection", "pool")),
        ("how to sort a dictionary by value", ("sort", "dictionary", "value")),
        ("What is the WAL for", ("What", "is", "the", "WAL", "for")),
        ("for loop", ("for", "loop")),
        ("with", ("with",)),
        ("how to", ("how", "to")),
        ('"how to" sort lists', ("how to", "sort", "lists")),
        ("asyncio.wait_for --no-ff", ("asyncio.wait_for", "--no-ff")),
    ],
)
def test_small_words_of_a_question_count_only_where_there_is_little_else(typed: str, terms: tuple[str, ...]) -> None:
    assert parse(typed).terms == terms
