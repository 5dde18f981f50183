"""Section trees and splitting: no text is lost, no section is too long, blocks stay whole."""

import pickle
import re
from itertools import pairwise

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from kept.errors import InvalidInput
from kept.extract.markdown.reader import extract
from kept.extract.sections import (
    DEFAULT_SECTION_RULES,
    MAX_HEADING_LENGTH,
    Extraction,
    SectionNode,
    SectionRules,
    build_content,
    build_section_tree,
    flatten_section_tree,
    split_text,
)
from kept.model import document
from kept.model.document import Content, Section

SMALL = SectionRules(max_characters=400, target_characters=200)

# ── What documents are document of ────────────────────────────────────────────────────────────────────────────────────

_WORD = st.text("abcdefghij", min_size=1, max_size=12) | st.sampled_from(["café", "`code`", "**bold**", "世界", "3.14"])
_LINE = st.lists(_WORD, min_size=1, max_size=15).map(" ".join)
_PARAGRAPH = st.lists(_LINE, min_size=1, max_size=6).map("\n".join)
_HEADING = st.builds(lambda level, words: f"{'#' * level} {words}", st.integers(1, 6), _LINE)
_CODE_LINE = st.text("abc =(){}#|->`", max_size=40).map(lambda line: line.replace("```", "").rstrip())


def _fenced(mark: str, margin: str, lines: list[str]) -> str:
    return "\n".join(margin + line for line in [f"{mark}python", *lines, mark])


_FENCE = st.builds(
    _fenced,
    st.sampled_from(["~~~", "~~~~~", "```"]),
    st.sampled_from(["", "  ", "> ", "> > "]),
    st.lists(_CODE_LINE, max_size=30),
)
_ITEM_FENCE = st.builds(lambda words, code: f"- {words}\n\n{code}", _LINE, _FENCE.filter(lambda code: code[0] == " "))
_LIST = st.lists(st.builds(lambda depth, words: f"{'  ' * depth}- {words}", st.integers(0, 2), _LINE), min_size=1)
_TABLE = st.lists(st.tuples(_WORD, _WORD), min_size=1, max_size=30).map(
    lambda rows: "\n".join(["| name | use |", "| --- | --- |", *(f"| {name} | {use} |" for name, use in rows)])
)
_QUOTE = _PARAGRAPH.map(lambda words: "\n".join(f"> {line}" for line in words.split("\n")))
_HTML = st.just("<pre>\none\n\ntwo\n</pre>") | _LINE.map(lambda words: f"<!-- {words} -->")
_BLOCK = st.one_of(
    _PARAGRAPH, _HEADING, _FENCE, _ITEM_FENCE, _LIST.map("\n".join), _TABLE, _QUOTE, _HTML, st.just("    indented\n")
)
DOCUMENTS = st.lists(_BLOCK, max_size=12).map("\n\n".join) | st.text("ab #->`~|*\n", max_size=800)


def content(markdown: str, rules: SectionRules = SMALL) -> Content:
    extraction = extract(markdown.encode(), None)
    assert isinstance(extraction, Extraction)
    return build_content(extraction.title, extraction.markdown, extraction.tree, rules)


def words_are_kept_in_order(markdown: str, texts: list[str]) -> bool:
    words = iter("\n".join(texts).split())
    return all(word in words for word in markdown.split())


# ── What always holds ─────────────────────────────────────────────────────────────────────────────────────────────────


@given(markdown=DOCUMENTS)
@settings(max_examples=50)
@example(markdown="- ```\n  " + "x " * 300 + "\n  ```")
@example(markdown="```\n" + "\n" * 500 + "```")
def test_no_word_is_lost_or_moved(markdown: str) -> None:
    assume(all(len(word) < SMALL.target_characters for word in markdown.split()))  # longer ones may be cut
    document = content(markdown)
    assert words_are_kept_in_order(document.markdown, [section.text for section in document.sections])


@given(markdown=DOCUMENTS)
def test_no_section_is_longer_than_the_rules_allow_or_empty(markdown: str) -> None:
    for section in content(markdown).sections:
        assert 0 < len(section.text.strip()) <= len(section.text) <= SMALL.max_characters


@given(markdown=DOCUMENTS)
def test_positions_count_from_zero_and_parents_come_before_their_children(markdown: str) -> None:
    sections = content(markdown).sections
    assert [section.position for section in sections] == list(range(len(sections)))
    for section in sections:
        if section.parent is not None:
            assert section.parent < section.position
            assert sections[section.parent].level < section.level
    for before, after in pairwise(sections):  # pre-order: what follows a section is below it, beside it or above it
        assert after.parent in {before.position, *ancestors(sections, before), None}


def ancestors(sections: tuple[Section, ...], section: Section) -> set[int | None]:
    """Return the positions of the ancestors of a section and of the parts it was split into."""
    positions: set[int | None] = set()
    twins = [each.position for each in sections if each.heading == section.heading and each.level == section.level]
    positions.update(twins)
    while section.parent is not None:
        positions.add(section.parent)
        section = sections[section.parent]
    return positions


@given(markdown=DOCUMENTS)
@settings(max_examples=50)
def test_a_fenced_code_block_that_fits_is_never_split(markdown: str) -> None:
    document = content(markdown)
    texts = [section.text for section in document.sections]
    for code in re.findall(r"^~~~python\n(?:[^~\n].*\n|\n)*~~~$", document.markdown, re.MULTILINE):
        if len(code) <= SMALL.max_characters:
            assert any(code in text for text in texts)


@given(lines=st.lists(st.text("abcdef =()", max_size=60).map(str.rstrip), min_size=20, max_size=80))
def test_every_part_of_a_long_code_block_is_a_code_block_of_whole_lines(lines: list[str]) -> None:
    code = "\n".join(["```python", *lines, "```"])
    parts = split_text(code, SMALL)
    for part in parts:
        assert part.startswith("```python\n")
        assert part.endswith("\n```")
        assert set(part.split("\n")[1:-1]) <= set(lines)
    kept = [line for part in parts for line in part.split("\n")[1:-1] if line]
    assert kept == [line for line in lines if line] if len(code) > SMALL.max_characters else parts == [code]


@given(text=st.text("ab .\n", min_size=500, max_size=3_000), max_characters=st.integers(200, 600))
def test_a_text_of_any_shape_is_split_within_the_limit(text: str, max_characters: int) -> None:
    rules = SectionRules(max_characters=max_characters, target_characters=200)
    parts = split_text(text, rules)
    assert all(len(part) <= max_characters for part in parts)
    assert "".join("".join(parts).split()) == "".join(text.split())


@given(markdown=DOCUMENTS)
def test_the_same_document_has_the_same_hash(markdown: str) -> None:
    assert content(markdown) == content(markdown)


# ── The tree ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def node(level: int, heading: str, words: str = "words") -> SectionNode:
    return SectionNode(level=level, heading=heading, anchor=heading, content=words)


def outline(root: SectionNode) -> list[tuple[int | None, int, str, str]]:
    return [
        (each.parent, each.level, each.heading, each.text) for each in flatten_section_tree(root, DEFAULT_SECTION_RULES)
    ]


def test_headings_go_below_the_nearest_larger_heading_before_them() -> None:
    root = build_section_tree([node(1, "a"), node(3, "b"), node(2, "c"), node(3, "d"), node(1, "e")])
    assert [(parent, heading) for parent, _, heading, _ in outline(root)] == [
        (None, "a"),
        (0, "b"),
        (0, "c"),
        (2, "d"),
        (None, "e"),
    ]


def test_text_before_the_first_heading_is_a_section_of_level_0_without_children() -> None:
    root = build_section_tree([node(1, "a")], intro="hello")
    assert outline(root) == [(None, 0, "", "hello"), (None, 1, "a", "words")]


def test_a_node_without_text_is_kept_only_if_it_has_children() -> None:
    root = build_section_tree([node(1, "empty", ""), node(1, "above", " \n"), node(2, "below")])
    assert outline(root) == [(None, 1, "above", ""), (0, 2, "below", "words")]


def test_an_empty_document_has_no_sections() -> None:
    assert content("").sections == ()
    assert content("\n \n").sections == ()


def test_blank_lines_around_a_section_are_removed_and_its_indentation_is_kept() -> None:
    root = SectionNode(content="\n  \n\n    code = 1\n\n")
    assert outline(root) == [(None, 0, "", "    code = 1")]


def test_the_parts_of_a_long_section_share_all_but_their_text_and_its_children_belong_to_the_first() -> None:
    long = "\n\n".join([f"Paragraph {number}. " + "word " * 25 for number in range(10)])
    root = build_section_tree([SectionNode(level=1, heading="Long", anchor="long", content=long), node(2, "below")])
    *parts, below = flatten_section_tree(root, SMALL)
    assert len(parts) > 3
    assert {(part.level, part.heading, part.anchor, part.parent) for part in parts} == {(1, "Long", "long", None)}
    assert below.parent == 0
    assert below.position == len(parts)


def test_a_heading_of_a_megabyte_is_cut() -> None:
    (section, *_) = flatten_section_tree(build_section_tree([node(1, "x" * 1_000_000)]), DEFAULT_SECTION_RULES)
    assert section.heading == "x" * MAX_HEADING_LENGTH


def test_a_tree_as_deep_as_a_page_is_long_is_flattened() -> None:
    root = build_section_tree([node(level, str(level)) for level in range(1, 50_001)])
    sections = flatten_section_tree(root, DEFAULT_SECTION_RULES)
    assert [section.parent for section in sections] == [None, *range(49_999)]


def test_a_document_with_too_many_headings_is_split_as_one_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("kept.extract.sections.SECTIONS_PER_CONTENT", 100)
    document = content("# h\n\nwords\n\n" * 200)
    assert {section.level for section in document.sections} == {0}
    assert len(document.sections) < 100
    assert words_are_kept_in_order(document.markdown, [section.text for section in document.sections])


def test_the_numbers_of_sections_fit_into_their_ids() -> None:
    last = document.SECTIONS_PER_CONTENT - 1
    assert document.section_id(7, last) + 1 == document.section_id(8, 0)


# ── Where long texts are cut ──────────────────────────────────────────────────────────────────────────────────────────


def paragraph(characters: int, letter: str = "w") -> str:
    return " ".join([letter * 9] * (characters // 10))


def test_a_text_that_fits_is_one_part() -> None:
    assert split_text(paragraph(400), SMALL) == [paragraph(400)]


def test_paragraphs_stay_whole() -> None:
    paragraphs = [paragraph(180, letter) for letter in "abcdef"]
    assert split_text("\n\n".join(paragraphs), SMALL) == [
        "\n\n".join(paragraphs[:1]),
        "\n\n".join(paragraphs[1:2]),
        "\n\n".join(paragraphs[2:3]),
        "\n\n".join(paragraphs[3:4]),
        "\n\n".join(paragraphs[4:]),
    ]


def test_a_list_is_cut_between_its_items_rather_than_inside_them() -> None:
    items = [f"- {paragraph(100, letter)}\n\n  {paragraph(60, letter)}" for letter in "abcdef"]
    for part in split_text("\n".join(items), SMALL):
        assert part.startswith("- ")


def test_a_code_block_in_a_list_item_stays_whole() -> None:
    code = "\n".join(["  ```sh", *["  echo one", "", "  > not a quotation"] * 12, "  ```"])
    text = f"1. {paragraph(150)}\n\n{code}\n\n2. {paragraph(150)}"
    assert code.strip() in [part.strip() for part in split_text(text, SMALL)]


def test_indented_code_stays_whole_across_its_blank_lines() -> None:
    code = "\n\n".join([f"    line {number}" for number in range(20)])
    parts = split_text(f"{paragraph(300)}\n\n{code}\n\n{paragraph(300)}", SMALL)
    assert code in parts


def test_a_long_code_block_is_cut_between_lines_and_its_fence_opened_again() -> None:
    text = "Run:\n\n````js title=x\n" + "\n".join([f"call({number})" for number in range(60)]) + "\n````\n\nDone."
    first, *middle, last = split_text(text, SMALL)
    assert first.startswith("Run:\n\n````js title=x\ncall(0)\n")
    assert first.endswith("\n````")
    assert all(part.startswith("````js title=x\ncall(") and part.endswith(")\n````") for part in middle)
    assert last.endswith("\n````\n\nDone.") or last == "Done."


def test_the_fence_of_a_code_block_in_a_quotation_or_an_item_keeps_its_prefix() -> None:
    quoted = "> ```sh\n" + "> echo\n" * 80 + "> ```"
    assert all(part.startswith("> ```sh\n> echo") and part.endswith("\n> ```") for part in split_text(quoted, SMALL))
    first, *rest = split_text("- ```sh\n" + "  echo\n" * 80 + "  ```", SMALL)
    assert first.startswith("- ```sh\n  echo")
    assert all(part.startswith("  ```sh\n  echo") and part.endswith("\n  ```") for part in rest)


def test_an_unclosed_code_block_is_closed_in_every_part() -> None:
    parts = split_text("~~~\n" + "echo\n" * 200, SMALL)
    assert all(part.startswith("~~~\necho") and part.endswith("\n~~~") for part in parts)


def test_a_long_table_is_cut_between_rows_and_its_header_repeated() -> None:
    header = "| option | meaning |\n| --- | --- |\n"
    rows = [f"| --option-{number} | what it does |\n" for number in range(40)]
    parts = split_text(header + "".join(rows), SMALL)
    assert len(parts) > 2
    assert all(part.startswith(header) for part in parts)
    assert "\n".join(part.removeprefix(header) for part in parts) == "".join(rows).rstrip()


def test_a_long_line_is_cut_after_a_sentence_or_between_words_or_anywhere() -> None:
    sentences = "A short sentence of eight words, no more. " * 30
    assert all(part.endswith("more.") for part in split_text(sentences, SMALL))
    assert all(part.split()[0] == part.split()[-1] == "abcdefghi" for part in split_text("abcdefghi " * 100, SMALL))
    assert "".join(split_text("x" * 1_000, SMALL)) == "x" * 1_000


def test_a_heading_stays_with_the_text_under_it() -> None:
    text = f"## Heading\n\n{paragraph(380)}\n\n{paragraph(380)}"
    assert split_text(text, SMALL) == [f"## Heading\n\n{paragraph(380)}", paragraph(380)]
    code = "```\n" + "line\n" * 200 + "```"
    assert split_text(f"## Heading\n\n{code}", SMALL)[0].startswith("## Heading\n\n```\nline")


# ── The rules, and the hash ───────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("max_characters", "target"), [(100, 50), (1_000, 2_000), (0, 0), (4_000, 199)])
def test_impossible_rules_are_refused(max_characters: int, target: int) -> None:
    with pytest.raises(InvalidInput, match="200 <= target <= max"):
        SectionRules(max_characters=max_characters, target_characters=target)


def test_the_hash_covers_title_markdown_anchors_headings_and_rules() -> None:
    base = build_content("t", "m", build_section_tree([node(1, "a")]), DEFAULT_SECTION_RULES)
    others = [
        build_content("", "m", build_section_tree([node(1, "a")]), DEFAULT_SECTION_RULES),
        build_content("t", "m ", build_section_tree([node(1, "a")]), DEFAULT_SECTION_RULES),
        build_content("tm", "", build_section_tree([node(1, "a")]), DEFAULT_SECTION_RULES),
        build_content("t", "m", build_section_tree([node(2, "a")]), DEFAULT_SECTION_RULES),
        build_content("t", "m", build_section_tree([node(1, "a")]), SMALL),
        build_content(
            "t", "m", build_section_tree([SectionNode(level=1, heading="a", content="words")]), DEFAULT_SECTION_RULES
        ),
        build_content(
            "t",
            "m",
            build_section_tree([SectionNode(level=1, heading="a", anchor="", content="words")]),
            DEFAULT_SECTION_RULES,
        ),
        build_content(
            "t",
            "m",
            build_section_tree([SectionNode(level=1, heading="a", anchor="A", content="words")]),
            DEFAULT_SECTION_RULES,
        ),
        build_content(
            "t",
            "m",
            build_section_tree([SectionNode(level=1, heading="b", anchor="a", content="words")]),
            DEFAULT_SECTION_RULES,
        ),
    ]
    assert len({base.hash, *(other.hash for other in others)}) == 1 + len(others)
    assert re.fullmatch("[0-9a-f]{64}", base.hash)


@given(fields=st.lists(st.text(max_size=3), min_size=2, max_size=2), cut=st.integers(0, 6))
def test_moving_text_between_fields_changes_the_hash(fields: list[str], cut: int) -> None:
    title, markdown = fields
    joined = title + markdown
    other = joined[:cut], joined[cut:]
    same = build_content(title, markdown, SectionNode(), DEFAULT_SECTION_RULES).hash
    assert (build_content(*other, SectionNode(), DEFAULT_SECTION_RULES).hash == same) == (other == (title, markdown))


def test_a_content_is_equal_after_pickling() -> None:
    tree = build_section_tree(
        [SectionNode(level=1, heading="Ends", anchor="ends", content="# Ends\n\n```py\nend()\n```")], intro="It"
    )
    content = build_content("Title", "It", tree, DEFAULT_SECTION_RULES)
    unpacked = pickle.loads(pickle.dumps(content, 5))
    assert unpacked == content
    assert [section.heading for section in unpacked.sections] == ["", "Ends"]
    assert [words.text for words in unpacked.index_fields] == [words.text for words in content.index_fields]
