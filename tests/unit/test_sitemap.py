"""Sitemaps and llms.txt: only the URLs of the site are listed."""

import asyncio
import gzip
import time
from contextlib import suppress
from datetime import UTC, datetime
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.model.frontier import ListedUrl, ListingFailure
from kept.model.source import Access, SourceSettings
from kept.origins.web import make_web_origin, sitemap
from kept.origins.web.llms import parse_links
from kept.origins.web.rate_limiter import RateLimiters
from kept.origins.web.sitemap import MAX_URLS, ChildSitemap, InvalidSitemap, SitemapPage, _parse_datetime, parse
from tests.sites import hostile as server
from tests.sites.hostile import HostileSite, hostile, robots

NAMESPACE = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'


def urlset(*urls: str, attributes: str = NAMESPACE) -> bytes:
    listed = "".join(f"<url><loc>{url}</loc></url>" for url in urls)
    return f"<?xml version='1.0'?><urlset {attributes}>{listed}</urlset>".encode()


def index(*urls: str) -> bytes:
    return f"<sitemapindex>{''.join(f'<sitemap><loc>{url}</loc></sitemap>' for url in urls)}</sitemapindex>".encode()


# ── One file ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_pages_with_their_dates() -> None:
    body = f"""<?xml version="1.0" encoding="UTF-8"?>
      <urlset {NAMESPACE} xmlns:i="http://www.google.com/schemas/sitemap-image/1.1">
        <url><loc> https://docs.test/a?x=1&amp;y=2 </loc><lastmod>2026-11-01</lastmod><priority>0.5</priority>
             <i:image><i:loc>https://docs.test/picture</i:loc></i:image></url>
        <url><lastmod>nonsense</lastmod><loc><![CDATA[https://DOCS.test/b#top]]></loc></url>
        <url><loc>mailto:x</loc></url><url><loc/></url><url/>
      </urlset>""".encode()
    assert list(parse(body)) == [
        SitemapPage("https://docs.test/a?x=1&y=2", datetime(2026, 11, 1, tzinfo=UTC)),
        SitemapPage("https://docs.test/b"),
    ]


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026", datetime(2026, 1, 1, tzinfo=UTC)),
        ("2026-11", datetime(2026, 11, 1, tzinfo=UTC)),
        ("2026-11-15", datetime(2026, 11, 15, tzinfo=UTC)),
        ("2026-11-15T10:00:00Z", datetime(2026, 11, 15, 10, tzinfo=UTC)),
        ("2026-11-15T10:00+02:00", datetime(2026, 11, 15, 8, tzinfo=UTC)),
        ("2026-11-15T10:00:00.123456Z", datetime(2026, 11, 15, 10, 0, 0, 123456, tzinfo=UTC)),
        ("yesterday", None),
        ("2026-13-01", None),
        ("", None),
    ],
)
def test_dates_as_the_standard_writes_them(text: str, moment: datetime | None) -> None:
    assert _parse_datetime(text) == moment


def test_indexes_gzip_other_encodings_and_plain_lists() -> None:
    assert list(parse(index("https://docs.test/s.xml"))) == [ChildSitemap("https://docs.test/s.xml")]
    assert list(parse(gzip.compress(urlset("https://docs.test/a")))) == [SitemapPage("https://docs.test/a")]
    assert list(parse(urlset("https://docs.test/a", attributes=""))) == [SitemapPage("https://docs.test/a")]
    assert list(parse(b"\xef\xbb\xbfhttps://docs.test/a\r\n\r\nhttps://docs.test/b\n")) == [
        SitemapPage("https://docs.test/a"),
        SitemapPage("https://docs.test/b"),
    ]
    utf16 = "<?xml version='1.0' encoding='utf-16'?><urlset><url><loc>https://docs.test/a</loc></url></urlset>"
    assert list(parse(utf16.encode("utf-16"))) == [SitemapPage("https://docs.test/a")]


LAUGHS = (
    b'<?xml version="1.0"?><!DOCTYPE l [<!ENTITY a "ha">'
    + b"".join(b'<!ENTITY %c "%s">' % (letter, b"&%c;" % (letter - 1) * 10) for letter in range(ord("b"), ord("k")))
    + b"]><urlset><url><loc>&j;</loc></url></urlset>"
)


@pytest.mark.parametrize(
    "body",
    [
        LAUGHS,
        b'<!DOCTYPE x SYSTEM "http://10.0.0.1/x.dtd"><urlset/>',
        b'<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><urlset><url><loc>&a;</loc></url></urlset>',
        b"<!doctype html><html></html>",
        b"<rss></rss>",
        b"<urlset><url><loc>https://docs.test/a</loc>",
        b"<urlset>&undefined;</urlset>",
        b"<urlset>" + b"<a>" * 200_000,
        b"just text",
        b"<",
        b"\x1f\x8b nonsense",
        gzip.compress(urlset("https://docs.test/a"))[:-20],
        server.gzip_bomb(),
    ],
)
def test_a_file_that_is_not_a_sitemap_is_refused_early(body: bytes) -> None:
    began = time.monotonic()
    with pytest.raises(InvalidSitemap):
        list(parse(body))
    assert time.monotonic() - began < 2


def test_entries_before_the_damage_are_used() -> None:
    for damage in (b"<oops", b" " * 70_000 + b"<oops"):
        found = parse(urlset("https://docs.test/a", "https://docs.test/b").removesuffix(b"</urlset>") + damage)
        assert next(found) == SitemapPage("https://docs.test/a")
        assert next(found) == SitemapPage("https://docs.test/b")
        with pytest.raises(InvalidSitemap):
            next(found)


def test_the_number_of_entries_is_limited() -> None:
    many = urlset(*[f"https://docs.test/{number}" for number in range(MAX_URLS + 10)])
    found = parse(many)
    assert len(list(islice(found, MAX_URLS))) == MAX_URLS
    with pytest.raises(InvalidSitemap, match="names more than 50,000 URLs"):
        next(found)


def test_a_large_file_without_entries_is_not_a_sitemap() -> None:
    began = time.process_time()
    for body in (
        b"<urlset><url>" + b"<x/>" * 2_000_000,
        b"<urlset><!--" + b"x" * (20 << 20),
        gzip.compress(b"x" * 40_000, 0) * 500,
        b"https://docs.test/a" + b"\n " * (2 << 20),
    ):
        with suppress(InvalidSitemap):
            assert len(list(parse(body))) == 1
    assert time.process_time() - began < 2.5, "seconds"


@given(st.binary(max_size=200))
def test_no_bytes_break_it(body: bytes) -> None:
    for start in (b"", b"<urlset>", b"\x1f\x8b\x08"):
        with suppress(InvalidSitemap):
            assert all(isinstance(one, SitemapPage | ChildSitemap) for one in parse(start + body))


# ── A whole site ─────────────────────────────────────────────────────────────────────────────────────────────────────


def listed(
    files: dict[str, bytes | str], *, robots_txt: str = "", root: str = "/", known: tuple[str, ...] = ()
) -> tuple[list[str], list[str]]:
    """Return the listed paths (without the root), and the lists that could not be read. A string is a status."""

    async def scenario() -> tuple[list[str], list[str]]:
        async with hostile() as site:
            site.robots = robots(robots_txt.replace("SITE", site.origin))
            _put(site, files)
            settings = SourceSettings(access=Access(allowed=(f"127.0.0.1:{site.port}",)))
            origin = make_web_origin(
                site.url(root), settings, rate_limiters=RateLimiters(), known_sitemaps=frozenset(map(site.url, known))
            )
            found = [one async for one in origin.list()]
            await origin.close()
            assert isinstance(found[0], ListedUrl)
            assert found[0].url == site.url(root)
            paths = [one.url.removeprefix(site.origin) for one in found[1:] if isinstance(one, ListedUrl)]
            missed = [one.url.removeprefix(site.origin) for one in found if isinstance(one, ListingFailure)]
            return paths, missed

    before = dict(server.PATHS)
    try:
        return asyncio.run(scenario())
    finally:
        server.PATHS.clear()
        server.PATHS.update(before)


def _put(site: HostileSite, files: dict[str, bytes | str]) -> None:
    for path, content in files.items():
        if isinstance(content, str):
            server.answers(path, content)
        else:
            body = content.replace(b"SITE", site.origin.encode())
            kind = "text/plain" if path.endswith(".txt") else "application/xml"
            server.answers(path, "200 OK", body=gzip.compress(body) if path.endswith(".gz") else body, type=kind)


def test_the_sitemap_in_robots_txt_and_the_one_in_the_usual_place() -> None:
    files: dict[str, bytes | str] = {
        "/named.xml": urlset("SITE/a", "https://elsewhere.test/x", "SITE/picture.png"),
        "/sitemap.xml": urlset("SITE/b"),
    }
    assert listed(files, robots_txt="Sitemap: SITE/named.xml") == (["/a", "/b"], [])


def test_an_index_of_gzipped_sitemaps() -> None:
    files: dict[str, bytes | str] = {
        "/sitemap.xml": index("SITE/1.xml.gz", "SITE/2.xml", "SITE/sitemap.xml", "SITE/lost.xml"),
        "/1.xml.gz": urlset("SITE/a", "SITE/b"),
        "/2.xml": index("SITE/3.xml"),
        "/3.xml": urlset("SITE/c"),
    }
    assert listed(files) == (["/a", "/b", "/c"], ["/lost.xml"]), "an index says that it is there"


def test_an_incomplete_listing_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sitemap, "MAX_FILES", 3)
    monkeypatch.setattr(sitemap, "MAX_URLS", 4)
    assert listed({"/sitemap.xml": urlset(*(f"SITE/{name}" for name in "abcde"))}) == (
        ["/a", "/b", "/c", "/d"],
        ["/sitemap.xml"],
    )
    assert listed({"/sitemap.xml": urlset("SITE/a")[:-4]}) == (["/a"], ["/sitemap.xml"])
    files: dict[str, bytes | str] = {f"/{number}.xml": index(f"SITE/{number + 1}.xml") for number in range(1, 5)}
    assert listed(files, known=("/1.xml",))[1] == ["/3.xml"]
    files = {"/sitemap.xml": index("SITE/1.xml", "SITE/2.xml", "SITE/3.xml"), "/1.xml": urlset(), "/2.xml": urlset()}
    assert listed(files)[1] == ["/3.xml"]


def test_a_missing_guess_is_not_a_failure_and_a_missing_declared_sitemap_is() -> None:
    assert listed({}) == ([], [])
    assert listed({"/sitemap.xml": b"<html>not found</html>"}) == ([], [])
    assert listed({"/sitemap.xml": "403 Forbidden"}) == ([], [])
    assert listed({"/sitemap.xml": "500 Oops"}) == ([], ["/sitemap.xml"])
    assert listed({}, robots_txt="Sitemap: /s.xml") == ([], ["/s.xml"])
    assert listed({"/s.xml": b"<html/>"}, robots_txt="Sitemap: /s.xml") == ([], ["/s.xml"])
    assert listed({}, known=("/worked-before.xml",)) == ([], ["/worked-before.xml"])


def test_only_pages_in_scope_are_listed_and_the_folder_has_a_sitemap_too() -> None:
    files: dict[str, bytes | str] = {
        "/sitemap.xml": urlset("SITE/docs/a", "SITE/blog/a"),
        "/docs/sitemap.xml": urlset("SITE/docs/b"),
        "/docs/llms.txt": b"# Docs\n- [C](c.md): see\n- [Blog](/blog/)\n",
    }
    assert listed(files, root="/docs/") == (["/docs/b", "/docs/a", "/docs/c.md"], [])


def test_a_forbidden_sitemap_is_not_requested() -> None:
    files: dict[str, bytes | str] = {"/sitemap.xml": urlset("SITE/a"), "/llms.txt": b"[b](/b)"}
    assert listed(files, robots_txt="User-agent: *\nDisallow: /sitemap\nDisallow: /llms") == ([], [])


def test_llms_full_is_requested_only_without_llms() -> None:
    assert listed({"/llms-full.txt": b"[b](/b)"}) == (["/b"], [])
    assert listed({"/llms.txt": b"[a](/a)", "/llms-full.txt": b"[b](/b)"}) == (["/a"], [])


# ── llms.txt ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def test_links_of_an_llms_txt() -> None:
    text = (
        "# X\n> s\n- [A](/docs/a.md): text\n- [B](<b c.md> 't')\n[C](https://x.test/c_(d).html \"title\")\n"
        "https://x.test/bare\n* https://x.test/listed, and\nsee <https://x.test/angle> [mail](mailto:a@b)"
    )
    assert parse_links(text, "https://x.test/llms.txt") == [
        "https://x.test/docs/a.md", "https://x.test/b%20c.md", "https://x.test/c_(d).html", "https://x.test/bare",
        "https://x.test/listed,", "https://x.test/angle",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "text", ["](" + "a" * 10**6, "](a" * 10**5, "](<a" * 10**5, " " * 10**6, "](a(b)c(d)e(" * 10**5]
)
def test_no_text_makes_it_slow(text: str) -> None:
    began = time.monotonic()
    parse_links(text, "https://x.test/llms.txt")
    assert time.monotonic() - began < 2
