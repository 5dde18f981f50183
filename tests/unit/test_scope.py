"""Links that belong to a crawl, and traps that do not."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InvalidInput
from kept.model.source import Limits, Scope
from kept.origins.web.scope import (
    EXCLUDED_BY_PATTERN,
    NON_PAGE_EXTENSIONS,
    OUT_OF_SCOPE,
    WHOLE_SITE_COPY,
    WRONG_TYPE,
    WebScope,
    folder_of,
)
from kept.origins.web.traps import MAX_CALENDAR_ROUNDS, MAX_ROUNDS, find_url_family, is_plain, why_trap


def scope(root: str = "https://docs.test/manual/", *, no_traps: bool = False, **settings: tuple[str, ...]) -> WebScope:
    return WebScope(root, Scope(**settings), Limits(no_traps=no_traps))


# ── Listed ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_source_of_listed_pages_has_exactly_these_wherever_they_are() -> None:
    pages = ("http://docs.test/a", "https://other.test/b.html?x=1")
    listed = scope(pages[0], pages=pages)
    assert [listed.why_excluded(page) for page in pages] == [None, None]
    assert listed.why_excluded("https://docs.test/a/") is None, "where the site itself sends its reader"
    for url in ("http://docs.test/", "http://docs.test/a/b", "https://other.test/b.html", "https://other.test/"):
        assert listed.why_excluded(url) == OUT_OF_SCOPE


# ── Within ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("root", "folder"),
    [
        ("https://docs.test/", "https://docs.test/"),
        ("https://docs.test/manual/", "https://docs.test/manual/"),
        ("https://docs.test/manual/index.html", "https://docs.test/manual/"),
        ("https://docs.test/manual", "https://docs.test/manual/"),
        ("https://docs.test/3", "https://docs.test/3/"),
        ("https://docs.test/en/5.2", "https://docs.test/en/5.2/"),
        ("https://docs.test/v1.x", "https://docs.test/v1.x/"),
        ("https://docs.test/manual/?page=1", "https://docs.test/manual/"),
        ("https://docs.test/index.php?page=1", "https://docs.test/"),
    ],
)
def test_a_root_stands_for_a_folder(root: str, folder: str) -> None:
    assert folder_of(root) == folder


def test_by_default_a_source_is_everything_below_the_folder_of_its_root() -> None:
    manual = scope()
    assert manual.admits("https://docs.test/manual/")
    assert manual.admits("https://docs.test/manual/a/b.html")
    assert manual.admits("https://docs.test/manual")
    for url in (
        "https://docs.test/", "https://docs.test/manuals/", "https://docs.test/manual-old/x", "https://other.test/manual/",
        "https://docs.test.evil.test/manual/", "https://docs.test:8443/manual/", "file:///manual/x",
    ):  # fmt: skip
        assert manual.why_excluded(url) == OUT_OF_SCOPE, url


def test_a_route_has_the_scope_of_its_page() -> None:
    for root in ("https://docs.test/manual/", "https://docs.test/manual", "https://docs.test/manual/index.html"):
        assert scope(root).admits(f"{root}#/guide/install")
        assert scope(root).why_excluded("https://docs.test/#/manual/") == OUT_OF_SCOPE
        assert scope(root).why_excluded(f"{root}#/picture.png") == WRONG_TYPE
    assert scope(exclude=("#/old/*",)).why_excluded("https://docs.test/manual/#/old/guide") == EXCLUDED_BY_PATTERN
    assert scope(include=("#/new/*",)).admits("https://docs.test/manual/#/new/guide")


def test_a_host_or_a_list_of_prefixes_widens_it() -> None:
    assert scope(within=("host",)).admits("https://docs.test/elsewhere")
    assert not scope(within=("host",)).admits("https://api.test/")
    both = scope(within=("folder", "https://api.test/v2", "/wiki/"))
    for url in (
        "https://docs.test/manual/x",
        "https://api.test/v2/x",
        "https://api.test/v2",
        "https://docs.test/wiki/x",
    ):
        assert both.admits(url)
    for url in ("https://api.test/v20", "https://api.test/v1/x", "https://docs.test/x"):
        assert not both.admits(url)
    with pytest.raises(InvalidInput):
        scope(within=("mailto:x",))


def test_a_site_that_moves_to_https_or_www_stays_the_same_site() -> None:
    manual = scope("http://docs.test/manual/")
    for url in ("https://docs.test/manual/x", "http://www.docs.test/manual/x", "https://www.docs.test/manual/x"):
        assert manual.admits(url)
    assert scope("https://www.docs.test/").admits("https://docs.test/x")
    assert not scope("https://docs.test/").admits("http://docs.test/x"), "but never back to http"
    assert not scope("http://127.0.0.1:8000/").admits("https://127.0.0.1:8000/x")


# ── Types and patterns ───────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("ending", sorted(NON_PAGE_EXTENSIONS))
def test_files_that_are_not_pages_by_their_extension_are_left_out(ending: str) -> None:
    assert scope().why_excluded(f"https://docs.test/manual/file.{ending.upper()}?v=1") == WRONG_TYPE


@pytest.mark.parametrize(
    "name", ["a.html", "a", "a.md", "a.pdf", "a.docx", "a.ipynb", "a.txt", "1.2", "a.php?x=b.png", "png", "x.js/"]
)
def test_pages_are_admitted(name: str) -> None:
    assert scope().admits(f"https://docs.test/manual/{name}")


def test_patterns_are_over_the_path_below_the_root() -> None:
    some = scope(
        include=("guide/*", "/manual/api/*"), exclude=("*/old/*", "*action=edit*", "https://docs.test/*secret*")
    )
    for path in ("guide/a", "guide/b/c.html", "api/x", "guide/a?x=1"):
        assert some.admits(f"https://docs.test/manual/{path}"), path
    for path in ("a", "guide/old/a", "guide/a?action=edit", "guide/secret", "guidebook"):
        assert some.why_excluded(f"https://docs.test/manual/{path}") == EXCLUDED_BY_PATTERN, path
    assert some.admits("https://docs.test/manual/"), "the root is always in"
    assert (
        scope(exclude=("größe*",)).why_excluded("https://docs.test/manual/gr%C3%B6%C3%9Fe.html") == EXCLUDED_BY_PATTERN
    )


# ── Traps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("a/a/a/", "repeats"),
        ("docs/a/docs/a/docs/a/x.html", "repeats"),
        ("x/en/latest/b/en/latest/b/en/latest/b", "repeats"),
        ("/".join("abcdefghij" * 4), "deeper"),
        ("page;jsessionid=0123456789ABCDEF", "session"),
        ("page?PHPSESSID=0123456789abcdef", "session"),
        ("page?x=1&sid=0123456789abcdef", "session"),
        ("(S(lit3py55t21z5v55vlm25s55))/page.aspx", "session"),
        ("search?" + "&".join(f"p{number}=1" for number in range(9)), "parameters"),
    ],
)
def test_a_trap_is_recognised_by_its_url(path: str, word: str) -> None:
    url = f"https://docs.test/manual/{path}"
    reason = scope().why_excluded(url)
    assert reason is not None
    assert reason.startswith("trap: ")
    assert word in reason
    assert scope().admits(url), "it joins the frontier, which refuses it: the ledger has it"
    assert scope(no_traps=True).why_excluded(url) is None


def test_a_trap_is_lifted_for_a_pattern_only() -> None:
    lifted = WebScope("https://docs.test/manual/", Scope(), Limits(not_traps=("calendar/*", "*/shop/*", "list?*by=*")))
    for path in ("calendar/2026/11/", "a/shop/a/shop/a/shop/x", "list?by=a&page=1&sort=x", "list?page=1&by=a"):
        url = f"https://docs.test/manual/{path}"
        assert (lifted.why_excluded(url), lifted.find_family(url)) == (None, None), path
    assert lifted.find_family("https://docs.test/manual/events/2026/11/")
    assert lifted.find_family("https://docs.test/manual/list?page=1&sort=x")
    assert lifted.is_trap("https://docs.test/manual/b/b/b/b/x")
    assert not lifted.admits("https://docs.test/calendar/2026/11/"), "it widens no scope"


@pytest.mark.parametrize(
    "path",
    ["java/lang/String.html", "a/b/a/b", "2011/11/11/11/", "releases/2031/", "calendar/2026/05/", "calendar/2031/05/",
     "events/2099", "19001.html", "1/1/1/1",
     "blog/2024/05/a-title", "api/java.base/java/util/concurrent/locks/Lock.html", "index.php?title=Main_Page",
     "p?sid=7", "functions(1)", "a;b=c"],
)  # fmt: skip
def test_an_ordinary_page_is_not_a_trap(path: str) -> None:
    assert scope().why_excluded(f"https://docs.test/manual/{path}") is None


@pytest.mark.parametrize(
    "path",
    ["1.html", "19001.html", "20000.html", "v2.1/20/index.html", "2024/index.html", "events.html", "calendar.html",
     "release-2024.html", "events/19001.html", "RFC2080.html"],
)  # fmt: skip
@pytest.mark.parametrize("host", ["docs.test", "127.0.0.1:2080", "127.0.0.1:21100", "docs.test:19991"])
def test_a_number_alone_makes_no_family(host: str, path: str) -> None:
    assert find_url_family(f"http://{host}/{path}") is None


@pytest.mark.parametrize(
    ("one", "other", "max_rounds", "max_urls"),
    [
        ("calendar/2026/11/", "calendar/2031/02/", MAX_CALENDAR_ROUNDS, None),
        ("events?month=2026-11", "events?month=1999-02", MAX_CALENDAR_ROUNDS, None),
        ("list?view=calendar&date=20310501", "list?view=calendar&date=20310601", MAX_CALENDAR_ROUNDS, None),
        ("2026/11/", "2026/12/", MAX_ROUNDS, None),
        ("wiki?title=A", "wiki?title=B", MAX_ROUNDS, None),
        ("list?by=a&page=1", "list?page=7&by=b", MAX_ROUNDS, 2_000),
        ("list?by=a&page=1&sort=x", "list?page=7&by=b&sort=y", MAX_ROUNDS, 500),
    ],
)
def test_urls_that_may_be_endless_are_a_family(one: str, other: str, max_rounds: int, max_urls: int | None) -> None:
    families = [scope().find_family(f"https://docs.test/manual/{path}") for path in (one, other)]
    assert families[0]
    assert families[0] == families[1]
    assert (families[0].max_rounds, families[0].max_urls) == (max_rounds, max_urls)
    assert families[0].trap_reason.startswith("trap: ")
    assert scope(no_traps=True).find_family(f"https://docs.test/manual/{one}") is None


@given(st.text("ab019/?&=;()-", max_size=60))
def test_a_plain_url_is_neither_a_trap_nor_a_variant(path: str) -> None:
    url = f"https://docs.test/{path}"
    if is_plain(url):
        assert why_trap(url) is None
        assert find_url_family(url) is None


@given(st.text("ab/", max_size=200))
def test_the_pattern_for_repeated_paths_agrees_with_a_simple_search(path: str) -> None:
    parts = path.split("/")
    units = (1, 2, 3, 4)
    repeated = any(
        all(parts[start : start + unit]) and parts[start : start + unit] * 3 == parts[start : start + 3 * unit]
        for unit in units
        for start in range(len(parts))
    )
    url = f"https://docs.test/{path}"
    if url.count("/") - 2 <= 30:
        assert (why_trap(url) is not None) == repeated


# ── Copies ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_a_copy_of_the_whole_site_is_not_a_page_unless_it_is_the_root() -> None:
    copy = "https://docs.test/manual/llms-full.txt"
    assert scope().why_excluded(copy) == WHOLE_SITE_COPY
    assert scope().admits("https://docs.test/manual/llms.txt")
    assert scope().admits("https://docs.test/manual/llms-full.txt.html")
    assert scope(copy).admits(copy)


# ── Speed ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_it_is_quick_and_no_url_makes_it_slow() -> None:
    site = scope()
    page = [f"https://docs.test/manual/page-{number}.html" for number in range(100)]
    page += [f"https://elsewhere.test/{number}" for number in range(50)]
    best = min(_seconds(lambda: [site.admits(url) for url in page * 20]) for _ in range(5))
    assert best / (20 * len(page)) < 2e-6
    for hostile in ("a/" * 1000, "(" * 2000, "x?" + "a=2024&" * 250, "2024-" * 400, "/a" * 15 + "/b" * 15):
        assert _seconds(lambda url=hostile: site.why_excluded(f"https://docs.test/manual/{url}")) < 0.5


def _seconds(work: object) -> float:
    began = time.perf_counter()
    work()  # type: ignore[operator]
    return time.perf_counter() - began
