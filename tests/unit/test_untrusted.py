"""Output for MCP clients: cleaned texts in envelopes, errors that name tools, versions that match."""

import sys
import unicodedata

from kept.errors import InvalidInput, NotFound
from kept.server.mcp.formatting import format_changes
from kept.server.mcp.registry import error_text
from kept.server.mcp.untrusted import clean_text, clean_values, truncate, wrap_untrusted


def test_invisible_characters_are_removed() -> None:
    unseen = {chr(code) for code in range(sys.maxunicode + 1) if unicodedata.category(chr(code)) in ("Cc", "Cf", "Cs")}
    shown = {*"\n\t", *"\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2\U000110bd\U000110cd"}
    joiners = {chr(code) for code in range(0x13430, 0x13440)}  # they place hieroglyphs
    left = {character for character in unseen if character in clean_text(character)}
    assert left - shown - joiners == set()


def test_visible_characters_stay() -> None:
    text = "naïve Ω 漢字 العربية 🐦 `x\ty`\n\n> ¶ – “quoted”\n"
    assert clean_text(text) == text
    assert clean_text("a\r\nb\rc\u2028d") == "a\nb\nc\nd"
    assert clean_values({"a": ["x\u200b", 1, None, ("\x1by",)]}) == {"a": ["x", 1, None, ["y"]]}


def test_each_text_is_wrapped_between_random_marks_of_its_own() -> None:
    first = wrap_untrusted("text")
    again = wrap_untrusted(first)
    mark, other = first[-19:-3], again[-19:-3]
    assert mark != other
    assert again.endswith(f"\n{mark}>>>\n{other}>>>")
    assert again.count(other) == 3


def test_a_text_is_shortened_at_the_end_of_a_line() -> None:
    assert truncate("one\ntwo\nthree", 9) == "one\ntwo"
    assert truncate("x" * 20, 9) == "x" * 9
    assert truncate("short", 9) == "short"


def test_an_error_names_tools_and_arguments_instead_of_commands_and_options() -> None:
    text = error_text(NotFound("There is no source named 'djano'. 'kept list' shows what there is."))
    assert "There is no source named 'djano'. list_sources shows what there is.\n" in text
    assert "\nChoose another name with name, or max_pages.\n" in error_text(
        InvalidInput("Choose another name with --name, or --max-pages.")
    )
    assert "'kept rollback docs 3' at the command line" in error_text(InvalidInput("Say 'kept rollback docs 3'."))
    assert len(error_text(NotFound("x " * 5000))) <= 1700


def test_the_number_of_changes_that_are_left_out_is_reported() -> None:
    shown = {"added": ["a", "b"], "removed": [], "changed": ["c"], "moved": [{"from": "d", "to": "e", "document": "1"}]}
    counts = {"added": 102, "removed": 0, "changed": 1, "moved": 1}
    lines = format_changes({"source": "docs", "from": 1, "to": 2, "counts": counts, **shown}).splitlines()
    assert lines[1:] == ["+ a", "+ b", "+ … and 100 more added; a later 'since' has fewer", "~ c", "> d -> e"]
