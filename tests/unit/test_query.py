"""Queries become terms; no query is a syntax error."""

import pytest

from kept.errors import InvalidInput
from kept.model.sign_tokens import find_sign_tokens, sign_token
from kept.model.tokens import Term
from kept.search.query import QueryFilters, parse_query


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


@pytest.mark.parametrize(
    ("typed", "searched"),
    [
        ("git commit -a", [("git",), ("commit",), "-a"]),
        ("git add -A", [("git",), ("add",), "-A"]),
        ("pg_dump -Fc", [("pg", "dump"), "-Fc"]),
        ("-DSQLITE_DEBUG", ["-DSQLITE_DEBUG"]),
        ("reset --hard", [("reset",), "--hard"]),
        ("x == y", [("x",), "==", ("y",)]),
        ("data->>'name'", [("data",), ("name",), "->>"]),
        ("c++ C# %s $HOME .gitignore @wraps(f)", ["c++", "C#", "%s", "$HOME", ".gitignore", "@wraps", ("f",)]),
        ("__init__", ["__init__"]),
        ("=", ["="]),
        ("-zebra", ["-zebra"]),
    ],
)
def test_what_is_written_with_signs_is_searched_as_it_is_written(typed: str, searched: list[object]) -> None:
    found = parse_query(typed)
    assert [term.text or term.words for term in found.terms] == searched
    assert found.excluded == ()


def test_a_flag_has_the_token_that_the_index_has() -> None:
    for typed in ("-a", "-A", "--no-ff", "->>", "c++", "C#", "%s", "$HOME", "@app.route", "__init__", "==", ".import"):
        tokens = set(find_sign_tokens(f"Use `{typed}` here."))
        assert tokens & set(parse_query(typed).terms[0].tokens), typed
    assert set(find_sign_tokens("--[no-]ff")) >= {sign_token("--ff"), sign_token("--no-ff")}
    assert sign_token("-a") != sign_token("-A")
    assert find_sign_tokens("See https://docs.test/a-b/c--d, a well-known **bold** place | and | cells.") == []


def test_filters_are_no_words_of_a_query() -> None:
    found = parse_query("source:git source:django@5 log lang:sh kind:code @2.39 kind:nonsense")
    assert found.filters == QueryFilters(("git", "django@5"), "sh", "code", "2.39")
    assert found.words == ("log", "kind", "nonsense")
    assert parse_query("source:git").words == ("source", "git"), "a query of filters alone is searched"


def test_an_exclusion_never_empties_a_query() -> None:
    found = parse_query("pool -mysql")
    assert (found.words, found.excluded) == (("pool",), (Term(("mysql",)),))
    assert parse_query("pool -readonly", flags=["-readonly"]).excluded == ()
    assert parse_query('-"two words"').words == ("two", "words")
    with pytest.raises(InvalidInput):
        parse_query(" ")


def test_a_query_asks_no_more_of_a_database_than_it_can_find_in_no_time() -> None:
    many = parse_query(" ".join(f"word{number}" for number in range(50)))
    assert len(many.terms) == 32
    prefixes = parse_query("s* re* con* pro* st*").terms
    assert [term.is_prefix for term in prefixes] == [False, True, True, True, False], "one letter is a word"
    phrases = parse_query(" ".join(f"a_b{number}" for number in range(12))).terms
    assert [len(term.words) for term in phrases] == [2] * 6 + [1] * 12
    assert parse_query("_".join("abcdefghijkl")).terms[0].words == tuple("abcdefgh")
    assert len(parse_query("tea " + " ".join(f"-no{number}" for number in range(50))).excluded) == 32
