"""Markdown: titles, headings, anchors, links; and the fast paths compared with markdown-it-py."""

import html
import time

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from kept.extract.markdown import commonmark, inline
from kept.extract.markdown.commonmark import parse_outline
from kept.extract.markdown.inline import find_links, plain_text
from kept.extract.markdown.reader import HeadingSlugs, extract, slugify, split_front_matter
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode

GUIDE = """\
---
title: "Brewing: a field guide"
tags: [tea, water]
---

A short introduction, with a [link](intro.md).

# Brewing

What you need.

## Water

Heat it first.

```sh
# not a heading
kettle --to 80
```

## Leaves ##

> ## Not in the outline
>
> A remark.

- # Nor is this
- an item

Two spoons
----------

As in [the table][t] or <https://example.org/tea>.

### `steep(time[, cover])`

## Water

Again.

[t]: ../tables.md#leaves "Leaves"
"""


def read(markdown: str) -> Extraction:
    extraction = extract(markdown.encode(), None)
    assert isinstance(extraction, Extraction)
    return extraction


def nodes(tree: SectionNode) -> list[SectionNode]:
    return [each for child in tree.children for each in (child, *nodes(child))]


def headings(markdown: str) -> list[tuple[int, str, str | None]]:
    return [(node.level, node.heading, node.anchor) for node in nodes(read(markdown).tree)]


def anchors(markdown: str) -> list[str | None]:
    return [anchor for _, _, anchor in headings(markdown)]


# ── A whole page ──────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_page_is_read_into_a_tree_of_its_headings() -> None:
    extraction = read(GUIDE)
    assert extraction.title == "Brewing: a field guide"
    assert extraction.tree.content == "A short introduction, with a [link](intro.md).\n\n"
    assert headings(GUIDE) == [
        (1, "Brewing", "brewing"),
        (2, "Water", "water"),
        (2, "Leaves", "leaves"),
        (2, "Two spoons", "two-spoons"),
        (3, "steep(time[, cover])", "steeptime-cover"),
        (2, "Water", "water-1"),
    ]
    (brewing,) = extraction.tree.children
    assert [child.heading for child in brewing.children] == ["Water", "Leaves", "Two spoons", "Water"]
    assert brewing.children[0].content.endswith("kettle --to 80\n```\n\n")


def test_the_markdown_of_a_page_is_its_text_without_the_front_matter() -> None:
    extraction = read(GUIDE)
    assert extraction.markdown == GUIDE[GUIDE.index("A short") :].rstrip()
    assert extraction.tree.content + "".join(node.content for node in nodes(extraction.tree)) == extraction.markdown


def test_links_are_in_page_order_and_unresolved() -> None:
    assert read(GUIDE).hrefs == ["intro.md", "../tables.md#leaves", "https://example.org/tea"]


def test_windows_newlines_make_no_difference() -> None:
    assert read("\ufeff" + GUIDE.replace("\n", "\r\n")) == read(GUIDE)


# ── Titles ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("markdown", "title"),
    [
        ("---\ntitle: Plain words # and a comment\n---\n# Other", "Plain words"),
        ("---\ntitle: 'It''s quoted'\n---\n", "It's quoted"),
        ('---\n"title": "With \\"quotes\\" and \\\\"\n...\n', 'With "quotes" and \\'),
        ("---\nid: x\ntitle: >-\n  folded\n  words\nnext: y\n---\n", "folded words"),
        ("---\ntitle:\n---\n# Heading", "Heading"),
        ("---\ntitle: ~\n---\n# Heading", "Heading"),
        ('+++\ndraft = true\ntitle = "Of Hugo"\n[params]\na = 1\n+++\n\ntext', "Of Hugo"),
        ("---\nname: no title\nnested:\n  title: not this one\n---\n## First\n\n# Top", "Top"),
        ("text\n\n## Second level\n\n# First level", "First level"),
        ("## Only *this* `one`\n\ntext", "Only this one"),
        ("Underlined\n==========\n", "Underlined"),
        ('<h1 align="center">\n  <img src="x.png"> Named &amp; centred\n</h1>\n\n# Install\n', "Named & centred"),
        ("```html\n<h1>no</h1>\n```\n# Yes", "Yes"),
        ("# ![Logo](logo.svg)\n", "Logo"),
        ("just text", ""),
        ("", ""),
    ],
)
def test_the_title_is_found(markdown: str, title: str) -> None:
    assert read(markdown).title == title


@pytest.mark.parametrize(
    "markdown",
    [
        "---\n\nText between two lines.\n\n---\n\nMore.",
        "---\nNote this sentence\n---\nMore.",
        "---\ntitle: never closed\n",
        "----\ntitle: four dashes\n----\n",
        "text\n---\ntitle: not at the start\n---\n",
        "+++\nwords only\n+++\n",
        " ---\ntitle: indented\n---\n",
    ],
)
def test_text_that_resembles_front_matter_is_text(markdown: str) -> None:
    assert split_front_matter(markdown) == ("", markdown)


def test_a_title_of_a_megabyte_is_cut() -> None:
    assert read("# " + "x" * 1_000_000).title == "x" * MAX_HEADING_LENGTH


# ── Headings ──────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("markdown", "levels"),
    [
        ("# one\n## two ##\n### three ### \n#### four #x\n##### five#\n###### six\n####### seven", "123456"),
        ("#hash\n\\# escaped\n    # code\n\t# code", ""),
        ("#\n##   \n", "12"),
        ("   # three blanks\n    # four", "1"),
        ("one\n===\ntwo\n---\nthree\nlines\n=\n\n===\n", "121"),
        ("> # quoted\n> quoted\n> ===\n", ""),
        ("- # item\n  ## item\n\n  item\n  ---\n1. # item\n# out", "1"),
        ("- item\n# out\n", "1"),
        ("```\n# code\n``` x\n# code\n````\n# out\n~~~\n# code\n```\n~~~~\n## out", "12"),
        ("~~~ `info`\n# code\n~~~\n``` `not a fence`\n# out", "1"),
        ("- ```\n  # code\n# out, and the fence with it", "1"),
        ("<div>\n# in html\n\n# out\n</div>", "1"),
        ("<!--\n# comment\n\n# comment\n-->\n# out", "1"),
        ("<pre>\n\n# pre\n</pre>\n# out", "1"),
        ("a | b\n--|--\n# out | of\nthe | table", "1"),
        ("| # a | b |\n|-----|---|\n| # c | d |", ""),
        ("paragraph\n# interrupted\ngoes on\n***\n", "1"),
        ("[a]: b\n===\n\n[a]: b\n# one", "1"),
    ],
)
def test_headings_are_found_where_commonmark_has_them(markdown: str, levels: str) -> None:
    assert "".join(str(level) for level, _, _ in headings(markdown)) == levels


@pytest.mark.parametrize(
    ("source", "words"),
    [
        ("Plain words", "Plain words"),
        ("snake_case and __init__", "snake_case and init"),
        ("The `__init__` *method*, ***really***", "The __init__ method, really"),
        ("`` a`b `` and `c`", "a`b and c"),
        ("[A *link*](to/somewhere) and ![a picture](x.png)", "A link and "),
        ("![Only a picture](x.png)", "Only a picture"),
        ("<kbd>Ctrl</kbd>+<kbd>C</kbd><br>exits", "Ctrl+C exits"),
        ("AT&amp;T &copy; 5 &lt; 6 & 7", "AT&T © 5 < 6 & 7"),
        ("~~old~~ new", "old new"),
        (r"2 \* 3 \# 4 \`x\`", "2 * 3 # 4 `x`"),
        ("<https://example.org>", "https://example.org"),
        ("two\nlines", "two lines"),
        ("*args and **kwargs", "*args and **kwargs"),
    ],
)
def test_the_words_of_a_heading_are_plain(source: str, words: str) -> None:
    assert plain_text(source) == words


@given(source=st.text("ab `*_[]()<>&;!~\\#x ", max_size=40).map(str.strip))
@settings(max_examples=100)
def test_plain_text_equals_that_of_markdown_it(source: str) -> None:
    children = MarkdownIt("commonmark").enable("strikethrough").parseInline(source)[0].children or []
    if {child.type for child in children} <= {"text", "code_inline"}:
        assert plain_text(source) == "".join(child.content for child in children)


# ── Anchors ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("heading", "slug"),
    [
        ("Getting started", "getting-started"),
        ("What's new in 2.0?", "whats-new-in-20"),
        ("C++ & C#", "c--c"),
        ("foo - bar_baz", "foo---bar_baz"),
        ("🚀 Launch", "-launch"),
        ("Überblick – 概要 ²", "überblick--概要-"),
        ("Привет, мир", "привет-мир"),
        ("हिन्दी ٣ Ⅻ", "हिन्दी-٣-ⅻ"),
        ("a\tb\u00a0c", "abc"),
        ("!!!", ""),
    ],
)
def test_anchors_are_those_of_github(heading: str, slug: str) -> None:
    assert slugify(heading) == slug


def test_anchors_are_unique() -> None:
    slugs = HeadingSlugs()
    given = [slugs.next_slug(heading) for heading in ["tea", "Tea", "tea-1", "tea", "milk-1", "milk", "milk", "milk"]]
    assert given == ["tea", "tea-1", "tea-1-1", "tea-2", "milk-1", "milk", "milk-2", "milk-3"]


@given(headings=st.lists(st.text("ab-1 ", max_size=6), max_size=30))
def test_anchors_of_any_headings_are_distinct(headings: list[str]) -> None:
    slugs = HeadingSlugs()
    given = [slugs.next_slug(heading) for heading in headings]
    assert len(set(given)) == len(given)


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# Title {#own-id}", ["own-id"]),
        ("# Title {: #own-id .wide }\n# Title", ["own-id", "title"]),
        ("Title { #own-id }\n=====", ["own-id"]),
        ("# Title {/* #own-id */}", ["own-id"]),
        ('# <a name="own-id"></a>Title\n# Title', ["own-id", "title-1"]),
        ('# Title <a id="own-id"></a>', ["own-id"]),
        ('text\n\n<a id="own-id"></a>\n\n# Title', ["own-id"]),
        ("text\n\n<a name=own-id />\n\n# Title", ["own-id"]),
        ('<a id="one"></a><a id="two"></a>\n# Title', ["two"]),
        ('See <a id="elsewhere"></a>\n# Title', ["title"]),
        ('    <a id="code"></a>\n\n# Title', ["title"]),
        ('<a href="x"></a>\n# Title', ["title"]),
        ("# {#}", [None]),
        ("# f({a: 1})", ["fa-1"]),
        ("# !!!\n# ???", [None, "-1"]),
    ],
)
def test_an_explicit_anchor_wins_over_the_slug_of_the_heading(markdown: str, expected: list[str | None]) -> None:
    assert anchors(markdown) == expected


def test_an_anchor_line_above_a_heading_belongs_to_its_section() -> None:
    extraction = read('Before.\n\n<a id="x"></a>\n\n# Title\n\nAfter.')
    assert extraction.tree.content == "Before.\n\n"
    assert extraction.tree.children[0].content == '<a id="x"></a>\n\n# Title\n\nAfter.'


# ── Links ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("markdown", "hrefs"),
    [
        ("[a](b.md) [c](<d e.md> 'title') [f]( g.md\n(title) )", ["b.md", "d e.md", "g.md"]),
        ("[a](b_(c)_(d(e)).md) [f](g\\).md) [h](i&amp;j)", ["b_(c)_(d(e)).md", "g).md", "i&j"]),
        ("[Full][ref] [ref][] [ref] [REF] [no][where]\n\n[ref]: to.md 'x'\n[ref]: second.md", ["to.md"]),
        ("[a]\n\n- item\n\n  [A]: in-item.md\n", ["in-item.md"]),
        ("![image](i.png) [![badge](b.svg)](ci.md) ![alt [x](y.md)](z.png)", ["ci.md"]),
        ("[a [b](c.md) d](e.md)", ["c.md"]),
        ("`[a](b.md)` ``[c](`d.md)`` \\[e](f.md) <b title='[g](h.md)'>", []),
        ("    [a](b.md)\n\n```\n[c](d.md)\n```\n\n[e](f.md)", ["f.md"]),
        ("<https://a.org/x> <mailto:b@c.org> <not a link>", ["https://a.org/x", "mailto:b@c.org"]),
        ('<a href="a.md">x</a> <A HREF=\'b.md\'> <a href=c.md> <a href={d}>', ["a.md", "b.md", "c.md"]),
        ('<p align="center">\n<a class="x"\n   href="a.md?b&amp;c">x</a>\n</p>', ["a.md?b&c"]),
        ('<Card title="x" href="/docs/a" />\n\n<!-- [b](b.md) <a href="c.md"> -->', ["/docs/a"]),
        ('<link href="style.css">', []),
        ("See https://a.org/b_(c), (http://d.org/e). www.f.org/g!", ["https://a.org/b_(c)", "http://d.org/e",
                                                                   "http://www.f.org/g"]),
        ("https://a.org/b&copy; https://a.org/c?d=1;", ["https://a.org/b", "https://a.org/c?d=1"]),
        ("参照：https://a.org/b。次", ["https://a.org/b"]),
        ("[https://a.org](b.md) xhttps://c.org http:// www.", ["b.md"]),
        ("[x](#here) [y]() [z](a.md#there) [z](a.md#there)", ["a.md#there"]),
        ("# [In a heading](a.md)\n\n| [in](b.md) | a table |\n|---|---|\n| c | [d](e.md) |", ["a.md", "b.md", "e.md"]),
        ("> - 1. [deep](a.md)", ["a.md"]),
        ("[a](unclosed [b](c.md)", ["c.md"]),
    ],
)  # fmt: skip
def test_links_are_found_and_nothing_else_is(markdown: str, hrefs: list[str]) -> None:
    assert read(markdown).hrefs == hrefs


# ── Compared with markdown-it-py ──────────────────────────────────────────────────────────────────────────────────────

_BLOCKS = MarkdownIt("commonmark").enable("table").disable(["inline", "text_join"])
_ATOMS = st.sampled_from([
    "a", "b c", "\n", "\n\n", "- ", "* ", "+ ", "1. ", "2) ", "> ", ">", "# ", "## x", "===", "---", "***", "```",
    "~~~", "``` js", "    ", "  ", " ", "\t", "|", "a | b", "|---|---|", "--|--", ":-:", "<div>", "</div>", "<!--",
    "-->", '<a id="x">', "[a]: b", "[a]", '"t"', "\\", "<pre>", "</pre>", "`", "#", "_", "=", "[", "(x", "+",
])  # fmt: skip


@given(markdown=st.lists(_ATOMS, max_size=30).map("".join))
@settings(max_examples=100)
@example(markdown=GUIDE)
@example(markdown="# a | b\n--|--\n")
@example(markdown="> a\n===\n")
@example(markdown="- a\n\n\tb\n\n\t\tc\n# d")
def test_the_outline_equals_that_of_markdown_it(markdown: str) -> None:
    environment: dict[str, dict[str, object]] = {}
    tokens = _BLOCKS.parse(markdown, environment)
    starts = [0]
    for line in markdown.split("\n"):
        starts.append(starts[-1] + len(line) + 1)
    expected = [
        (starts[token.map[0]], int(token.tag[1]), tokens[index + 1].content)
        for index, token in enumerate(tokens)
        if token.type == "heading_open" and token.level == 0 and token.map
    ]
    pieces = [
        (" ".join(token.content.split()), token.type == "html_block")
        for token in tokens
        if token.type == "html_block" or (token.type == "inline" and {"[", "<"} & set(token.content))
    ]
    outline = parse_outline(markdown)
    assert [tuple(heading) for heading in outline.headings] == expected
    assert [(" ".join(source.split()), is_html) for source, is_html in outline.linkable_texts] == pieces
    assert set(outline.definitions) == set(environment.get("references", {}))


class _UnchangedLinks(MarkdownIt):
    def normalizeLink(self, url: str) -> str:
        return url

    def validateLink(self, url: str) -> bool:
        return True


_INLINE = _UnchangedLinks("commonmark", {"maxNesting": 100})
_DEFINITIONS = {"A": "da", "B C": "dbc"}
_LEAF = st.sampled_from([
    "a", "b c", "*", "**", "_", "`a`", "``b` ``", "\\[", "\\]", "<http://x>", "<b>", "</b>", '<i t="a">', " ", "\n",
    "![i](s)", "![a]", "[a]", "[a][]", "[b c]", "[z]", "(p)", "&amp;", "<!-- a -->", "!", "'", '"',
])  # fmt: skip
_WORDS = st.lists(_LEAF, max_size=6).map("".join)
_LINKS = st.builds(
    lambda words, target: f"[{words}]{target}",
    _WORDS.filter(lambda words: not words.isspace()),  # markdown-it takes [ ] for a label, CommonMark does not
    st.sampled_from(["(u)", "(<u v>)", '(u "t")', "(u 't)')", "(u(v)w)", "()", "[a]", "[B\nC]", "[]", "[z]", "(u v)"]),
)


@given(source=st.lists(_WORDS | _LINKS, max_size=5).map(" ".join))
@settings(max_examples=100)
def test_links_equal_those_of_markdown_it(source: str) -> None:
    references = {label: {"href": href, "title": ""} for label, href in _DEFINITIONS.items()}
    tokens = _INLINE.parseInline(source, {"references": references})[0].children or []
    expected: list[str] = []
    depth = 0
    for token in tokens:
        if token.type == "link_open":
            # An autolink inside a link is a link for markdown-it; a browser would follow the outer one.
            if not depth and token.attrs["href"]:
                expected.append(html.unescape(str(token.attrs["href"])))
            depth += 1
        depth -= token.type == "link_close"
    assert find_links(source, _DEFINITIONS) == expected


# ── Hostile pages ─────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = {
    "headings": "# h\n\nwords\n\n" * 9_000,
    "empty headings": "#\n" * 50_000,
    "one heading": "# " + "[" * 100_000,
    "bracketed headings": ("# " + "[" * 900 + "\n") * 110,
    "starred headings": ("# " + "*a_ " * 200 + "\n") * 120,
    "one line": "x" * 300_000,
    "quotations": ">" * 100_000 + "a",
    "quoted lines": ("> " * 40 + "a\n") * 1_200,
    "lazy quotations": ">[a]: b\n[a]: b\n" * 7_000,
    "lazy code in quotations": "\t====\na|b\n> " * 8_000,
    "items on a line": "- " * 50_000,
    "items in items": "".join("  " * (line % 30) + "- a\n" for line in range(3_000)),
    "brackets": "[" * 100_000,
    "closed brackets": "[" * 50_000 + "]" * 50_000,
    "defined brackets": "[a]: b\n\n" + "[a" * 20_000 + "]" * 20_000,
    "half links": "[a](" * 25_000,
    "half links in angles": "[a](<" * 20_000,
    "images": "![" * 50_000,
    "backticks": "".join("`" * length + " " for length in range(450)),
    "angles": "<" * 100_000,
    "comments": "<!--" * 25_000,
    "declarations": "<!A" * 33_000,
    "tags": '<a b="' * 16_000,
    "spaces in a tag": "<a " + " " * 100_000,
    "bare urls": "http://a.)" * 10_000,
    "fences": "```\n" * 25_000,
    "rows": "a|b\n--|--\n" * 10_000,
    "columns": "|" + "a|" * 20_000 + "\n|" + "-|" * 20_000 + "\n",
    "definitions": "".join(f"[{number}]: b\n" for number in range(9_000)),
    "underlines": "a\n===\n" * 16_000,
    "front matter": "---\n" + "a: b\n" * 20_000,
    "titles": "<h1 " * 25_000,
    "braces": ("# a " + "{#" * 400 + "}\n") * 120,
    "anchors": "<a " * 100 + "\n# h\n" * 10_000,
    "more than is parsed": "# h\n\n```\n# c\n```\n\n[a](b)\n\n" * 20_000,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_page_takes_linear_time(name: str) -> None:
    began = time.process_time()
    read(HOSTILE[name])
    # Each takes well under a second. What takes the square of its length takes minutes.
    assert time.process_time() - began < 20


def test_a_page_too_large_to_parse_has_the_same_outline_by_its_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = read(GUIDE)
    monkeypatch.setattr(commonmark, "_MAX_PARSED_LENGTH", 0)
    by_lines = read(GUIDE)
    assert nodes(by_lines.tree) == nodes(parsed.tree)
    assert by_lines.hrefs == parsed.hrefs


def test_a_page_with_too_many_headings_keeps_the_rest_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kept.extract.markdown.outline.MAX_HEADINGS", 2)
    extraction = read("# a\n# b\n# c\nd\n===\n")
    assert [node.heading for node in nodes(extraction.tree)] == ["a", "b"]
    assert nodes(extraction.tree)[-1].content == "# b\n# c\nd\n==="


def test_brackets_nested_too_deep_are_still_closed_in_order() -> None:
    depth = 3 * inline._MAX_OPEN_BRACKETS
    assert find_links("[" * depth + "a](b.md)" + "]" * depth, {}) == ["b.md"]
