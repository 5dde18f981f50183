"""The rules of robots.txt, also when it cannot be read (RFC 9309)."""

import asyncio
from datetime import timedelta

import pytest

from kept.model.frontier import Fetched, FrontierEntry, ListingFailure, Refused, Unreachable
from kept.model.source import Access, SourceSettings
from kept.origins.web import WebOrigin, make_web_origin
from kept.origins.web.http.client import HttpClient
from kept.origins.web.http.messages import FailedRequest, FailureKind, HttpResponse
from kept.origins.web.rate_limiter import RateLimiters
from kept.origins.web.robots import (
    MAX_BYTES,
    RobotsCache,
    RobotsRules,
    RobotsUnreachable,
    decode_robots_txt,
    parse_product_token,
    rules_from_response,
)
from tests.sites.hostile import HostileSite, hostile, robots

FORBIDS = "User-agent: *\nDisallow: /good"


def origin_of(site: HostileSite, **access: object) -> WebOrigin:
    settings = SourceSettings(access=Access(allowed=(f"127.0.0.1:{site.port}",), **access))  # type: ignore[arg-type]
    return make_web_origin(site.url("/"), settings, rate_limiters=RateLimiters())


def visited(answer: bytes | None, path: str = "/good", **access: object) -> object:
    async def scenario() -> object:
        async with hostile() as site:
            site.robots = answer
            origin = origin_of(site, **access)
            entry = FrontierEntry(url=site.url(path), depth=0, attempts=0, reached=True, base_version=None)
            try:
                return await origin.visit(entry, conditional=False)
            finally:
                await origin.close()

    return asyncio.run(scenario())


# ── The matrix ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", ["200 OK", "203 Fine", "206 Partial Content"])
def test_the_rules_of_a_successful_response_apply(status: str) -> None:
    assert visited(robots(FORBIDS, status=status)) == Refused(reason="robots.txt forbids it")
    assert isinstance(visited(robots(FORBIDS, status=status), "/strong"), Fetched)


@pytest.mark.parametrize("status", [400, 401, 402, 403, 404, 405, 410, 418, 451])
def test_a_client_error_allows_everything(status: int) -> None:
    assert isinstance(visited(robots(FORBIDS, status=f"{status} No")), Fetched)


@pytest.mark.parametrize("status", [429, 500, 502, 503, 504, 599, 304])
def test_a_server_error_forbids_everything_for_now_and_is_a_failure(status: int) -> None:
    found = visited(robots(FORBIDS, status=f"{status} No"))
    assert isinstance(found, Unreachable), "failed, not skipped: nothing may be deleted for it"
    assert found.reason.startswith("robots.txt unreachable")
    assert found.is_retryable
    assert found.retry_after is not None
    assert timedelta(seconds=1) < found.retry_after <= timedelta(seconds=2)


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nshort"])
def test_no_response_forbids_everything_for_now(answer: bytes) -> None:
    found = visited(answer, first_byte_seconds=0.2, whole_seconds=0.3)
    assert isinstance(found, Unreachable)
    assert found.reason.startswith("robots.txt unreachable")


def test_rules_that_are_slow_to_match_forbid_everything_for_now() -> None:
    endless = "".join(f"Disallow: /*{number}*z$\n" for number in range(4_000))
    found = visited(robots(f"User-agent: *\n{endless}"))
    assert isinstance(found, Unreachable)
    assert found.reason == "robots.txt unreachable (more than 10,000 wildcards)"
    assert isinstance(visited(robots(f"User-agent: *\n{endless[: len(endless) // 2]}")), Fetched)


def test_redirects_are_followed_five_times() -> None:
    def to(path: str) -> bytes:
        return robots(status="302 Found", headers=f"Location: {path}\r\n")

    assert isinstance(visited(to("/steps/26")), Fetched), "ends at 404"
    assert isinstance(visited(to("/steps/20")), Fetched), "too many: as if there were none"
    assert isinstance(visited(to("/500")), Unreachable)
    assert isinstance(visited(to("http://10.0.0.1/robots.txt")), Unreachable)


def test_a_source_that_ignores_robots_txt_does_not_request_it() -> None:
    assert isinstance(visited(robots(FORBIDS), ignore_robots=True), Fetched)
    assert isinstance(visited(robots(status="503 No"), ignore_robots=True), Fetched)


def test_without_robots_txt_the_seeds_are_unknown() -> None:
    async def scenario() -> None:
        async with hostile() as site:
            site.robots = robots(status="503 No")
            origin = origin_of(site)
            listed = [one async for one in origin.list()]
            assert [type(one) for one in listed[1:]] == [ListingFailure]
            assert {request.path for request in site.requests} == {"/robots.txt"}
            await origin.close()

    asyncio.run(scenario())


# ── Reading ──────────────────────────────────────────────────────────────────────────────────────────────────────────


def allows(text: str, path: str, agent: str = "Kept") -> bool:
    return RobotsRules(text, agent).allows(f"https://docs.test{path}")


def test_the_most_specific_rule_wins() -> None:
    text = "User-agent: *\nDisallow: /a\nAllow: /a/b\nDisallow: /*.cgi$\nDisallow: /p?x="
    assert not allows(text, "/a")
    assert allows(text, "/a/b/c")
    assert not allows(text, "/x/y.cgi")
    assert allows(text, "/x/y.cgi?z")
    assert not allows(text, "/p?x=1")
    assert allows(text, "/p?y=1")
    assert allows(text, "/robots.txt")
    assert allows("", "/a")
    assert not allows("User-agent: *\nDisallaw: /a", "/a")


def test_the_group_for_our_name_precedes_the_general_one() -> None:
    text = "User-agent: kept\nDisallow: /k\n\nUser-agent: *\nDisallow: /"
    assert allows(text, "/a")
    assert not allows(text, "/k")
    assert not allows(text, "/a", "Other")


def test_our_name_is_the_first_word_of_the_user_agent() -> None:
    assert parse_product_token("Kept/0.1 (+https://example.org)") == "Kept"
    assert parse_product_token("my-docs_bot") == "my-docs_bot"
    assert parse_product_token("Mozilla/5.0 (compatible; Mine/1.0)") == "Mozilla/5.0 (compatible; Mine/1.0)"


def test_byte_order_marks_and_charsets() -> None:
    for encoding in ("utf-8", "utf-8-sig", "utf-16"):
        assert "/größe" in decode_robots_txt("User-agent: *\nDisallow: /größe".encode(encoding))
    assert not allows(decode_robots_txt(b"\xef\xbb\xbfUser-agent: *\nDisallow: /a"), "/a")
    assert not allows(decode_robots_txt(b"User-agent: *\nDisallow: /\xff\nDisallow: /b"), "/b")
    assert not allows("User-agent: *\r\rDisallow: /b", "/b")


def test_only_the_first_half_megabyte_counts_without_a_partial_line() -> None:
    padding = b"# padding, and more of it\n" * 30_000
    whole = b"User-agent: *\nDisallow: /early\n" + padding + b"Disallow: /late"
    assert not allows(decode_robots_txt(whole[:MAX_BYTES]), "/early")
    assert allows(decode_robots_txt(whole[:MAX_BYTES]), "/late")
    half = (b"User-agent: *\n" + padding)[: MAX_BYTES - 11] + b"\nDisallow: /"
    assert len(half) > MAX_BYTES
    assert allows(decode_robots_txt(half[:MAX_BYTES]), "/page")

    found = visited(robots(whole.decode()))
    assert isinstance(found, Fetched)


def test_delays_and_sitemaps() -> None:
    rules = RobotsRules(
        "Sitemap: /s.xml\nUser-agent: *\nCrawl-delay: 1.5\nSitemap: https://x.test/s.xml\nSitemap: /s.xml", "Kept"
    )
    assert rules.crawl_delay == 1.5
    assert rules.sitemaps == ("/s.xml", "https://x.test/s.xml")
    assert RobotsRules("User-agent: *\nCrawl-delay: soon", "Kept").crawl_delay == 0


# ── Remembering ──────────────────────────────────────────────────────────────────────────────────────────────────────


class Scripted(HttpClient):
    """A client with scripted responses."""

    def __init__(self, *answers: HttpResponse | FailedRequest) -> None:
        super().__init__()
        self.answers = list(answers)

    async def get_following_redirects(self, url: str, **_: object) -> HttpResponse | FailedRequest:
        return self.answers.pop(0)


def text(body: str, status: int = 200) -> HttpResponse:
    return HttpResponse("https://docs.test/robots.txt", status, {}, body.encode())


def test_rules_are_kept_for_a_day_and_longer_when_they_cannot_be_read_again() -> None:
    async def scenario() -> None:
        now = 0.0
        client = Scripted(text(FORBIDS), text("", 503), text("User-agent: *\nDisallow: /other"))
        known = RobotsCache(client, "Kept/1", clock=lambda: now)
        first = await known.get_rules("https://docs.test")
        now = 23 * 3600.0
        assert await known.get_rules("https://docs.test") is first
        now = 25 * 3600.0
        assert await known.get_rules("https://docs.test") is first, "the old ones go on counting"
        now += 10
        later = await known.get_rules("https://docs.test")
        assert isinstance(later, RobotsRules)
        assert later.allows("https://docs.test/good")
        assert not client.answers

    asyncio.run(scenario())


def test_an_unreadable_file_is_requested_again_after_growing_pauses() -> None:
    async def scenario() -> None:
        now = 0.0
        client = Scripted(*[text("", 500)] * 3, text(""))
        known = RobotsCache(client, "Kept/1", clock=lambda: now)
        waits = []
        for _ in range(3):
            found = await known.get_rules("https://docs.test")
            assert isinstance(found, RobotsUnreachable)
            assert isinstance(await known.get_rules("https://docs.test"), RobotsUnreachable), "from memory"
            waits.append(found.retry_in.total_seconds())
            now += found.retry_in.total_seconds() + 0.01
        assert waits == [2, 4, 8]
        assert isinstance(await known.get_rules("https://docs.test"), RobotsRules)

    asyncio.run(scenario())


def test_many_pages_wait_for_one_request() -> None:
    async def scenario() -> None:
        client = Scripted(text(FORBIDS))
        known = RobotsCache(client, "Kept/1")
        found = await asyncio.gather(*[known.get_rules("https://docs.test") for _ in range(50)])
        assert len(set(map(id, found))) == 1

    asyncio.run(scenario())


def test_a_forbidden_address_is_not_taken_for_missing_rules() -> None:
    closed = FailedRequest(url="x", kind=FailureKind.FORBIDDEN, reason="not public")
    assert rules_from_response(closed, "Kept") == "not public"
