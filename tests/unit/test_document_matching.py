"""Matching of new URLs with documents, rule by rule, and detection of duplicates."""

import itertools

import pytest

from kept.crawl.document_matching import (
    MIN_MATCH_CHARS,
    DuplicateCandidate,
    MoveCandidate,
    find_duplicates,
    match_documents,
    resolve_redirects,
)
from kept.model.document import FormerDocument, MatchTier, NewPage

LONG = MIN_MATCH_CHARS


def new_page(url: str, content: int = 1, *, size: int = LONG) -> NewPage:
    return NewPage(version_id=hash(url), document=f"new at {url}", url=url, depth=1, content_id=content, size=size)


def former(document: str, tier: MatchTier, *, url: str = "/old", content: int = 1, born: int = 1) -> FormerDocument:
    return FormerDocument(document=document, url=url, content_id=content, tier=tier, born=born)


def lost(document: str, **values: object) -> FormerDocument:
    return former(document, MatchTier.LOST, **values)  # type: ignore[arg-type]


def missing(document: str, **values: object) -> FormerDocument:
    return former(document, MatchTier.MISSING, **values)  # type: ignore[arg-type]


def deleted(document: str, **values: object) -> FormerDocument:
    return former(document, MatchTier.DELETED, **values)  # type: ignore[arg-type]


def moving(document: str, end: str, *, url: str = "/old", depth: int = 1) -> MoveCandidate:
    return MoveCandidate(document=document, url=url, depth=depth, target_url=end)


def owners(pages: list[NewPage], moves: list[MoveCandidate], formers: list[FormerDocument]) -> dict[str, str]:
    """Return the document of each URL, the same for every order of arrival. A URL that is missing is new."""
    answers = []
    for first, second, third in itertools.product(*map(itertools.permutations, (pages, moves, formers))):
        answers.append({one.new_page.url: one.document for one in match_documents(first, second, list(third))})
    assert all(answer == answers[0] for answer in answers)
    return answers[0]


@pytest.mark.parametrize(
    ("redirects", "end"),
    [
        ({}, "/a"),
        ({"/a": "/b"}, "/b"),
        ({"/a": "/b", "/b": "/c"}, "/c"),
        ({"/a": "/a"}, None),
        ({"/a": "/b", "/b": "/a"}, None),
        ({"/a": "/b", "/b": "/c", "/c": "/b"}, None),
        ({"/b": "/a"}, "/a"),
    ],
    ids=["none", "one", "a chain", "to itself", "a circle", "into a circle", "from elsewhere"],
)
def test_redirects_are_followed_to_their_end_and_circles_have_none(redirects: dict[str, str], end: str | None) -> None:
    assert resolve_redirects("/a", redirects) == end


# 2. Redirects


def test_the_end_of_a_redirect_is_the_document_that_redirects() -> None:
    assert owners([new_page("/new")], [moving("one", "/new")], []) == {"/new": "one"}


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (moving("deep", "/new", url="/a", depth=2), moving("shallow", "/new", url="/b", depth=1), "shallow"),
        (moving("a", "/new", url="/a"), moving("b", "/new", url="/b"), "a"),
    ],
    ids=["the smaller depth", "then the URL"],
)
def test_of_several_documents_that_redirect_to_one_url_one_wins(
    first: MoveCandidate, second: MoveCandidate, winner: str
) -> None:
    assert owners([new_page("/new")], [first, second], []) == {"/new": winner}


def test_a_redirect_comes_before_a_content_match_and_before_a_return() -> None:
    formers = [lost("alike"), deleted("was there", url="/new", content=2)]
    assert owners([new_page("/new")], [moving("one", "/new")], formers) == {"/new": "one"}


# 3. Content


@pytest.mark.parametrize(
    ("formers", "found"),
    [
        ([lost("lost")], "lost"),
        ([missing("missing")], "missing"),
        ([deleted("deleted")], "deleted"),
        ([lost("lost"), missing("missing"), deleted("deleted")], "lost"),
        ([missing("missing"), deleted("deleted")], "missing"),
        ([lost("lost", content=2), missing("missing")], "missing"),
        ([lost("one"), lost("two")], None),
        ([lost("one"), lost("two"), missing("missing")], None),
        ([missing("one"), missing("two"), deleted("deleted")], None),
        ([lost("lost", content=2)], None),
    ],
    ids=[
        "lost", "missing", "deleted", "the lost first", "then the missing", "only where the content is the same",
        "several candidates", "several candidates first", "several missing", "no match",
    ],
)  # fmt: skip
def test_a_document_is_found_again_by_its_content_where_only_one_can_be_meant(
    formers: list[FormerDocument], found: str | None
) -> None:
    assert owners([new_page("/new")], [], formers) == ({"/new": found} if found else {})


def test_two_new_pages_with_the_same_content_are_no_match() -> None:
    assert owners([new_page("/new"), new_page("/other")], [], [lost("lost")]) == {}


@pytest.mark.parametrize(("size", "found"), [(MIN_MATCH_CHARS - 1, {}), (MIN_MATCH_CHARS, {"/new": "lost"})])
def test_tiny_content_is_no_match(size: int, found: dict[str, str]) -> None:
    assert owners([new_page("/new", size=size)], [], [lost("lost")]) == found


def test_a_document_matched_by_a_redirect_is_no_candidate_any_more() -> None:
    pages = [new_page("/new"), new_page("/copy")]
    assert owners(pages, [moving("one", "/new")], [lost("one")]) == {"/new": "one"}
    assert owners(pages, [moving("one", "/new")], [lost("other")]) == {"/new": "one", "/copy": "other"}


def test_many_are_matched_at_once_each_with_its_own() -> None:
    pages = [new_page("/x", 1), new_page("/y", 2), new_page("/z", 3)]
    formers = [lost("one", content=1), missing("two", content=2), deleted("three", content=3)]
    assert owners(pages, [], formers) == {"/x": "one", "/y": "two", "/z": "three"}


# 4. The former URL


@pytest.mark.parametrize("bring_back", [missing, deleted])
def test_a_page_that_comes_back_at_its_url_is_the_same_document_whatever_its_content(bring_back: type) -> None:
    assert owners([new_page("/old", 2)], [], [bring_back("one")]) == {"/old": "one"}
    assert owners([new_page("/old", 2, size=1)], [], [bring_back("one")]) == {"/old": "one"}


def test_content_comes_before_the_url() -> None:
    formers = [deleted("alike", url="/elsewhere", content=1), deleted("was here", url="/new", content=2)]
    assert owners([new_page("/new", 1)], [], formers) == {"/new": "alike"}


def test_a_document_is_restored_once_by_its_content_or_by_its_url() -> None:
    pages = [new_page("/old", 2), new_page("/new", 1)]
    assert owners(pages, [], [deleted("one", url="/old", content=1)]) == {"/new": "one"}


def test_of_several_documents_that_had_a_url_the_last_one_comes_back() -> None:
    formers = [
        deleted("first", content=2, born=1),
        deleted("last", content=3, born=5),
        missing("second", content=4, born=3),
    ]
    assert owners([new_page("/old", 1)], [], formers) == {"/old": "last"}


# 5. New


def test_everything_else_is_new() -> None:
    assert owners([new_page("/new")], [], []) == {}
    assert owners([new_page("/new")], [moving("one", "/elsewhere")], [lost("other", content=2)]) == {}


# Duplicates


def page(url: str, content: int = 1, *, html: bool = True) -> DuplicateCandidate:
    return DuplicateCandidate(url=url, content_id=content, is_html=html)


def duplicates(canonicals: dict[str, str], *pages: DuplicateCandidate) -> dict[str, str]:
    living = {one.url: one for one in pages}
    return find_duplicates([(living[url], canonical) for url, canonical in canonicals.items()], living)


def test_a_page_is_a_duplicate_of_its_canonical_page_if_the_content_is_the_same() -> None:
    assert duplicates({"/a": "/b"}, page("/a"), page("/b")) == {"/a": "/b"}
    assert duplicates({"/a": "/b"}, page("/a"), page("/b", content=2)) == {}
    assert duplicates({"/a": "/b"}, page("/a")) == {}
    assert duplicates({"/a": "/a"}, page("/a")) == {}


def test_of_a_chain_the_end_stays_and_of_a_ring_the_first() -> None:
    pages = [page(f"/{name}") for name in "abcde"]
    assert duplicates({"/a": "/b", "/b": "/c"}, *pages) == {"/a": "/c", "/b": "/c"}
    assert duplicates({"/b": "/c", "/c": "/d", "/d": "/b", "/a": "/c"}, *pages) == {"/a": "/b", "/c": "/b", "/d": "/b"}


def test_a_long_chain_takes_no_time() -> None:
    pages = [page(f"/{number:06}") for number in range(50_000)]
    canonicals = {page.url: other.url for page, other in itertools.pairwise(pages)}
    assert set(duplicates(canonicals, *pages).values()) == {pages[-1].url}


@pytest.mark.parametrize(
    ("markdown", "html"),
    [
        ("/guide.md", "/guide"),
        ("/guide.md", "/guide.html"),
        ("/guide.md", "/guide/"),
        ("/guide.md", "/guide/index.html"),
        ("/guide.html.md", "/guide.html"),
        ("/guide/index.html.md", "/guide/"),
        ("/guide/index.md", "/guide/"),
    ],
)
def test_markdown_is_a_duplicate_of_the_page_that_is_made_from_it(markdown: str, html: str) -> None:
    stem = markdown.removesuffix(".md")
    assert duplicates({markdown: stem}, page(markdown, html=False), page(html, content=2)) == {markdown: html}
    assert duplicates({markdown: stem}, page(markdown, html=False), page(html, content=2, html=False)) == {}
    assert duplicates({markdown: stem}, page(markdown, html=False), page("/other", content=2)) == {}
