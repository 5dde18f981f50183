"""HTML becomes Markdown as a careful writer would write it.

`golden/` has a page of each generator, with its markup and its navigation; `.md` is the exact result; `.sections`
has the level, the anchor and the heading of each of its sections. To see how the reader differs from them:

    PYTHONPATH=src python tests/unit/test_html.py [sphinx …]
"""

import difflib
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kept.errors import InvalidInput
from kept.extract.html.markdown_text import collapse_whitespace, has_plain_whitespace
from kept.extract.html.reader import check_region, extract
from kept.extract.reader import parse_page
from kept.extract.sections import Extraction, SectionNode, Unreadable
from kept.model.document import ParsedPage
from kept.model.robots_directives import RobotsDirectives
from kept.model.source import Region

GOLDEN = Path(__file__).parent / "golden"
GENERATORS = sorted(page.stem for page in GOLDEN.glob("*.html"))


def read_page(html: str | bytes) -> Extraction:
    extraction = extract(html.encode() if isinstance(html, str) else html, None)
    assert isinstance(extraction, Extraction), extraction
    return extraction


PARTS = (
    '<title>T</title><nav><a href="n.html">NAV</a></nav><main><h1>Main</h1><p>text</p>'
    '<div class="box"><p>first</p><div class="box"><p>inner</p></div></div><div class="box"><p>second</p></div></main>'
)


@pytest.mark.parametrize(
    ("region", "markdown"),
    [
        (Region(), "# Main\n\ntext\n\nfirst\n\ninner\n\nsecond"),
        (Region(select=".box"), "first\n\ninner\n\nsecond"),
        (Region(select=".nothing"), "# Main\n\ntext\n\nfirst\n\ninner\n\nsecond"),
        (Region(drop=(".box", "h1")), "text"),
        (Region(select="main", drop=(".box .box",)), "# Main\n\ntext\n\nfirst\n\nsecond"),
        (Region(drop=("main",)), ""),
        (Region(drop=("*",)), ""),
        (Region(drop=("body", "html"), select="body"), "# Main\n\ntext\n\nfirst\n\ninner\n\nsecond"),
    ],
)
def test_a_region_selects_the_part_of_a_page_that_is_read(region: Region, markdown: str) -> None:
    extraction = extract(PARTS.encode(), None, region)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == markdown
    assert extraction.hrefs == ["n.html"], "links are those of the whole page"


@pytest.mark.parametrize("selector", ["[[", "main >", "p..", ":nonsense", "123"])
def test_an_invalid_selector_is_refused(selector: str) -> None:
    with pytest.raises(InvalidInput, match="is not a CSS selector"):
        check_region(Region(select=selector))
    with pytest.raises(InvalidInput, match="is not a CSS selector"):
        check_region(Region(drop=("main", selector)))


def markdown(html: str) -> str:
    return read_page(html).markdown


def all_sections(node: SectionNode) -> list[SectionNode]:
    return [node, *(below for child in node.children for below in all_sections(child))]


def outline(page: Extraction) -> str:
    nodes = all_sections(page.tree)[1:]
    lines = [f"{node.level} {'#' + node.anchor if node.anchor else '-'} {node.heading}" for node in nodes]
    return "\n".join([f"title: {page.title}", *lines]) + "\n"


def of_generator(name: str) -> tuple[tuple[str, str], tuple[str, str]]:
    """Return the expected and the actual Markdown and sections of a page."""
    page = read_page((GOLDEN / f"{name}.html").read_bytes())
    expected = ((GOLDEN / f"{name}.md").read_text("utf-8"), (GOLDEN / f"{name}.sections").read_text("utf-8"))
    return expected, (page.markdown + "\n", outline(page))


# ── Generators ────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_there_are_twelve_generators() -> None:
    assert len(GENERATORS) >= 12


@pytest.mark.parametrize("name", GENERATORS)
def test_a_page_of_each_generator_reads_as_expected(name: str) -> None:
    expected, extraction = of_generator(name)
    assert extraction == expected


@pytest.mark.parametrize("name", GENERATORS)
def test_the_sections_joined_are_the_page(name: str) -> None:
    page = read_page((GOLDEN / f"{name}.html").read_bytes())
    assert "\n\n".join(filter(None, (section.content for section in all_sections(page.tree)))) == page.markdown


# ── Single elements ───────────────────────────────────────────────────────────────────────────────────────────────────

CASES = {
    "blanks go outside the marks": ("<p>a<b> b </b>c</p>", "a **b** c"),
    "marks around nothing are no marks": ("<p>a<b> </b><i></i>b</p>", "a b"),
    "bold in bold is bold": ("<p><b>a <strong>b</strong></b></p>", "**a b**"),
    "what Markdown would misread is escaped": ("<p>*a* _b_ &lt;c> [d](e) `f`</p>", r"\*a\* \_b\_ \<c> \[d](e) \`f\`"),
    "and nothing else is": ("<p>snake_case 2 * 3 a &lt; b [c]</p>", "snake_case 2 * 3 a < b [c]"),
    "no paragraph begins a list by chance": ("<p>1. a</p><p>- b</p><p># c</p>", "1\\. a\n\n\\- b\n\n\\# c"),
    "code is not escaped": ("<p><code>*a_ &lt;b></code></p>", "`*a_ <b>`"),
    "code with a backtick": ("<p><code>a`b</code></p>", "`` a`b ``"),
    "code spans that touch are one": ("<p><code>a</code><code>b</code></p>", "`ab`"),
    "links in code are code": ("<p><code><a href=x>A</a>&lt;B></code></p>", "`A<B>`"),
    "a link to code": ("<p><a href=x><code>A</code></a></p>", "[`A`](x)"),
    "a link with a parenthesis": ("<p><a href='x(y)'>A</a></p>", "[A](<x(y)>)"),
    "a link without words": ("<p>a<a href=x> </a>b</p>", "a b"),
    "a script for a link": ("<p><a href='javascript:void(0)'>A</a></p>", "A"),
    "a card is one link": ("<a href=x><div>A</div><p>B</p></a>", "[A B](x)"),
    "a line break": ("<p>a<br>b</p>", "a\\\nb"),
    "two line breaks are a paragraph": ("a<br><br>b", "a\n\nb"),
    "an image": ("<p><img src=a.png alt='A picture'></p>", "![A picture](a.png)"),
    "an image of a megabyte": (f"<p><img alt=A src='data:image/png;base64,{'A' * 99}'></p>", "![A](data:image/png)"),
    "a fence longer than those in it": ("<pre>```\na\n```</pre>", "````\n```\na\n```\n````"),
    "a language in a wrapper": ("<div class='highlight-python3'><pre>a</pre></div>", "```python\na\n```"),
    "a language on the code": ("<pre><code class='language-js'>a</code></pre>", "```js\na\n```"),
    "no language is none": ("<div class='highlight-default'><pre>a</pre></div>", "```\na\n```"),
    "line numbers are not code": ("<pre><span class=linenos>1</span>a</pre>", "```\na\n```"),
    "code in an item": ("<ul><li>a<pre>b\n\nc</pre></li></ul>", "- a\n\n  ```\n  b\n\n  c\n  ```"),
    "a list in a list": ("<ol><li>a<ul><li>b</li></ul></li><li>c</li></ol>", "1. a\n   - b\n2. c"),
    "a list between paragraphs": ("<p>a</p><ul><li>b</li></ul><p>c</p>", "a\n\n- b\n\nc"),
    "a list in a quotation": ("<blockquote><p>a</p><ul><li>b</li><li>c</li></ul></blockquote>", "> a\n>\n> - b\n> - c"),
    "code that is only indented": ("<blockquote><pre>a</pre></blockquote>", "```\na\n```"),
    "code in a cell": ("<table><tr><th>A<tr><td><pre>b|c\nd</pre></table>", "| A |\n| --- |\n| `b\\|c`<br>`d` |"),
    "a table without a header": (
        "<table><tr><td>a<td>b<tr><td>c<td>d</table>",
        "|  |  |\n| --- | --- |\n| a | b |\n| c | d |",
    ),
    "a table that arranges": ("<table><tr><td><p>a</p><td><p>b</p></table>", "a\n\nb"),
    "a heading ends a list": ("<ul><li><h2>A</h2>b</li><li>c</li></ul>", "## A\n\nb\n\nc"),
    "a heading ends a table": ("<table><tr><td>a<td><h2>B</h2>c</table>", "a\n\n## B\n\nc"),
    "a heading in a note is its title": ("<div class=note><h3>Note</h3>a</div>", "> **Note**\n>\n> a"),
    "a heading without words": ("<h2></h2><p>a</p>", "a"),
    "a heading over two lines": ("<h2>A<br>B</h2>", "## A B"),
    "definitions": ("<dl><dt>A<dd>b<dt>C<dd>d</dl>", "**A**\n\nb\n\n**C**\n\nd"),
    "a formula": ("<p><math alttext='x^2'><mi>x</mi></math></p>", "$x^2$"),
    "a formula as it was written": (
        "<p><math><mi>x</mi><annotation>x_1</annotation></math> b</p>",
        "$x_1$ b",
    ),
    "details": ("<details><summary>A</summary>b</details>", "**A**\n\nb"),
    "ignored elements": (
        "<p>a<script>b</script><style>c</style></p><nav>d</nav><p hidden>e</p><!-- f -->g",
        "a\n\ng",
    ),
    "classes that other pages mean otherwise": (
        "<pre class='src src-lisp'>a</pre><div class=info>b</div><div class=tabs>c</div>",
        "```\na\n```\n\nb\n\nc",
    ),
    "a heading in a caption ends the table and repeats nothing": (
        "<p>a</p><table><caption><h3>T</h3></caption><tr><td>b<td>c</table>",
        "a\n\n### T\n\nb\n\nc",
    ),
    "a link around all words of a heading": (
        "<h2 id=a><a class=header-anchor href='#a'><span>A* <code>b</code></span></a></h2>c",
        "## A\\* `b`\n\nc",
    ),
    "a link that leads away is no mark": ("<p>a <a class=permalink href='b.html'>b</a></p>", "a [b](b.html)"),
    "what is called copy is no button": ("<div class=copy>a</div><button class=copy>b</button>", "a"),
    "a bracket in a value is no tag": ("<p title='<b>'>a <a href='x?<y>'>b</a></p>", "a [b](<x?%3Cy%3E>)"),
    "a bracket in a comment is no tag": ("<p>a<!-- <b> > <i -->b</p><!----><p>c</p>", "ab\n\nc"),
    "a bracket in a name is a slip": ("<p>a <b<i>b</b<i> c</p><p>d</p>", "a b c\n\nd"),
    "a stray quote costs no words": ('<p class="a"">b <i title="c">d</i></p><p id="e">f</p>', "b *d*\n\nf"),
    "blanks of all kinds are one": ("<p>a \n\t b&nbsp;&emsp;c\x1c\x0cd  e<br>  f</p>", "a b c d e\\\nf"),
    "lines in a cell": ("<table><tr><th>A<tr><td>b<br>c<p>d|e</table>", "| A |\n| --- |\n| b<br>c<br>d\\|e |"),
    "a table that arranges a cell of one with data": (
        "<table><tr><th>A<th>B<tr><td>a<table role=presentation><tr><td>b<td>c</table><td>d</table>",
        "| A | B |\n| --- | --- |\n| a<br>b<br>c | d |",
    ),
    "lines of code in elements of their own": (
        "<pre><code><div class=line><div>a</div></div><div class=line><div>\n</div></div><div>b<br></div>c</pre>",
        "```\na\n\nb\nc\n```",
    ),
    "names keep their letters": (
        "<ul><li><details><summary>max_size</summary>a</details></ul>",
        "- **max_size**\n\n  a",
    ),
    "a word that may break is one word": ("<p>a<wbr>b c\u200bd</p>", "ab cd"),
}


@pytest.mark.parametrize(("html", "expected"), CASES.values(), ids=CASES)
def test_html_reads_as(html: str, expected: str) -> None:
    assert markdown(f"<body>{html}</body>") == expected


def test_a_page_of_several_chunks_reads_like_a_small_one() -> None:
    piece = "<p>a <b>b</b> <!-- <br> --><code>d</code><br/>e</p>"
    assert markdown(f"<body>{piece * 30_000}</body>") == "\n\n".join([markdown(piece)] * 30_000)


@given(st.text(st.sampled_from("ab \n\t\0\x1c\x85\xa0\u2003\u200b\u2028—"), max_size=12))
def test_whitespace_is_collapsed(text: str) -> None:
    assert collapse_whitespace(text) == " ".join(text.split())
    assert collapse_whitespace(text, has_plain_whitespace(text)) == " ".join(text.split())


ANCHORS = {
    "its own": ("<h2 id=a>A</h2>", "a"),
    "its section's": ("<section id=a><h2>A</h2></section>", "a"),
    "the mark behind it": ("<section id=b><h2>A<a class=headerlink href='#a'>¶</a></h2></section>", "a"),
    "its own, not the route to it": ("<h2 id=a><a class=anchor href='#/b?id=a'><span>A</span></a></h2>", "a"),
    "a name in it, not that of its wrapper": ("<div id=b><h2><a name=a></a>A</h2></div>", "a"),
    "a name in it": ("<h2><a name=a></a>A</h2>", "a"),
    "a name before it": ("<p>b</p><a name=a></a><h2>A</h2>", "a"),
    "a name before other words is another's": ("<a name=b></a><p>b</p><h2>A</h2>", None),
    "the top of the page is no anchor": ("<div id=content><h2>A</h2></div>", None),
}


@pytest.mark.parametrize(("html", "anchor"), ANCHORS.values(), ids=ANCHORS)
def test_the_anchor_of_a_heading_is(html: str, anchor: str | None) -> None:
    assert all_sections(read_page(html).tree)[-1].anchor == anchor


def test_the_title_is_the_only_heading_of_level_1_or_the_title_element() -> None:
    assert read_page("<title>T — Site</title><h1>A</h1><h2>B</h2>").title == "A"
    assert read_page("<title>T — Site</title><h1>A</h1><h1>B</h1>").title == "T"
    assert read_page("<title>T</title><p>a").title == "T"
    assert read_page("<h3>A</h3>").title == "A"
    assert read_page("<title>A — B</title><h2>A — B</h2>").title == "A — B"


def test_text_after_a_description_belongs_to_the_enclosing_section() -> None:
    page = read_page("<h2 id=h>H</h2><dl class=py><dt class=sig id=f>f()</dt><dd>a</dd></dl><p>b</p>")
    assert outline(page) == "title: H\n2 #h H\n3 #f f()\n2 #h H\n"
    assert [section.content for section in all_sections(page.tree)][1:] == ["## H", "### `f()`\n\na", "b"]


def test_several_forms_of_a_signature_share_their_description() -> None:
    page = read_page("<dl class=py><dt class=sig id=f>f()</dt><dt class=sig>f(a)</dt><dd>b</dd></dl>")
    assert [section.content for section in all_sections(page.tree)][1:] == ["# `f()`\n\n**`f(a)`**\n\nb"]


def test_links_are_those_of_the_whole_page_and_relative_to_its_base() -> None:
    page = b"<base href='/docs/'><nav><a href=a>A</a></nav><main><a href='#x'>X</a><a rel=NoFollow href=c>C</a></main>"
    reading = parse_page(page, content_type="text/html", url="https://example.org/x/y.html")
    assert isinstance(reading, ParsedPage)
    assert reading.links == ("https://example.org/docs/a",)


@pytest.mark.parametrize("charset", ["utf-8", "windows-1251", "utf-16"])
def test_the_charset_is_the_one_the_page_declares(charset: str) -> None:
    page = f"<html><head><meta charset='{charset}'></head><body>Привет</body></html>"
    assert read_page(page.encode(charset)).markdown == "Привет"


def test_a_declaration_of_utf_16_in_ascii_is_ignored() -> None:
    page = "<html><head><meta charset=utf-16></head><body>Привет, terns</body></html>"
    assert read_page(page.encode()).markdown == "Привет, terns"


# ── Metadata ──────────────────────────────────────────────────────────────────────────────────────────────────────────

HERE = "https://example.org/docs/guide.html"


def parse_head(head: str, body: str = "<p>Some words.") -> ParsedPage:
    extraction = parse_page(f"<html><head>{head}</head><body>{body}".encode(), content_type="text/html", url=HERE)
    assert isinstance(extraction, ParsedPage), extraction
    return extraction


@pytest.mark.parametrize(
    ("head", "directives"),
    [
        ("<meta name=robots content='noindex'>", RobotsDirectives(noindex=True)),
        ("<META NAME='ROBOTS' CONTENT='NOFOLLOW, noarchive'>", RobotsDirectives(nofollow=True)),
        ("<meta name=kept content=none>", RobotsDirectives(noindex=True, nofollow=True)),
        (
            "<meta name=robots content=nofollow><meta name=kept content=noindex>",
            RobotsDirectives(noindex=True, nofollow=True),
        ),
        ("<meta name=otherbot content=noindex><meta name=description content=noindex>", RobotsDirectives()),
        ("<meta name=robots>", RobotsDirectives()),
    ],
)
def test_robots_meta_tags_are_read(head: str, directives: RobotsDirectives) -> None:
    assert parse_head(head).robots_directives == directives


@pytest.mark.parametrize(
    ("content", "target"),
    [
        ("0; url=new.html", "https://example.org/docs/new.html"),
        ("5;URL='/new'", "https://example.org/new"),
        ('0.5 ; Url = "new.html" ', "https://example.org/docs/new.html"),
        ("0,new.html", "https://example.org/docs/new.html"),
        (";url=new.html", "https://example.org/docs/new.html"),
        ("6; url=new.html", None),
        ("0", None),
        ("300", None),
        ("0; url=guide.html#part", None),
        ("0; url=javascript:alert(1)", None),
    ],
)
def test_a_quick_refresh_on_a_nearly_empty_page_is_a_redirect(content: str, target: str | None) -> None:
    content = content.replace('"', "&quot;")
    body = f"<p>This page has moved <a href='/{'long' * 200}'>there</a>."
    assert parse_head(f'<meta http-equiv="Refresh" content="{content}">', body).moved_to == target


def test_a_refresh_on_a_page_with_content_is_a_link() -> None:
    reading = parse_head("<meta http-equiv=refresh content='3; url=next.html'>", "<p>" + "Real words. " * 40)
    assert reading.moved_to is None
    assert reading.links == ("https://example.org/docs/next.html",)
    assert parse_head("<noscript><meta http-equiv=refresh content='0; url=/no-script'></noscript>").moved_to is None


def test_the_canonical_url_is_a_link_and_counts_if_it_is_another_page() -> None:
    reading = parse_head("<link rel='shortcut Canonical' href='/docs/guide/'><link rel=canonical href=/other>")
    assert reading.canonical == "https://example.org/docs/guide/"
    assert reading.links == ("https://example.org/docs/guide/",)
    assert parse_head(f"<link rel=canonical href='{HERE}#top'>").canonical is None
    assert parse_head("<base href='/base/'><link rel=canonical href=x>").canonical == "https://example.org/base/x"
    assert parse_head("<link rel=canonical href='mailto:a@b'>").canonical is None


def test_the_markdown_alternate_of_a_page_is_not_a_link() -> None:
    head = (
        "<link rel=alternate type='text/markdown; charset=utf-8' href=guide.md><link rel=alternate hreflang=de href=de>"
    )
    reading = parse_head(head, "<p><a href='/docs/guide.md'>as Markdown</a> <a href=other.md>other</a>")
    assert reading.links == ("https://example.org/docs/other.md",)


def test_self_closing_tags_of_xhtml_are_expanded() -> None:
    page = (
        '<?xml version="1.0"?><html xmlns="http://www.w3.org/1999/xhtml"><head><script src="a.js"/><title>T</title>'
        '</head><body><div class="x"/><h1><a id="top" />T</h1><p>one<br/>two <i/>three</p><hr/><p>four</p></body>'
    )
    assert markdown(page) == "# T\n\none\\\ntwo three\n\nfour"
    assert read_page(page).title == "T"


def test_frames_are_links() -> None:
    page = "<html><frameset cols='20%,*'><frame src=toc.html><frame src='main.html'><noframes>no</noframes></frameset>"
    assert read_page(page).hrefs == ["toc.html", "main.html"]


@pytest.mark.parametrize(
    "page",
    [
        "<body class='rustdoc source'><pre>fn main() {}</pre>".replace("'", '"'),
        "<title>box.core</title><div role=main class=body><h1>Source code for box.core</h1><pre>x = 1</pre></div>",
        "<title>Boxes: box.h Source File</title><pre>int box;</pre>",
    ],
)
def test_a_page_of_source_code_is_left_out_unless_its_region_is_selected(page: str) -> None:
    left_out = extract(page.encode(), None)
    assert isinstance(left_out, Unreadable)
    assert left_out.reason.startswith("a page of source code")
    assert isinstance(extract(page.encode(), None, Region(select="body")), Extraction)


# ── Hostile pages ─────────────────────────────────────────────────────────────────────────────────────────────────────

HOSTILE = {
    "deep": "<div>" * 200_000 + "a",
    "deep lists": "<ul><li>" * 2_000 + "a",
    "deep tables": "<table><tr><td>" * 2_000 + "a",
    "many spans": "<p>" + "<b><i>" * 20_000 + "a",
    "a huge attribute": f"<p class='{'x ' * 500_000}'>a</p>",
    "a huge table": "<table><tr>" + "<td colspan=999>a" * 2_000 + "</table>",
    "many breaks": "<p>" + "a<br>" * 50_000,
    "stars": "<p>" + "*_`[" * 50_000,
    "a quote in a name": "<p><a x\"y=1 href='z'>a</a></p>",
    "nothing but a tag": "<",
    "only a head": "<html><head><title>A</title></head></html>",
    "a frameset": "<frameset><frame src=a></frameset>",
    "a stray NUL": "<p>a\0b" + "c" * 200,
    "slashes": '<html xmlns="http://www.w3.org/1999/xhtml">' + "<a /" * 100_000 + "<b/>" * 9_000,
    "many refreshes": "<meta http-equiv=refresh content='0;" + " url = " * 5_000 + "'>" * 200,
    "marks of ours": "<p>\ue000\ue001</p>",
    "unclosed": "<ul><li><table><tr><td><pre><dl><dt>a",
}


@pytest.mark.parametrize("html", HOSTILE.values(), ids=HOSTILE)
def test_no_page_hangs_the_reader(html: str) -> None:
    began = time.process_time()
    extract(html.encode(), None)
    assert time.process_time() - began < 10


TAGS = st.sampled_from([
    "p", "div", "h1", "h2", "ul", "ol", "li", "dl", "dt", "dd", "table", "tr", "td", "th", "caption", "pre",
    "code", "a", "b", "i", "em", "blockquote", "section", "span", "math", "br", "img", "details", "summary",
    "nav", "sup",
])  # fmt: skip
ATTRIBUTES = st.sampled_from([
    "", " id=x", " class=sig id=y", " class=admonition", " class='title'", " class=headerlink href='#z'", " href=u",
    " class='highlight-c'", " class=fragment", " role=tablist", " role=tabpanel", " class=math", " class=summary-table",
    " class=col-first", " class=memproto", " class='memitem:a'", " class='memdesc:a'", " colspan=3 rowspan=2",
    " hidden",
])  # fmt: skip
PIECES = st.one_of(
    st.builds(lambda tag, attributes: f"<{tag}{attributes}>", TAGS, ATTRIBUTES),
    st.builds("</{}>".format, TAGS),
    st.text(max_size=8),
)


@settings(max_examples=100, deadline=None)
@given(st.lists(PIECES, max_size=40).map("".join))
def test_no_combination_of_html_makes_the_reader_fail(html: str) -> None:
    extraction = extract(html.encode("utf-8", "replace"), None)
    if isinstance(extraction, Unreadable):
        return
    sections = all_sections(extraction.tree)
    assert "\n\n".join(filter(None, (section.content for section in sections))) == extraction.markdown
    assert "\0" not in extraction.markdown


if __name__ == "__main__":
    for generator in sys.argv[1:] or GENERATORS:
        for expected, actual in zip(*of_generator(generator), strict=True):
            sys.stdout.writelines(
                difflib.unified_diff(
                    expected.splitlines(True), actual.splitlines(True), f"{generator} expected", "actual"
                )
            )


@pytest.mark.parametrize("slug", ["footer", "toc", "top", "sidebar", "breadcrumbs"])
def test_a_heading_about_navigation_is_a_heading(slug: str) -> None:
    page = f'<main><h1 id="{slug}">One</h1><p>a</p><section id="{slug}"><h2>Two</h2><p>b</p></section></main>'
    extraction = extract(page.encode(), None)
    assert isinstance(extraction, Extraction)
    assert extraction.markdown == "# One\n\na\n\n## Two\n\nb"
