"""Which document a URL is: the five rules, in their order."""

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


def arrival(url: str, content: int = 1, *, size: int = LONG) -> NewPage:
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


def owners(arrivals: list[NewPage], moves: list[MoveCandidate], formers: list[FormerDocument]) -> dict[str, str]:
    """Which document each URL is; the same in whatever order things arrive. A URL that is not named is new."""
    answers = []
    for first, second, third in itertools.product(*map(itertools.permutations, (arrivals, moves, formers))):
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
    assert owners([arrival("/new")], [moving("one", "/new")], []) == {"/new": "one"}


@pytest.mark.parametrize(
    ("first", "second", "winner"),
    [
        (moving("deep", "/new", url="/a", depth=2), moving("shallow", "/new", url="/b", depth=1), "shallow"),
        (moving("a", "/new", url="/a"), moving("b", "/new", url="/b"), "a"),
    ],
    ids=["the smaller depth", "then the URL"],
)
def test_of_several_that_redirect_to_one_place_one_wins(
    first: MoveCandidate, second: MoveCandidate, winner: str
) -> None:
    assert owners([arrival("/new")], [first, second], []) == {"/new": winner}


def test_a_redirect_goes_before_a_content_match_and_before_a_return() -> None:
    formers = [lost("alike"), deleted("was there", url="/new", content=2)]
    assert owners([arrival("/new")], [moving("one", "/new")], formers) == {"/new": "one"}


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
    assert owners([arrival("/new")], [], formers) == ({"/new": found} if found else {})


def test_two_arrivals_with_one_content_are_no_match() -> None:
    assert owners([arrival("/new"), arrival("/other")], [], [lost("lost")]) == {}


@pytest.mark.parametrize(("size", "found"), [(MIN_MATCH_CHARS - 1, {}), (MIN_MATCH_CHARS, {"/new": "lost"})])
def test_tiny_content_is_no_match(size: int, found: dict[str, str]) -> None:
    assert owners([arrival("/new", size=size)], [], [lost("lost")]) == found


def test_what_a_redirect_has_taken_is_no_candidate_any_more() -> None:
    arrivals = [arrival("/new"), arrival("/copy")]
    assert owners(arrivals, [moving("one", "/new")], [lost("one")]) == {"/new": "one"}
    assert owners(arrivals, [moving("one", "/new")], [lost("other")]) == {"/new": "one", "/copy": "other"}


def test_many_are_matched_at_once_each_with_its_own() -> None:
    arrivals = [arrival("/x", 1), arrival("/y", 2), arrival("/z", 3)]
    formers = [lost("one", content=1), missing("two", content=2), deleted("three", content=3)]
    assert owners(arrivals, [], formers) == {"/x": "one", "/y": "two", "/z": "three"}


# 4. Where it was


@pytest.mark.parametrize("bring_back", [missing, deleted])
def test_what_comes_back_where_it_was_is_the_same_document_whatever_it_says_now(bring_back: type) -> None:
    assert owners([arrival("/old", 2)], [], [bring_back("one")]) == {"/old": "one"}
    assert owners([arrival("/old", 2, size=1)], [], [bring_back("one")]) == {"/old": "one"}


def test_content_goes_before_place() -> None:
    formers = [deleted("alike", url="/elsewhere", content=1), deleted("was here", url="/new", content=2)]
    assert owners([arrival("/new", 1)], [], formers) == {"/new": "alike"}


def test_a_document_is_restored_once_by_its_content_or_by_its_place() -> None:
    arrivals = [arrival("/old", 2), arrival("/new", 1)]
    assert owners(arrivals, [], [deleted("one", url="/old", content=1)]) == {"/new": "one"}


def test_of_several_that_lived_at_a_url_the_last_one_comes_back() -> None:
    formers = [
        deleted("first", content=2, born=1),
        deleted("last", content=3, born=5),
        missing("second", content=4, born=3),
    ]
    assert owners([arrival("/old", 1)], [], formers) == {"/old": "last"}


# 5. New


def test_everything_else_is_new() -> None:
    assert owners([arrival("/new")], [], []) == {}
    assert owners([arrival("/new")], [moving("one", "/elsewhere")], [lost("other", content=2)]) == {}


# Duplicates


def page(url: str, content: int = 1, *, html: bool = True) -> DuplicateCandidate:
    return DuplicateCandidate(url=url, content_id=content, is_html=html)


def dropped(named: dict[str, str], *pages: DuplicateCandidate) -> dict[str, str]:
    shown = {one.url: one for one in pages}
    return find_duplicates([(shown[url], canonical) for url, canonical in named.items()], shown)


def test_a_page_repeats_the_one_it_names_if_that_says_the_same() -> None:
    assert dropped({"/a": "/b"}, page("/a"), page("/b")) == {"/a": "/b"}
    assert dropped({"/a": "/b"}, page("/a"), page("/b", content=2)) == {}
    assert dropped({"/a": "/b"}, page("/a")) == {}
    assert dropped({"/a": "/a"}, page("/a")) == {}


def test_of_a_chain_the_end_stays_and_of_a_ring_the_first() -> None:
    pages = [page(f"/{name}") for name in "abcde"]
    assert dropped({"/a": "/b", "/b": "/c"}, *pages) == {"/a": "/c", "/b": "/c"}
    assert dropped({"/b": "/c", "/c": "/d", "/d": "/b", "/a": "/c"}, *pages) == {"/a": "/b", "/c": "/b", "/d": "/b"}


def test_a_long_chain_takes_no_time() -> None:
    pages = [page(f"/{number:06}") for number in range(50_000)]
    named = {here.url: there.url for here, there in itertools.pairwise(pages)}
    assert set(dropped(named, *pages).values()) == {pages[-1].url}


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
def test_markdown_gives_way_to_the_page_it_is_the_source_of(markdown: str, html: str) -> None:
    stem = markdown.removesuffix(".md")
    assert dropped({markdown: stem}, page(markdown, html=False), page(html, content=2)) == {markdown: html}
    assert dropped({markdown: stem}, page(markdown, html=False), page(html, content=2, html=False)) == {}
    assert dropped({markdown: stem}, page(markdown, html=False), page("/other", content=2)) == {}
