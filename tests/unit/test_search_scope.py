"""The scope of a search: which URLs are below a path."""

import time

import pytest

from kept.search.search import SearchScope


@pytest.mark.parametrize(
    ("path", "admitted", "refused"),
    [
        ("ref", ["ref", "ref/a.html", "a/ref/b"], ["reference", "a/xref/b"]),
        ("/guide/", ["guide/a"], ["guided"]),
        ("guide/*.html", ["guide/a.html", "guide/a.html/b"], ["guide/a/b.html", "guide/a.htm"]),
        ("guide/**.html", ["guide/a.html", "guide/a/b.html"], ["guide/a.htm"]),
        ("**/api", ["x/api", "x/y/api/z"], ["api", "x/apis"]),
        ("v?/a*c", ["v1/abc", "v1/abcabc", "x/v2/ac/d"], ["v10/ac", "v/ac", "v1/ab/c"]),
        ("a*b/c*d", ["ab/cd", "axb/cxd", "abxb/cdxd"], ["ax/b/cd", "ab/c/d"]),
        ("*", ["a", "a/b"], []),
        ("***", ["a", "a/b"], []),
        ("a.c", ["a.c"], ["abc"]),
    ],
)
def test_a_path_is_whole_parts_with_stars_for_some_of_it(path: str, admitted: list[str], refused: list[str]) -> None:
    place = SearchScope(generations=[], path=path)
    assert [url for url in admitted if not place.matches_url(f"https://docs.test/{url}")] == []
    assert [url for url in refused if place.matches_url(f"https://docs.test/{url}")] == []


@pytest.mark.parametrize("star", ["*a", "**a", "?*a", "*a/**a"])
def test_many_stars_take_no_time(star: str) -> None:
    began = time.process_time()
    assert not SearchScope(generations=[], path=star * 6 + "z").matches_url(f"https://docs.test/{'a/aaaa' * 20}")
    assert not SearchScope(generations=[], path=star * 40 + "z").matches_url(f"https://docs.test/{'a/aaaa' * 200}")
    assert time.process_time() - began < 1
