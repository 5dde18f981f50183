"""Tokens of full-text search."""

import pytest

from kept.model.document import Section
from kept.model.index_fields import build_section_fields
from kept.model.tokens import defined_symbols, fold_text, language_token, parse_symbol, split_camel_case, tokenize
from kept.search.query import parse_query
from kept.search.snippet import make_snippet


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("asyncio.wait_for(--no-ff)", ["asyncio", "wait", "for", "no", "ff"]),
        ("Crème Brûlée naïve Å", ["creme", "brulee", "naive", "a"]),
        ("全文検索 and 한국어", ["全文", "文検", "検索", "and", "한국", "국어"]),
        ("字", ["字"]),
    ],
)
def test_text_becomes_tokens_without_accents_and_with_bigrams(text: str, expected: list[str]) -> None:
    assert tokenize(text) == expected


@pytest.mark.parametrize(
    ("heading", "expected"),
    [
        ("class QuerySet(model=None)", ("queryset",)),
        ("Class ArrayList<E>", ("arraylist",)),
        ("max_connections (integer)", ("max", "connections")),
        ("branch.<name>.remote", ("branch", "name", "remote")),
        ("How to log a user in and out again in one view", ()),
        ("--no-ff", ("no", "ff")),
    ],
)
def test_the_symbol_of_a_heading_is_the_name_before_its_signature(heading: str, expected: tuple[str, ...]) -> None:
    assert parse_symbol(heading) == expected


def test_the_terms_of_a_definition_list_are_defined_and_labels_are_not() -> None:
    text = "Intro.\n\n**bare repository**\n\nOne without files.\n\n**Returns:**\n\nThe **bold** word."
    assert list(defined_symbols(text)) == [("bare", "repository")]


def test_the_parts_of_words_in_camel_case_are_words() -> None:
    assert split_camel_case("HTMLParser getElementById plain CONSTANT") == (
        "HTML",
        "Parser",
        "get",
        "Element",
        "By",
        "Id",
    )


def test_a_language_is_found_by_all_its_names() -> None:
    assert language_token("py") == language_token("Python") != language_token("python2")
    assert language_token("c++") == language_token("cpp")


def test_prose_code_and_symbols_are_indexed_separately_and_link_targets_not_at_all() -> None:
    text = "### add(x)\n\nSee [the list](<list.html#zebra>).\n\n```py\nitems.add(1)\n```\nAfter."
    found = build_section_fields("Lists", "Class ArrayList<E>\nMethods", Section(3, 0, 3, "add(x)", "add(int)", text))
    assert "zqarraylistadd" in found.names.split()
    assert "zebra" not in found.text
    assert "items" not in found.text
    assert found.code.split("\n")[:2] == ["zqinpython", "items add 1 "]
    assert found.text.split() == ["add", "x", "See", "the", "list", "After"]


@pytest.mark.parametrize(
    ("typed", "text", "marked"),
    [
        ("connections", "# Pool\nA connection pool.", "A **connection** pool."),
        ("wait_for", "Use asyncio.wait_for here.", "Use asyncio.**wait_for** here."),
        ("creme", "Une crème brûlée.", "Une **crème** brûlée."),
        ("全文検索", "この全文検索は速い。", "この**全文検索**は速い。"),
        ("-x y", "x or y", "x or **y**"),
    ],
)
def test_query_terms_are_marked_in_any_spelling(typed: str, text: str, marked: str) -> None:
    assert make_snippet(text, parse_query(typed).terms) == marked


def test_plain_text_is_not_copied() -> None:
    text = "plain"
    assert fold_text(text) is text
