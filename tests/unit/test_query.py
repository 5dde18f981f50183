"""Queries become terms; no query is a syntax error."""

import pytest

from kept.search.query import parse_query


@pytest.mark.parametrize(
    ("typed", "terms"),
    [
        ("connection pool", ("connection", "pool")),
        ("how to sort a dictionary by value", ("sort", "dictionary", "value")),
        ("What is the WAL for", ("what", "is", "the", "wal", "for")),
        ("for loop", ("for", "loop")),
        ("with", ("with",)),
        ("how to", ("how", "to")),
        ('"how to" sort lists', ("how to", "sort", "lists")),
        ("asyncio.wait_for --no-ff", ("asyncio", "wait for", "no ff")),
        ("std::vector List#add 3.2", ("std", "vector", "list", "add", "3 2")),
        ("filter() max_connections", ("filter", "max connections")),
        ("Crème brûlée", ("creme", "brulee")),
        ("全文検索", ("全文 文検 検索",)),
    ],
)
def test_small_words_of_a_question_count_only_where_there_is_little_else(typed: str, terms: tuple[str, ...]) -> None:
    assert tuple(" ".join(term.words) for term in parse_query(typed).terms) == terms


def test_a_query_asks_no_more_of_a_database_than_it_can_find_in_no_time() -> None:
    many = parse_query(" ".join(f"word{number}" for number in range(50)))
    assert len(many.terms) == 32
    prefixes = parse_query("s* re* con* pro* st*").terms
    assert [term.is_prefix for term in prefixes] == [False, True, True, True, False], "one letter is a word"
    phrases = parse_query(" ".join(f"a_b{number}" for number in range(12))).terms
    assert [len(term.words) for term in phrases] == [2] * 6 + [1] * 12
    assert parse_query("_".join("abcdefghijkl")).terms[0].words == tuple("abcdefgh")
    assert len(parse_query("tea " + " ".join(f"-no{number}" for number in range(50))).excluded) == 32
