"""Canonical URLs, and the resolution of links.

The fast paths are tested against the plain ones: canonical() against the parser without its shortcut, resolve_all()
against resolve().
"""

import os
import re
from pathlib import Path, PurePosixPath
from urllib.parse import unquote_to_bytes

import can_ada
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from kept.model import url as module
from kept.model.url import (
    MAX_URL_LENGTH,
    TRACKING_PARAMETERS,
    TRACKING_PREFIXES,
    canonicalize_route_url,
    canonicalize_url,
    file_path,
    file_url,
    get_anchor,
    get_fragment,
    resolve_link,
    resolve_links,
    with_anchor,
    with_fragment,
)

SPELLINGS = {
    # scheme, host, port
    "https://docs.example.org/a/b.html": "https://docs.example.org/a/b.html",
    "HTTPS://Docs.Example.ORG/A/b.html": "https://docs.example.org/A/b.html",
    "https://docs.example.org": "https://docs.example.org/",
    "https:docs.example.org": "https://docs.example.org/",
    "https:/docs.example.org/x": "https://docs.example.org/x",
    "https:\\\\docs.example.org\\x\\y": "https://docs.example.org/x/y",
    "https://docs.example.org:443/": "https://docs.example.org/",
    "http://docs.example.org:80/": "http://docs.example.org/",
    "http://docs.example.org:0443/": "http://docs.example.org:443/",
    "https://docs.example.org:80/": "https://docs.example.org:80/",
    "https://docs.example.org:/": "https://docs.example.org/",
    "http://localhost:8000/x": "http://localhost:8000/x",
    "https://docs.example.org./": "https://docs.example.org/",
    "https://docs.example.org.:8443/": "https://docs.example.org:8443/",
    "https://bücher.example/": "https://xn--bcher-kva.example/",
    "https://BÜCHER.example/": "https://xn--bcher-kva.example/",
    "https://xn--bcher-kva.example/": "https://xn--bcher-kva.example/",
    "https://例え。テスト/": "https://xn--r8jz45g.xn--zckzah/",
    "https://ｄｏｃｓ．example/": "https://docs.example/",
    "https://docs%2Eexample/": "https://docs.example/",
    "https://my_docs.example/": "https://my_docs.example/",
    "https://-docs-.example/": "https://-docs-.example/",
    "https://xyz.example/": "https://xyz.example/",
    "http://127.1/": "http://127.0.0.1/",
    "http://0x7f.0.0.1/": "http://127.0.0.1/",
    "http://2130706433/": "http://127.0.0.1/",
    "http://127.0.0.1./": "http://127.0.0.1/",
    "http://[0:0:0:0:0:0:0:1]:8000/": "http://[::1]:8000/",
    "http://[::FFFF:127.0.0.1]/": "http://[::ffff:7f00:1]/",
    f"https://{'a' * 63}.example/": f"https://{'a' * 63}.example/",
    # credentials and fragment
    "https://me:secret@docs.example.org/x": "https://docs.example.org/x",
    "https://me@docs.example.org/x": "https://docs.example.org/x",
    "https://@docs.example.org/x": "https://docs.example.org/x",
    "https://a@b@docs.example.org/x": "https://docs.example.org/x",
    "https://docs.example.org/@me:secret": "https://docs.example.org/@me:secret",
    "https://docs.example.org/x#y": "https://docs.example.org/x",
    "https://docs.example.org/x#": "https://docs.example.org/x",
    "https://docs.example.org#y?z": "https://docs.example.org/",
    # path
    "https://e.org/a/./b/../c": "https://e.org/a/c",
    "https://e.org/a/%2e/b/%2E%2e/c": "https://e.org/a/c",
    "https://e.org/../../a": "https://e.org/a",
    "https://e.org/a/..": "https://e.org/",
    "https://e.org/a/.": "https://e.org/a/",
    "https://e.org/.well-known/x": "https://e.org/.well-known/x",
    "https://e.org/...": "https://e.org/...",
    "https://e.org/a/.git/..": "https://e.org/a/",
    "https://e.org/a/.git/../b": "https://e.org/a/b",
    "https://e.org/a/.git/../../../b/.c": "https://e.org/b/.c",
    "https://e.org/a/..git/./.": "https://e.org/a/..git/",
    "https://e.org/a/.git/.?b=/../c": "https://e.org/a/.git/?b=/../c",
    "https://e.org//a///b//": "https://e.org//a///b//",
    "https://e.org/a//../b": "https://e.org/a/b",
    "https://e.org/index.html": "https://e.org/index.html",
    "https://e.org/a/": "https://e.org/a/",
    "https://e.org/a;v=1,2": "https://e.org/a;v=1,2",
    # escapes
    "https://e.org/%7euser/%41%2d%5F%2E%30": "https://e.org/~user/A-_.0",
    "https://e.org/a%2fb%3fc%23d": "https://e.org/a%2Fb%3Fc%23d",
    "https://e.org/a%c3%a9": "https://e.org/a%C3%A9",
    "https://e.org/aé": "https://e.org/a%C3%A9",
    "https://e.org/ae\u0301": "https://e.org/ae%CC%81",
    "https://e.org/%ff%FE": "https://e.org/%FF%FE",
    "https://e.org/a b": "https://e.org/a%20b",
    "https://e.org/a+b": "https://e.org/a+b",
    "https://e.org/it's(a)!*": "https://e.org/it's(a)!*",
    "https://e.org/it%27s%28a%29": "https://e.org/it%27s%28a%29",
    'https://e.org/[a]|b^c`d{e}<f>"g': "https://e.org/%5Ba%5D%7Cb%5Ec%60d%7Be%7D%3Cf%3E%22g",
    "https://e.org/100%": "https://e.org/100%25",
    "https://e.org/%zz%4": "https://e.org/%25zz%254",
    "https://e.org/%%41": "https://e.org/%25A",
    "https://e.org/%4%31": "https://e.org/%2541",
    "https://e.org/%2541": "https://e.org/%2541",
    "https://e.org/%252e%252e/a": "https://e.org/%252e%252e/a",
    "https://e.org/\ud800x": "https://e.org/%EF%BF%BDx",
    "https://e.org/%00": "https://e.org/%00",
    # query
    "https://e.org/?": "https://e.org/",
    "https://e.org?": "https://e.org/",
    "https://e.org/?#x": "https://e.org/",
    "https://e.org?b=2&a=1": "https://e.org/?b=2&a=1",
    "https://e.org/?a=1&a=1&A=1": "https://e.org/?a=1&a=1&A=1",
    "https://e.org/?a=1&&b": "https://e.org/?a=1&&b",
    "https://e.org/?&": "https://e.org/?&",
    "https://e.org/?a=b=c?d/e": "https://e.org/?a=b=c?d/e",
    "https://e.org/?a=../b": "https://e.org/?a=../b",
    "https://e.org/?q=%7e%c3%bc%2b+%20": "https://e.org/?q=~%C3%BC%2B+%20",
    "https://e.org/?q=ü'\"<>": "https://e.org/?q=%C3%BC%27%22%3C%3E",
    "https://e.org/?a[]={1}|2": "https://e.org/?a%5B%5D=%7B1%7D%7C2",
    "https://e.org/?q=100%&r=\\": "https://e.org/?q=100%25&r=%5C",
    "https://e.org/?a=1;b=2": "https://e.org/?a=1;b=2",
    # tracking
    "https://e.org/?utm_source=x": "https://e.org/",
    "https://e.org/?utm_source=x&utm_new=y#z": "https://e.org/",
    "https://e.org/?a=1&gclid=x&b=2": "https://e.org/?a=1&b=2",
    "https://e.org/?fbclid=x&a=1": "https://e.org/?a=1",
    "https://e.org/?a=1&mc_cid": "https://e.org/?a=1",
    "https://e.org/?UTM_Source=x&utm%5Fmedium=y&a": "https://e.org/?a",
    "https://e.org/?a=utm_source": "https://e.org/?a=utm_source",
    "https://e.org/?outm_source=1&utm=2&gclid2=3": "https://e.org/?outm_source=1&utm=2&gclid2=3",
    "https://e.org/?ref=x&source=y": "https://e.org/?ref=x&source=y",
    "https://e.org/?utm_source=x&": "https://e.org/",
    "https://e.org/gclid=1": "https://e.org/gclid=1",
    # blanks and controls
    "  \t\nhttps://e.org/a\x00 ": "https://e.org/a",
    "ht\ntps://e.\torg/a\r\nb": "https://e.org/ab",
    "https://e.org/a\x01b": "https://e.org/a%01b",
    "https://e.org/a\u00a0b\u200b": "https://e.org/a%C2%A0b%E2%80%8B",
    # files
    "file:///docs/a.md": "file:///docs/a.md",
    "FILE:///docs/a.md": "file:///docs/a.md",
    "file:/docs/a.md": "file:///docs/a.md",
    "file://localhost/docs/a.md": "file:///docs/a.md",
    "file:///docs/a.md#x": "file:///docs/a.md",
    "file:///docs/a.md?x=1": "file:///docs/a.md",
    "file:///docs/./b/../a.md": "file:///docs/a.md",
    "file:///docs/%2E%2e/a.md": "file:///a.md",
    "file:///docs/.git/../../a.md": "file:///a.md",
    "file:///docs/.git/.": "file:///docs/.git/",
    "file:///docs/a b": "file:///docs/a%20b",
    "file:///docs/%41%27%28%3a": "file:///docs/A'(:",
    "file:///docs/%3f%23%25%5c": "file:///docs/%3F%23%25%5C",
    "file:///docs/%252F": "file:///docs/%252F",
    "file:///docs/100%": "file:///docs/100%25",
    "file:///docs/\\a": "file:///docs//a",
    "file:///docs/%ff%fe": "file:///docs/%FF%FE",
    "file:///docs/é": "file:///docs/%C3%A9",
    "file:////server/share/a": "file:////server/share/a",
    "file:///C:/docs/a.md": "file:///C:/docs/a.md",
    "file:///": "file:///",
}

NO_URLS = [
    "",
    " ",
    "#x",
    "a/b.html",
    "/a",
    "//e.org/a",
    "e.org/a",
    "e.org:80/a",
    "mailto:me@e.org",
    "javascript:void(0)",
    "data:text/html,hello",
    "ftp://e.org/a",
    "ws://e.org/a",
    "blob:https://e.org/1",
    "about:blank",
    "view-source:https://e.org/",
    "http://",
    "http:///",
    "https://?a",
    "https://#a",
    "https://:80/",
    "https://me@/",
    "https://e.org:65536/",
    "https://e.org:port/",
    "https://e org/",
    "https://e.org\x00/",
    "https://<host>/",
    "https://{host}/a",
    "https://$HOST:8000/a",
    "https://*.e.org/",
    "https://e!x.org/",
    "https://./",
    "https://../",
    "https://e..org/",
    "https://.e.org/",
    "https://e.org../",
    f"https://{'a' * 64}.example/",
    f"https://{'.'.join(['a' * 49] * 6)}/",
    "https://\u00ad/",
    "http://256.0.0.1/",
    "http://1.2.3.4.5/",
    "http://e.0x1/",
    "http://[::1/",
    "http://[g::1]/",
    "http://[fe80::1%25eth0]/",
    "file://server/share/a",
    "file:///docs/a%2Fb",
    "file:///docs/..%2f..%2fetc",
    "file:///docs/a%00b",
    "file:///docs/a\x00b",
]

# What hostile and careless pages put into links, in pieces; the properties below put them together.
PIECES = st.sampled_from(
    [
        *("http:", "https:", "HTTPS:", "file:", "FILE:", "mailto:", "javascript:", "//", "///", "/", "/", "\\", "\\\\"),
        *("e.org", "e.org.", "E.org", "www.e.org", "bücher.example", "xn--bcher-kva.example", "xn--a", "127.1", "0x7f"),
        *("[::1]", "localhost", "{host}", "me:secret@", "@", ":", ":80", ":443", ":8000", ":0", "C:", "C|", "|"),
        *(
            ".",
            "..",
            "...",
            "./",
            "../",
            "/.",
            "/..",
            "/.a/",
            "%2e",
            "%2E%2e",
            "%2f",
            "%2F",
            "%5c",
            "%00",
            "%41",
            "%7E",
            "%7e",
        ),
        *(
            "%",
            "%4",
            "%%",
            "%zz",
            "%c3%a9",
            "%FF",
            "%25",
            "%252e",
            "%3f",
            "%23",
            "é",
            "ü",
            "\u200b",
            "\ud800",
            "。",
            "ß",
        ),
        *(
            "a",
            "b",
            "A",
            "index.html",
            "a.html",
            "~me",
            "[",
            "]",
            "^",
            "`",
            "{",
            "}",
            "'",
            '"',
            "<",
            ">",
            "+",
            ";",
            ",",
        ),
        *("?", "?", "&", "&", "=", "a=1", "b=2", "utm_source=x", "utm%5Fsource=x", "gclid", "GCLID=1", "fbclid=2"),
        *("#", "#", "#top", " ", "\t", "\n", "\r", "\x00", "\x01", "\x1f", "\x7f", "\x80"),
    ]
)
MESS = st.lists(PIECES, max_size=10).map("".join)
WEB = st.builds("{}//{}/{}".format, st.sampled_from(["http:", "https:"]), PIECES, MESS)
FILE = st.builds("file:///{}".format, MESS)
ANYTHING = st.one_of(MESS, WEB, FILE, st.text(max_size=40), st.builds("https://e.org/{}".format, st.text(max_size=20)))
PAGES = st.one_of(
    st.sampled_from(
        [
            "https://e.org/",
            "https://e.org/a/b/c.html",
            "https://e.org/a/b/d.html",
            "https://e.org/a/b/?x=/y",
            "https://e.org/a/b?utm_source=x#y",
            "http://e.org/a//b/",
            "https://www.e.org:8000/a/%C3%A9/b%2Fc",
            "file:///",
            "file:///C:",
            "file:///C:/a/b.md",
            "file:///docs/a%FF/b%3Fc.md",
            "file:////server/share/a.md",
            "mailto:me@e.org",
        ]
    ),
    WEB,
    FILE,
)
NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not {0, ord("/")} & set(name) and name not in (b".", b"..")
)
PATHS = st.lists(NAMES, max_size=6).map(lambda names: b"/" + b"/".join(names))


# ── canonical ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("url", "spelling"), SPELLINGS.items())
def test_a_url_has_one_spelling(url: str, spelling: str) -> None:
    assert canonicalize_url(url) == spelling
    assert canonicalize_url(spelling) == spelling


@pytest.mark.parametrize("url", NO_URLS)
def test_what_cannot_be_kept_has_no_spelling(url: str) -> None:
    assert canonicalize_url(url) is None


@pytest.mark.parametrize("name", sorted(TRACKING_PARAMETERS) + [f"{prefix}x" for prefix in TRACKING_PREFIXES])
def test_tracking_parameters_are_removed_and_the_others_keep_their_order(name: str) -> None:
    assert canonicalize_url(f"https://e.org/?z=1&{name}=x&{name}&a=2&{name.upper()}=%20") == "https://e.org/?z=1&a=2"


def test_an_escape_is_undone_only_for_characters_that_mean_nothing_else() -> None:
    for byte in range(256):
        spelling = chr(byte) if re.fullmatch(r"[A-Za-z0-9._~-]", chr(byte)) else f"%{byte:02X}"
        for escape in (f"%{byte:02X}", f"%{byte:02x}"):
            assert canonicalize_url(f"https://e.org/a{escape}b") == f"https://e.org/a{spelling}b"
            assert canonicalize_url(f"https://e.org/?a{escape}b") == f"https://e.org/?a{spelling}b"
            assert canonicalize_url(f"https://e.org/x?a{escape}b%7e") == f"https://e.org/x?a{spelling}b~"


def test_a_url_may_be_2048_characters_long_in_its_canonical_form() -> None:
    longest = "https://e.org/" + "a" * (MAX_URL_LENGTH - len("https://e.org/"))
    assert canonicalize_url(longest) == longest
    assert canonicalize_url(longest + "#" + "b" * 100) == longest
    assert canonicalize_url(longest + "?utm_source=" + "b" * 100) == longest
    assert canonicalize_url("https://e.org/" + "%61" * (MAX_URL_LENGTH - len("https://e.org/"))) == longest
    assert canonicalize_url(longest + "a") is None
    assert canonicalize_url("https://e.org/" + "é" * (MAX_URL_LENGTH // 6)) is None
    assert canonicalize_url("https://e.org/?" + "a" * MAX_URL_LENGTH) is None
    assert canonicalize_url("https://e.org/#" + "a" * 1_000_000) is None
    assert canonicalize_url("file:///" + "a" * MAX_URL_LENGTH) is None


@given(ANYTHING)
@example("https://e.org/%%41%")
@example("http://e.org.:80//..//%2e/?utm_x&&#")
@example("file:///C|/../%43%3a/..")
@settings(max_examples=100)
def test_a_canonical_url_is_its_own_canonical_form(url: str) -> None:
    once = canonicalize_url(url)
    if once is not None:
        assert canonicalize_url(once) == once


@given(ANYTHING)
@settings(max_examples=100)
def test_a_canonical_url_is_one_that_everything_downstream_can_take(url: str) -> None:
    spelling = canonicalize_url(url)
    if spelling is not None:
        assert re.fullmatch(
            r"(https?://[a-z0-9._:\[\]-]+|file://)/([A-Za-z0-9._~!$&'()*+,;=:@/?-]|%[0-9A-F]{2})*", spelling
        )
        assert not {".", ".."} & set(spelling.partition("?")[0].split("/"))
        assert len(spelling) <= MAX_URL_LENGTH
        assert can_ada.parse(spelling).href == spelling


@given(st.one_of(ANYTHING, st.from_regex(module._ALREADY_CANONICAL, fullmatch=True)))
@example("https://xn--a/")
@example("https://xn--a.e.org/")
@example("https://e.0x1/")
@example("https://1.2/")
@example("https://e.org/a/../b")
@settings(max_examples=100)
def test_the_shortcut_for_plain_urls_says_what_the_parser_says(url: str) -> None:
    if module._is_already_canonical(url):
        parsed = module._parse(url)
        assert parsed is not None
        assert module._serialize(parsed) == url


@given(WEB)
@settings(max_examples=100)
def test_the_shortcut_for_settled_urls_says_what_the_long_way_says(url: str) -> None:
    parsed = module._parse(url)
    if parsed and parsed.protocol in ("http:", "https:"):
        assert module._serialize(parsed) == module._serialize_web(parsed)


@given(ANYTHING)
@settings(max_examples=100)
def test_nothing_but_spelling_is_lost_from_a_web_address(url: str) -> None:
    """Unescaped, path and query equal those of a browser, without tracking parameters."""
    spelling = canonicalize_url(url)
    if spelling is None or spelling.startswith("file:") or re.search("utm|clid", spelling + url, re.IGNORECASE):
        return
    ours, theirs = can_ada.parse(spelling), module._parse(url)
    assert theirs
    assert ours.port == theirs.port
    assert ours.hostname == theirs.hostname.removesuffix(".")
    assert unquote_to_bytes(ours.pathname) == unquote_to_bytes(theirs.pathname)
    assert unquote_to_bytes(ours.search) == unquote_to_bytes(theirs.search)


# ── resolve ──────────────────────────────────────────────────────────────────────────────────────────────────────────

PAGE = "https://e.org/docs/guide/intro.html?v=2"

LINKS = {
    "next.html": "https://e.org/docs/guide/next.html",
    "./next.html": "https://e.org/docs/guide/next.html",
    "next.html#part": "https://e.org/docs/guide/next.html",
    "next.html #part": "https://e.org/docs/guide/next.html%20",
    " next.html ": "https://e.org/docs/guide/next.html",
    "ne\nxt.html": "https://e.org/docs/guide/next.html",
    "../": "https://e.org/docs/",
    "..": "https://e.org/docs/",
    "../x/.git/..": "https://e.org/docs/x/",
    "../api/x.html?y#z": "https://e.org/docs/api/x.html?y",
    "../../../../x": "https://e.org/x",
    ".": "https://e.org/docs/guide/",
    "/": "https://e.org/",
    "/x": "https://e.org/x",
    "\\x": "https://e.org/x",
    "a:b": None,
    "./a:b": "https://e.org/docs/guide/a:b",
    "//other.org/x": "https://other.org/x",
    "//other.org": "https://other.org/",
    "http://other.org/x#y": "http://other.org/x",
    "HTTP://OTHER.org": "http://other.org/",
    "https:next.html": "https://e.org/docs/guide/next.html",
    "https:/x": "https://e.org/x",
    "https:?v=3": "https://e.org/docs/guide/intro.html?v=3",
    "https:": "https://e.org/docs/guide/intro.html?v=2",
    "http:next.html": "http://next.html/",
    "?v=3": "https://e.org/docs/guide/intro.html?v=3",
    "?": "https://e.org/docs/guide/intro.html",
    "?utm_source=x": "https://e.org/docs/guide/intro.html",
    "#": PAGE,
    "#part": PAGE,
    " #part": PAGE,
    "\t#part": PAGE,
    "%23part": "https://e.org/docs/guide/%23part",
    "%2e%2e/x": "https://e.org/docs/x",
    "": None,
    " ": None,
    "\n\t": None,
    "mailto:me@e.org": None,
    "javascript:void(0)": None,
    "JavaScript:void('#')": None,
    "java\nscript:void(0)": None,
    "data:text/html,<a>": None,
    "tel:123": None,
    "https://": None,
    "//": None,
    "http://{host}/x": None,
    "file:///etc/passwd": None,
    "file:intro.html": None,
    "x" * MAX_URL_LENGTH: None,
}


@pytest.mark.parametrize(("href", "url"), LINKS.items())
def test_a_link_leads_where_a_browser_would_go(href: str, url: str | None) -> None:
    assert resolve_link(href, PAGE) == url
    assert resolve_links([href], PAGE) == ([] if url is None else [url])


@pytest.mark.parametrize(
    ("href", "base", "url"),
    [
        ("x", "https://e.org", "https://e.org/x"),
        ("x", "https://me:secret@e.org:443/a/", "https://e.org/a/x"),
        ("x", "https://e.org/a/#b/c", "https://e.org/a/x"),
        ("x", "https://e.org/a/b?c=/d/", "https://e.org/a/x"),
        ("#x", "https://e.org/a?utm_source=y&b", "https://e.org/a?b"),
        ("x", "https://e.org//", "https://e.org//x"),
        ("..", "https://e.org/a/.git/b/c", "https://e.org/a/.git/"),
        ("../..", "https://e.org/a/.git/b/c", "https://e.org/a/"),
        ("x", "not a url", None),
        ("https://e.org/", "not a url", None),
        ("https://e.org/", "mailto:me@e.org", None),
        ("b.md", "file:///docs/a.md", "file:///docs/b.md"),
        ("b.md?x#y", "file:///docs/a.md", "file:///docs/b.md"),
        ("#y", "file:///docs/a%3F.md", "file:///docs/a%3F.md"),
        ("../b c.md", "file:///docs/x/%FF.md", "file:///docs/b%20c.md"),
        ("b%20c.md", "file:///docs/%FF/a.md", "file:///docs/%FF/b%20c.md"),
        ("../../../b.md", "file:///docs/a.md", "file:///b.md"),
        (".git/../../b.md", "file:///docs/x/a.md", "file:///docs/b.md"),
        ("..%2fb.md", "file:///docs/a.md", None),
        ("//server/b.md", "file:///docs/a.md", None),
        ("https://e.org/x", "file:///docs/a.md", "https://e.org/x"),
        ("/b.md", "file:///C:/docs/a.md", "file:///C:/b.md"),
        ("b.md", "file:///C:", "file:///C:/b.md"),
    ],
)
def test_a_link_is_read_from_its_page(href: str, base: str, url: str | None) -> None:
    assert resolve_link(href, base) == url
    assert resolve_links([href], base) == ([] if url is None else [url])


def test_all_links_of_a_page_lead_to_each_url_once_in_order() -> None:
    hrefs = ["b.html", "#top", "a.html#x", "a.html#y", "", "mailto:me@e.org", "./b.html", "?v=2", "a.html", "../"]
    assert resolve_links(hrefs, PAGE) == [
        "https://e.org/docs/guide/b.html",
        PAGE,
        "https://e.org/docs/guide/a.html",
        "https://e.org/docs/",
    ]
    assert resolve_links(iter(hrefs), PAGE) == resolve_links(hrefs, PAGE)
    assert resolve_links([], PAGE) == []


def test_pages_of_one_folder_do_not_answer_for_each_other() -> None:
    hrefs = ["#x", "?y", " #x", "https:", "https:?y", "\n?y", "z"]
    for page in ("https://e.org/a/1", "https://e.org/a/2?q", "https://e.org/a/", "https://e.org/a/1"):
        assert resolve_links(hrefs, page) == [
            canonicalize_url(page),
            f"{page.partition('?')[0]}?y",
            "https://e.org/a/z",
        ]


def test_what_is_remembered_of_a_folder_stays_small() -> None:
    many = [f"{number}.html" for number in range(3 * module._LINK_CACHE_SIZE)]
    assert resolve_links(many, "https://e.org/many/") == [f"https://e.org/many/{href}" for href in many]
    assert len(module._folder_link_cache("https://e.org/many/")) <= module._LINK_CACHE_SIZE


@given(st.lists(st.one_of(MESS, WEB, FILE, st.text(max_size=12)), max_size=12), PAGES)
@example(["a #x", "a ", "a", " ", "#", " #"], "https://e.org/a/b")
@example(["b", "..", "/b", "//b", "file:b", "file:"], "file:///C:")
@settings(max_examples=100)
def test_all_links_together_lead_where_each_leads_alone(hrefs: list[str], page: str) -> None:
    alone = [url for href in hrefs if (url := resolve_link(href, page)) is not None]
    assert resolve_links(hrefs, page) == list(dict.fromkeys(alone))


@given(MESS, PAGES)
@settings(max_examples=100)
def test_a_link_leads_to_the_same_from_every_spelling_of_its_page(href: str, page: str) -> None:
    spelling = canonicalize_url(page)
    url = resolve_link(href, page)
    if spelling is None:
        assert url is None
    else:
        assert url == resolve_link(href, spelling)
        assert url is None or url == canonicalize_url(url)


@given(st.one_of(MESS, WEB, FILE), WEB)
def test_no_web_page_leads_to_a_local_file(href: str, page: str) -> None:
    assert not (resolve_link(href, page) or "").startswith("file:")


# ── fragments ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "anchor"),
    [
        ("https://e.org/a", ""),
        ("https://e.org/a#", ""),
        ("https://e.org/a#b", "b"),
        ("#b", "b"),
        ("a.html#b%20c", "b c"),
        ("#%C3%A9", "é"),
        ("#é", "é"),
        ("#a#b", "a#b"),
        (" a.html#b\n ", "b"),
        ("#a\nb", "ab"),
        ("#100%", "100%"),
        ("#%FF", "\ufffd"),
        ("?a#b?c/d", "b?c/d"),
    ],
)
def test_a_fragment_is_read_as_the_anchor_it_names(url: str, anchor: str) -> None:
    assert get_fragment(url) == anchor


@pytest.mark.parametrize(
    ("url", "anchor", "whole"),
    [
        ("https://e.org/a", "b", "https://e.org/a#b"),
        ("https://e.org/a", "", "https://e.org/a"),
        ("https://e.org/a#old", "new", "https://e.org/a#new"),
        ("https://e.org/a#old", "", "https://e.org/a"),
        ("https://e.org/a?b", "std::vec/c?d", "https://e.org/a?b#std::vec/c?d"),
        ("https://e.org/a", "b c#d%é<", "https://e.org/a#b%20c%23d%25%C3%A9%3C"),
        ("https://e.org/a", "\ud800", "https://e.org/a#%EF%BF%BD"),
    ],
)
def test_an_anchor_is_added_as_a_fragment(url: str, anchor: str, whole: str) -> None:
    assert with_fragment(url, anchor) == whole


@given(st.text())
def test_any_anchor_comes_back_from_its_fragment(anchor: str) -> None:
    whole = with_fragment("https://e.org/a", anchor)
    assert get_fragment(whole) == anchor
    assert canonicalize_url(whole) == "https://e.org/a"
    assert can_ada.parse(whole).href == whole


# ── routes ───────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("url", "spelled"),
    [
        ("https://e.org/#/guide", "https://e.org/#/guide"),
        ("HTTPS://E.org:443#!/guide", "https://e.org/#!/guide"),
        ("https://e.org/#/", "https://e.org/"),
        ("https://e.org/#!/", "https://e.org/"),
        ("https://e.org/#guide", "https://e.org/"),
        ("https://e.org/#/guide?id=install", "https://e.org/#/guide"),  # an anchor, as docsify writes it
        ("https://e.org/#/guide?tab=a&id=install", "https://e.org/#/guide?tab=a"),
        ("https://e.org/#/item?id=12", "https://e.org/#/item?id=12"),  # no anchor begins with a digit
        ("https://e.org/#/guide#install", "https://e.org/#/guide"),
        ("https://e.org/#/%7egrüße nach", "https://e.org/#/~gr%C3%BC%C3%9Fe%20nach"),
        (" https://e.org/#/a\tb ", "https://e.org/#/ab"),
        ("file:///srv/index.html#/guide", "file:///srv/index.html"),
        ("https://e.org/#/" + MAX_URL_LENGTH * "x", "https://e.org/"),
        ("mailto:a@e.org#/guide", None),
    ],
)
def test_a_route_has_one_spelling(url: str, spelled: str | None) -> None:
    assert canonicalize_route_url(url) == spelled
    assert canonicalize_url(url) == (spelled and spelled.partition("#")[0]), "a route is only kept there"


@given(st.text(), st.text().filter(lambda anchor: not anchor[:1].isdigit()))
def test_the_spelling_of_a_route_is_its_own_spelling_with_any_anchor(text: str, anchor: str) -> None:
    route = canonicalize_route_url(f"https://e.org/#/{text}")
    assert route is not None
    assert canonicalize_route_url(route) == route
    assert route.isascii()
    if "#" in route:
        assert canonicalize_route_url(with_anchor(route, anchor)) == route
        assert get_anchor(with_anchor(route, anchor)) == anchor


def test_the_links_of_a_page_are_routes_only_where_they_may_be() -> None:
    hrefs = ["#/a", "#/a?id=b", "/#/c", "d#e", "#f", "mailto:g"]
    page = "https://e.org/#/x"
    assert resolve_links(hrefs, page) == ["https://e.org/", "https://e.org/d"]
    assert resolve_links(hrefs, page, keep_routes=True) == [
        *("https://e.org/#/a", "https://e.org/#/c", "https://e.org/d", "https://e.org/")
    ]


# ── files ────────────────────────────────────────────────────────────────────────────────────────────────────────────

posix = pytest.mark.skipif(os.name == "nt", reason="names are bytes only on POSIX")


@posix
@pytest.mark.parametrize(
    ("path", "url"),
    [
        ("/", "file:///"),
        ("/docs/a.md", "file:///docs/a.md"),
        ("/docs/", "file:///docs/"),
        ("/docs/a b.md", "file:///docs/a%20b.md"),
        ("/docs/é", "file:///docs/%C3%A9"),
        ("/docs/e\u0301", "file:///docs/e%CC%81"),
        ("/docs/a%2Fb", "file:///docs/a%252Fb"),
        ("/docs/%2e%2e/%", "file:///docs/%252e%252e/%25"),
        ("/docs/a\\b", "file:///docs/a%5Cb"),
        ("/docs/a?b#c", "file:///docs/a%3Fb%23c"),
        ("/docs/C|/x", "file:///docs/C%7C/x"),
        ("/C|/x", "file:///C%7C/x"),
        ("/C:/x", "file:///C:/x"),
        ("/docs/\n\t ", "file:///docs/%0A%09%20"),
        ("/docs/...", "file:///docs/..."),
        ("/docs/..a/.b", "file:///docs/..a/.b"),
        ("/docs/(a)+b=c&d;e,f'g!h*i@j$k:l~m", "file:///docs/(a)+b=c&d;e,f'g!h*i@j$k:l~m"),
        (b"/docs/\xff\xfe", "file:///docs/%FF%FE"),
        ("/docs/\udcff", "file:///docs/%FF"),
        (PurePosixPath("/docs/a.md"), "file:///docs/a.md"),
        ("//server/share", "file:////server/share"),
    ],
)
def test_a_file_is_known_by_a_url(path: str | bytes | PurePosixPath, url: str) -> None:
    assert file_url(path) == url
    assert os.fsencode(file_path(url)) == os.fsencode(path)
    assert canonicalize_url(url) == url


@posix
@given(PATHS)
@example(b"/%2F/%/\\/?/#/%00/C|/C:/..x/ /\xff\n")
@example(b"/C:/C|")
@settings(max_examples=100)
def test_any_file_name_survives_the_way_to_a_url_and_back(path: bytes) -> None:
    url = file_url(path)
    assert os.fsencode(file_path(url)) == path
    assert canonicalize_url(url) == url
    assert canonicalize_url(with_fragment(url, "top")) == url


@posix
@given(PATHS, PATHS)
def test_two_files_never_share_a_url(one: bytes, other: bytes) -> None:
    assert (file_url(one) == file_url(other)) == (one == other)


@posix
def test_a_file_with_a_wild_name_is_found_again_on_disk(tmp_path: Path) -> None:
    name = os.fsencode(tmp_path) + b"/%2F \\ ?#%\xc3\xa9.md"
    Path(os.fsdecode(name)).write_text("here")
    spelling = canonicalize_url(file_url(name))
    assert spelling is not None
    assert Path(file_path(spelling)).read_text() == "here"


@pytest.mark.parametrize("path", ["", "docs/a.md", "./a", "../a", "/docs/../a", "/docs/./a", "/docs/..", "/a\0b"])
def test_a_path_that_is_not_absolute_and_plain_has_no_url(path: str) -> None:
    with pytest.raises(ValueError, match="Resolve it first"):
        file_url(path)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "/docs/a.md",
        "https://e.org/a",
        "file://",
        "file:/docs/a.md",
        "file://server/a.md",
        "file:///docs/../a.md",
        "file:///docs/%2e%2e/a.md",
        "file:///docs/..%2Fa.md",
        "file:///docs/a%00b",
        "file:///docs/a.md?x",
        "file:///docs/a.md#x",
        "file:///docs/%c3%a9",
        "file:///docs/é",
        "file:///docs/\ud800",
    ],
)
def test_only_a_canonical_file_url_has_a_path(url: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  the surrogate's comes from the codec
        file_path(url)


@pytest.mark.parametrize(
    ("path", "url", "back"),
    [
        ("C:\\docs\\a b.md", "file:///C:/docs/a%20b.md", "C:/docs/a b.md"),
        ("c:/docs", "file:///c:/docs", "c:/docs"),
        ("\\\\server\\share\\a.md", "file:////server/share/a.md", "//server/share/a.md"),
    ],
)
def test_a_windows_path_is_known_by_a_url(monkeypatch: pytest.MonkeyPatch, path: str, url: str, back: str) -> None:
    monkeypatch.setattr(module, "_WINDOWS", True)
    assert file_url(path) == url
    assert file_path(url) == back
    assert canonicalize_url(url) == url
