"""The kind of a page is recognised by its structure; a title alone decides nothing."""

import pytest

from kept.extract.reader import parse_page
from kept.model.document import Content, PageKind

NAMES = [f"{first}{second}lpha" for first in "abcdefgh" for second in "aeiou"]
PROSE = (
    "<p>An index is a table of a database, kept in an order that a query can use, and this page explains it at length."
)


def links(names: list[str], target: str = "p.html") -> str:
    return "<ul>" + "".join(f'<li><a href="{target}#{name}">{name}</a>' for name in names) + "</ul>"


VERSIONS = "".join(f"<h2>1.{number} (2020-01-0{number})</h2><p>x" for number in range(1, 8))
CHAPTERS = "".join(f"<h2>1.{number} Doing {number}</h2><p>x" for number in range(1, 8))
TERMS = "".join(f"<dt>{name}<dd>A name." for name in NAMES[:9])
PAGES = {
    "an index": (f"<title>Index</title><h1>Index</h1>{links(NAMES)}", PageKind.INDEX),
    "names of a library": (f"<title>All Classes</title>{links(NAMES)}", PageKind.INDEX),
    "a table of contents": (
        f"<h1>The Manual</h1>{links(NAMES[::-7])}{links(NAMES[::-5])}",
        PageKind.CONTENTS,
    ),
    "a page about indexes": (f"<title>Index</title><h1>Index</h1>{PROSE * 9}{links(NAMES[:9])}", PageKind.PAGE),
    "release notes": ("<h1>What's new in 3.1</h1><p>Much.<ul><li>One<li>Two</ul>", PageKind.CHANGELOG),
    "versions": (f"<h1>Past</h1>{VERSIONS}", PageKind.CHANGELOG),
    "numbered chapters": (f"<h1>Use</h1>{CHAPTERS}", PageKind.PAGE),
    "a glossary": (f"<h1>Glossary</h1><dl>{TERMS}</dl>", PageKind.GLOSSARY),
    "a search page": ("<title>Search</title><h1>Search</h1><p>Please activate JavaScript to search.", PageKind.SEARCH),
    "a page about search": (f"<h1>Full text search</h1>{PROSE}", PageKind.PAGE),
    "a page that moved": ("<h1>Old</h1><p>This page has moved to <a href=new.html>New</a>.", PageKind.STUB),
    "a short page": ("<h1>New</h1><p>It opens a pool and closes it again.", PageKind.PAGE),
}


def read(html: str, name: str = "p.html") -> Content:
    page = parse_page(html.encode(), content_type="text/html", url=f"https://docs.test/{name}")
    content = getattr(page, "content", None)
    assert isinstance(content, Content)
    return content


@pytest.mark.parametrize(("html", "kind"), PAGES.values(), ids=PAGES)
def test_a_page_is_of_its_kind(html: str, kind: PageKind) -> None:
    assert read(html).kind is kind


def test_a_whole_manual_on_one_page_is_a_copy_of_it() -> None:
    chapters = "".join(f"<h1>Chapter {number}</h1>{PROSE * 60}" for number in range(25))
    assert read(chapters, "print.html").kind is PageKind.MANUAL
    assert read(chapters).kind is PageKind.PAGE


def test_an_index_is_kept_and_read_at_its_places_but_not_cut_at_each() -> None:
    names = "".join(f'<h2 id="{name}">{name}</h2>{links([name] * 3)}' for name in NAMES)
    index = read(f"<title>Index</title><h1>Index</h1>{names}")
    assert index.kind is PageKind.INDEX
    assert len(index.sections) < 6
    assert {place.anchor for place in index.places} >= set(NAMES)
