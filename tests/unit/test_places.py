"""Every id and name of a page is a place in its Markdown; an entry that it names is found and read by itself."""

import pytest

from kept.extract.reader import parse_page
from kept.model.document import Content
from kept.service.places import find_place

LONG = "It does something that takes more than a few words to say. " * 6


def read(html: str) -> Content:
    page = parse_page(html.encode(), content_type="text/html", url="https://docs.test/p")
    content = getattr(page, "content", None)
    assert isinstance(content, Content)
    return content


def text_at(content: Content, anchor: str) -> str:
    place = find_place(content.places, anchor)
    assert place is not None, content.places
    return content.markdown[place.start : place.end].strip()


PLACES = {
    "a paragraph": ("<p>before<p id=a>here<p>after", "here\n\nafter"),
    "a name between words": ("<p>before <a name=a></a>here", "here"),
    "a name at the end of a paragraph": ("<p>before <a name=a></a><p>here", "here"),
    "a name around nothing, in bold": ("<p>before <b><a name=a></a></b> here", "here"),
    "a name before bold words": ("<p>before <b><a name=a></a>here</b>", "**here**"),
    "between code": ("<p><code>x</code><a name=a></a><code>here</code>", "here`"),
    "an item": ("<ul><li>before<li id=a>here</ul>", "- here"),
    "a wrapper of a heading": ("<p>before<div id=a><h2 id=b>here</h2></div>", "## here"),
    "a name in a heading": ("<p>before<h2><a name=a></a>here</h2>", "## here"),
    "a line of code": ("<p>before<pre>x\n<a name=a></a>  here\n</pre>", "here\n```"),
    "a row": ("<table><tr><th>N<th>D<tr><td>x<td>y<tr id=a><td>here<td>z</table>", "| here | z |"),
    "a cell with code": ("<table><tr><th>N<th>D<tr><td>x<td id=a><pre>here</pre></table>", "| x | `here` |"),
    "a cell of a layout table": ("<table><tr><td><p>x<p>y<pre>x</pre><td><p id=a>here</table>", "here"),
    "a name before a dash": ("<p><a name=a></a>- here", "\\- here"),
    "nothing but a name": ("<p>before</p><a name=a></a>", ""),
    "what looks like a mark": ("<p>be&#1;5&#2;fore<p id=a>here", "here"),
}


@pytest.mark.parametrize(("html", "text"), PLACES.values(), ids=PLACES)
def test_a_place_is_where_the_page_has_it(html: str, text: str) -> None:
    content = read(html)
    assert "\x01" not in content.markdown
    assert "\x02" not in content.markdown
    assert text_at(content, "a") == text


ENTRIES = {
    "a term": ("<dl><dt>-a<dt>--all<dd>{}<dt>-b<dd>{}</dl><p>after", ["-a, --all", "-b"]),
    "a term with an id": ("<dl><dt id=a>-a<dd>{}<dt id=b>-b<dd>{}</dl><p>after", ["-a", "-b"]),
    "a term with a name in it": ("<dl><dt><a name=a></a>-a<dd>{}<dt>-b<dd>{}</dl><p>after", ["-a", "-b"]),
    "a row": ("<table><tr><th>N<th>D<tr><td><code>-a</code> (x)<td>{}<tr><td><b>-b</b><td>{}</table>", ["-a", "-b"]),
    "a paragraph": ("<p id=a><b>-a</b> {}<p>more<p id=b><b>-b</b> {}", ["-a", "-b"]),
    "a short line": ("<a name=a></a>-a<p>{}<p>more<p id=b>-b<p>{}", ["-a", "-b"]),
}


@pytest.mark.parametrize(("html", "names"), ENTRIES.values(), ids=ENTRIES)
def test_the_entries_of_a_long_section_are_sections_with_their_own_text(html: str, names: list[str]) -> None:
    page = f"<h1 id=top>Options</h1><p>{LONG * 6}</p>{html.format(LONG + 'first', LONG + 'second')}"
    content = read(page)
    entries = [section for section in content.sections if section.entry]
    assert [section.heading for section in entries] == names
    assert ["first" in entry.text for entry in entries] == [True, False]
    assert ["second" in entry.text for entry in entries] == [False, True]
    assert all(content.sections[entry.parent or 0].heading == "Options" for entry in entries)
    for name in ("-a", "-b"):
        assert name in text_at(content, name).partition("\n")[0]
    assert "second" not in text_at(content, "-a")
    assert read(page) == content


def test_the_entries_of_a_short_section_stay_in_it_and_give_it_their_names() -> None:
    content = read("<h1 id=top>Options</h1><dl><dt>-a<dd>one<dt>-b<dd>two</dl>")
    (section,) = content.sections
    assert [name for name, _ in section.entries] == ["-a", "-b"]
    assert text_at(content, "-b") == "**-b**\n\ntwo"


def test_an_entry_in_an_entry_is_read_by_itself() -> None:
    content = read("<h1>Options</h1><dl><dt>outer<dd>one<dl><dt>inner<dd>two</dl>three<dt>next<dd>four</dl>")
    assert text_at(content, "inner").startswith("**inner**\n\n  two")
    assert "three" not in text_at(content, "inner")
    assert "three" in text_at(content, "outer")
    assert "four" not in text_at(content, "outer")


def test_a_row_that_is_a_section_has_the_header_of_its_table() -> None:
    rows = "".join(f"<tr id=r{number}><td><code>f{number}</code><td>{LONG}" for number in range(9))
    content = read(f"<h2>Functions</h2><table><tr><th>Name<th>Use</tr>{rows}</table>")
    assert [section.entry for section in content.sections[1:]] == [f"f{number}" for number in range(9)]
    assert all(section.text.startswith("| Name | Use |\n| --- | --- |\n| `f") for section in content.sections[1:])
    assert text_at(content, "r3").startswith("| `f3` |")


def test_the_places_of_another_format_are_its_headings() -> None:
    page = parse_page(
        b"# One\n\na\n\n## Two\n\nb\n\n# Three\n", content_type="text/markdown", url="https://docs.test/p"
    )
    content = getattr(page, "content", None)
    assert isinstance(content, Content)
    assert text_at(content, "one") == "# One\n\na\n\n## Two\n\nb"
    assert text_at(content, "Two") == "## Two\n\nb"


def test_a_page_with_very_many_places_is_read_in_time() -> None:
    names = "".join(f"<a name=n{number}></a>" for number in range(4_000))
    rows = "".join(f"<tr id=r{number}><td>{number}<td>x" for number in range(4_000))
    content = read(f"<p>a {names} b</p><p id=p>x</p>{names}<table><tr><th>a<th>b{rows}</table>")
    assert len(content.places) >= 8_000
