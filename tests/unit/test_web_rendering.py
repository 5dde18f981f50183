"""Documents as HTML: anchors, safe links, no images; diffs side by side."""

import time
from datetime import UTC, datetime

import pytest

from kept.model.document import Lifecycle, Place
from kept.server.web.charts import polyline_points
from kept.server.web.diff import DiffRow, diff_rows
from kept.server.web.filters import highlight, short_url, size
from kept.server.web.markdown_html import MAX_RENDERED_CHARACTERS, MarkdownPage
from kept.server.web.tree import build_tree
from kept.service.documents import DocumentHeading, DocumentOutline, DocumentSummary

PAGE = "https://docs.test/guide/pool.html"


def rendered(markdown: str, headings: list[DocumentHeading] | None = None, kept: dict[str, str] | None = None) -> str:
    return str(MarkdownPage(markdown, PAGE).html(DocumentOutline(headings=headings or [], places=()), kept or {}))


@pytest.mark.parametrize(
    ("link", "expected"),
    [
        ("size.html#max", 'href="/documents/1#max"'),
        ("https://docs.test/guide/size.html", 'href="/documents/1"'),
        ("#top%20part", 'href="#top%20part"'),
        ("pool.html#limits", 'href="#limits"'),
        ("../other.html", 'href="https://docs.test/other.html" rel="noopener noreferrer nofollow" class="away"'),
        ("mailto:tern@docs.test", 'href="mailto:tern@docs.test" rel="noopener noreferrer nofollow"'),
        ("tel:123", "<a>"),
        ("ftp://docs.test/x", "<a>"),
    ],
)
def test_a_link_leads_to_a_kept_page_or_away_safely_or_nowhere(link: str, expected: str) -> None:
    text = rendered(f"[word]({link})", kept={"https://docs.test/guide/size.html": "/documents/1"})
    assert expected in text
    assert text.count("href") == expected.count("href")


@pytest.mark.parametrize(
    "link", ["javascript:x", "JAVASCRIPT:x", "vbscript:x", "data:text/html,x", "file:///etc/passwd"]
)
def test_a_harmful_link_is_plain_text(link: str) -> None:
    assert "href" not in rendered(f"[word]({link})")
    assert "href" not in rendered(f"![word]({link})")


def test_markup_is_text_and_an_image_is_a_link() -> None:
    assert "&lt;script&gt;" in rendered("<script>x</script>")
    assert "&lt;b&gt;" in rendered("a <b>bold</b> word")
    picture = rendered("![A drawing](pool.png)")
    assert "<img" not in picture
    assert 'href="https://docs.test/guide/pool.png"' in picture
    assert ">A drawing</a>" in picture
    assert rendered("[![A drawing](pool.png)](x.html)").count("<a ") == 1, "no link stands inside another"


def test_headings_have_the_anchors_of_the_page_even_if_some_are_unknown() -> None:
    known = [
        DocumentHeading(level=2, text="Limits", anchor="max"),
        DocumentHeading(level=2, text="Use of code", anchor="code-1"),
    ]
    text = rendered("# Title\n\n## Limits\n\n## Not listed\n\n## Use of `code`\n\n## Limits\n", known)
    assert '<h2 id="max" tabindex="-1">Limits</h2>' in text
    assert '<h2 id="code-1" tabindex="-1">' in text
    assert "<h2>Not listed</h2>" in text
    assert text.count("max") == 1, "an anchor is given once"


def test_every_other_place_has_its_id_where_it_begins() -> None:
    table, code, items = (
        "| N | U |\n| --- | --- |\n| `a` | 1 |\n| `b` | 2 |",
        "```sh\nfirst\nsecond\n```",
        "- item\n- next",
    )
    markdown = "\n\n".join(("Text.", table, code, items))
    begins = {"x": "Text", "r": "| `b`", "c": "second", "i": "- next"}
    places = tuple(Place(anchor, markdown.index(text)) for anchor, text in begins.items())
    text = str(MarkdownPage(markdown, PAGE).html(DocumentOutline(headings=[], places=places), {}))
    for anchor, behind in {"x": "Text.", "r": "<code>b</code>", "c": "second", "i": "next"}.items():
        assert f'id="{anchor}"></span>{behind}' in text
    hostile = rendered_with_place("Text.", '"><script>')
    assert "<script" not in hostile
    long = rendered_with_place("x" * MAX_RENDERED_CHARACTERS + " here", "far")
    assert long.index('id="far"') > 0


def rendered_with_place(markdown: str, anchor: str) -> str:
    outline = DocumentOutline(headings=[], places=(Place(anchor, len(markdown) - 1),))
    return str(MarkdownPage(markdown, PAGE).html(outline, {}))


def test_a_text_too_long_to_parse_is_shown_as_plain_text() -> None:
    text = MarkdownPage("<b>&" + "x" * MAX_RENDERED_CHARACTERS, PAGE)
    assert text.links == []
    assert str(text.html(DocumentOutline(headings=[], places=()), {})).startswith("<pre>&lt;b&gt;&amp;xxx")


def test_a_snippet_is_marked_and_nothing_else_in_it_is_markup() -> None:
    assert highlight(r"\<commit> and \_x") == "&lt;commit&gt; and _x"
    assert highlight("so: ```python **pool**(size=12) ``` it opens") == "so: <mark>pool</mark>(size=12) it opens"
    assert highlight("a [**pool**](x.html) of `<b>` | **tern**") == "a <mark>pool</mark> of &lt;b&gt; <mark>tern</mark>"


def test_two_versions_are_shown_side_by_side_with_the_words_that_differ() -> None:
    before = "\n".join(["same"] * 10 + ["twelve birds in the pool", "gone"] + ["end"] * 10)
    after = "\n".join(["same"] * 10 + ["sixteen birds in the pool"] + ["end"] * 10)
    lines, whole = diff_rows(before, after)
    assert whole
    assert [line.skipped for line in lines if line.skipped] == [7, 7]
    changed, lost = [line for line in lines if line.differs]
    assert [(piece.text, piece.differs) for piece in changed.left] == [("twelve", True), ("birds in the pool", False)]
    assert (changed.left_number, changed.right_number) == (11, 11)
    assert (lost.left[0].text, lost.left_number, lost.right_number) == ("gone", 12, None)
    assert diff_rows(before, before)[0] == [DiffRow(skipped=22)]


def test_documents_are_grouped_in_folders_below_the_root() -> None:
    def listed(url: str) -> DocumentSummary:
        now = datetime.now(UTC)
        return DocumentSummary(
            document="1",
            url=url,
            title="",
            content_type="text/html",
            lifecycle=Lifecycle.ACTIVE,
            first_seen=now,
            fetched_at=now,
        )

    urls = ["", "a.html", "deep/er/b.html", "deep/er/c.html?x=1", "%C3%A4/d.html"]
    top = build_tree([listed(f"https://docs.test/en/{url}") for url in urls], "https://docs.test/en/")
    assert [name for name, _ in top.documents] == ["", "a.html"]
    assert [(folder.name, folder.count) for folder in top.folders.values()] == [("deep/er", 2), ("ä", 1)]


def test_a_url_is_shortened_for_people() -> None:
    assert short_url("https://docs.test/a%20b/") == "docs.test/a b"
    assert short_url("file:///srv/User%20Guide.md#top") == "/srv/User Guide.md#top"


def test_sizes_and_charts_are_formatted_for_any_crawl() -> None:
    assert polyline_points([]) == ""
    assert polyline_points([(0.0, 0)]) == "0.0,120.0 0.0,120.0 0.0,120.0"
    assert polyline_points([(1.0, 5), (2.0, 10)]).endswith("600.0,0.0")
    assert [size(number) for number in (0, 999, 1500, 12_345_678)] == ["0 B", "999 B", "1.5 kB", "12 MB"]


def test_no_page_takes_long_to_compare_or_to_show() -> None:
    began = time.process_time()
    diff_rows("\n".join(["x"] * 4000), "\n".join([*["x"] * 19, "y"] * 200))
    diff_rows("\n".join(["x " * 900] * 100), "\n".join([("x " * 19 + "y ") * 45] * 100))
    unknown = [DocumentHeading(level=2, text=f"other {number}", anchor=f"o{number}") for number in range(3000)]
    rendered("".join(f"# h{number}\n\n" for number in range(3000)), unknown)
    assert time.process_time() - began < 5


@pytest.mark.parametrize("hostile", ["[", "![", "[a](b", "*a **a ", "_a ", "~~a", "&", "<a:"])
def test_hostile_markdown_takes_no_more_than_seconds_to_show(hostile: str) -> None:
    for characters in (MAX_RENDERED_CHARACTERS, 15_000):
        began = time.process_time()
        assert rendered(hostile * (characters // len(hostile)))
        assert time.process_time() - began < 5, "seconds"
