"""A web origin against a server that does everything wrong (faults 11, 13, 14). A real server, real sockets."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import wraps
from pathlib import Path

import pytest

from kept.errors import SourceUnavailable
from kept.model.document import Validators, Version
from kept.model.frontier import Fetched, FrontierEntry, Gone, NotModified, Redirected, Refused, Unreachable, Visit
from kept.model.job import CrawlJob, JobStatus
from kept.model.robots_directives import RobotsDirectives
from kept.model.root import derive_name
from kept.model.source import Access, Header, Limits, SourceKind, SourceSettings, host_and_port
from kept.origins.web import WebOrigin, make_web_origin
from kept.origins.web.rate_limiter import RateLimiters
from kept.origins.web.responses import sniff_content_type
from kept.runtime.runtime import Runtime, open_runtime
from kept.service import jobs, sources
from kept.settings import load
from tests.sites.hostile import MODIFIED, PAGE, HostileSite, hostile, robots
from tests.sites.manual import served

MEGABYTE = 1 << 20
PATIENT = Access(connect_seconds=5, first_byte_seconds=5, whole_seconds=10)  # a busy machine is not a hostile server
IMPATIENT = Access(connect_seconds=1, first_byte_seconds=0.3, whole_seconds=0.8)


def on_loop(test: Callable[[], Coroutine[None, None, None]]) -> Callable[[], None]:
    @wraps(test)
    def run() -> None:
        asyncio.run(test())

    return run


@asynccontextmanager
async def crawling(
    site: HostileSite, access: Access = PATIENT, *, root: str = "/", limits: Limits | None = None
) -> AsyncIterator[WebOrigin]:
    access = replace(access, allowed=(_pair(site),))
    settings = SourceSettings(access=access, limits=limits or Limits(max_bytes=8 * MEGABYTE))
    origin = make_web_origin(site.url(root), settings, rate_limiters=RateLimiters())
    await origin.open()
    try:
        yield origin
    finally:
        await origin.close()


def _pair(site: HostileSite) -> str:
    return f"127.0.0.1:{site.port}"


def entry(url: str, held: Validators | None = None) -> FrontierEntry:
    version = None if held is None else Version(
        id=1, document_id="d", born=1, died=None, url=url, content_hash="", content_type="text/html", validators=held,
        raw_hash="", signature="", depth=0, links=(), fetched_at=datetime(2026, 11, 1, tzinfo=UTC),
    )  # fmt: skip
    return FrontierEntry(url=url, depth=0, attempts=0, reached=True, base_version=version)


async def visit(path: str, held: Validators | None = None, **settings: object) -> Visit:
    async with hostile() as site, crawling(site, **settings) as origin:  # type: ignore[arg-type]
        return await origin.visit(entry(site.url(path), held), conditional=held is not None)


def visited(path: str, held: Validators | None = None, **settings: object) -> Visit:
    return asyncio.run(visit(path, held, **settings))


# ── What an answer means ─────────────────────────────────────────────────────────────────────────────────────────────


def test_validators_that_are_not_text_are_dropped_and_a_location_in_bytes_is_followed() -> None:
    found = visited("/latin-1")
    assert isinstance(found, Fetched)
    assert (found.content_type, found.validators) == ("text/html; charset=?", Validators())
    moved = visited("/301-latin-1")
    assert isinstance(moved, Redirected)
    assert moved.to.endswith("/caf%E9")


def test_a_page_is_fetched_as_its_server_sent_it() -> None:
    assert visited("/good") == Fetched(body=PAGE, content_type="text/html", status=200)
    assert visited("/strong") == Fetched(
        body=PAGE, content_type="text/html", validators=Validators(etag='"strong"'), status=200
    )


@pytest.mark.parametrize("path", ["/gzip", "/x-gzip", "/deflate", "/deflate-bare", "/br", "/zstd"])
def test_a_compressed_page_is_decompressed(path: str) -> None:
    assert visited(path) == Fetched(body=PAGE, content_type="text/html", status=200)


@pytest.mark.parametrize(
    ("path", "retry"),
    [("/401", False), ("/403", False), ("/418", False), ("/204", False), ("/299", False), ("/500", True),
     ("/429-nonsense", True)],
)  # fmt: skip
def test_an_error_is_not_a_deletion(path: str, retry: bool) -> None:
    found = visited(path)
    assert isinstance(found, Unreachable)
    assert (found.is_retryable, found.retry_after) == (retry, None)
    assert found.status == int(path[1:4])
    assert str(found.status) in found.reason


@pytest.mark.parametrize("path", ["/404", "/410"])
def test_gone_is_gone(path: str) -> None:
    assert isinstance(visited(path), Gone)


def test_retry_after_is_returned() -> None:
    assert _wait("/503") == timedelta(seconds=7)
    assert _wait("/429") == timedelta(seconds=2)
    assert timedelta(seconds=80) < (_wait("/429-date") or timedelta()) <= timedelta(seconds=90)
    assert _wait("/503-much-later") == timedelta(days=1)


def _wait(path: str) -> timedelta | None:
    found = visited(path)
    assert isinstance(found, Unreachable)
    assert found.is_retryable
    return found.retry_after


def test_a_response_that_is_not_a_page_is_refused_with_the_reason() -> None:
    assert visited("/image") == Refused(reason="not a page but image/png", status=200)
    assert visited("/no-type-binary") == Refused(reason="not a page but bytes of unknown type", status=200)
    assert visited("/twice") == Refused(reason="packed more than once", status=200)


def test_x_robots_tag_is_returned_unless_the_source_ignores_robots() -> None:
    assert _directives("/noindex") == RobotsDirectives(noindex=True, nofollow=True)
    assert _directives("/noindex-for-others") == RobotsDirectives()
    assert _directives("/noindex", access=replace(PATIENT, ignore_robots=True)) is None


def _directives(path: str, access: Access = PATIENT) -> RobotsDirectives | None:
    found = visited(path, access=access)
    assert isinstance(found, Fetched)
    return found.robots_directives


def test_a_missing_content_type_is_sniffed() -> None:
    assert visited("/no-type") == Fetched(body=PAGE, content_type="text/html", status=200)
    assert visited("/octets") == Fetched(body=b"%PDF-1.7 and so on", content_type="application/pdf", status=200)
    began = time.process_time()
    assert sniff_content_type(b"<!---->" * 25 + b"<p>A page") == "text/html"
    assert sniff_content_type(b"<!---->" * 25 + b"or no page") == "text/plain"
    assert time.process_time() - began < 1, "seconds"


@pytest.mark.parametrize("path", ["/large", "/claims-large"])
def test_a_page_beyond_the_limit_is_refused_by_our_settings(path: str) -> None:
    limits = Limits(max_bytes=2_000_000)
    assert visited(path, limits=limits) == Refused(reason="larger than 2,000,000 bytes", by_settings=True, status=200)


# ── Validators ───────────────────────────────────────────────────────────────────────────────────────────────────────


def test_validators_are_sent_back_unchanged() -> None:
    first = visited("/validated")
    assert isinstance(first, Fetched)
    assert first.validators == Validators(etag='W/"v1"', last_modified=MODIFIED)
    assert visited("/validated", first.validators) == NotModified(status=304)
    assert visited("/validated", Validators(last_modified=MODIFIED)) == NotModified(status=304)
    assert isinstance(visited("/validated", Validators(etag='"v1"')), Fetched), "weak and strong are two"


def test_an_unrequested_304_is_returned_for_the_crawl_to_decide() -> None:
    assert visited("/304") == NotModified(status=304)


def test_validators_are_sent_only_when_conditional_and_never_to_a_redirect_target() -> None:
    @on_loop
    async def scenario() -> None:
        async with hostile() as site, crawling(site) as origin:
            held = Validators(etag='W/"v1"')
            await origin.visit(entry(site.url("/good"), held), conditional=False)
            found = await origin.visit(entry(site.url("/302"), held), conditional=True)
            assert [request.headers.get("if-none-match") for request in site.requests if request.path == "/good"] == [
                None
            ] * 2
            assert isinstance(found, Fetched)
            assert not found.validators, "they are those of another URL"

    scenario()


# ── Redirects ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("status", [301, 308])
def test_a_permanent_redirect_is_returned(status: int) -> None:
    found = visited(f"/{status}")
    assert isinstance(found, Redirected)
    assert found.to.endswith("/good")
    assert found.status == status


@pytest.mark.parametrize("path", ["/302", "/303", "/307", "/then-moved"])
def test_a_temporary_redirect_is_followed_and_its_links_are_relative_to_the_target(path: str) -> None:
    found = visited(path)
    assert isinstance(found, Fetched)
    assert (found.body, found.status) == (PAGE, 200)
    assert (found.final_url or "").endswith("/good")


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_out_of_the_source_is_refused(status: int) -> None:
    assert visited(f"/{status}-out") == Refused(
        reason="redirects out of the source to https://elsewhere.test/page?token=1", status=status
    )
    assert isinstance(visited(f"/{status}-inside"), Refused)
    for path in (f"/{status}-itself", f"/{status}-nowhere", f"/{status}-script"):
        found = visited(path)
        assert isinstance(found, Unreachable), path
        assert not found.is_retryable


def test_redirects_are_limited() -> None:
    for path, word in (("/circle-a", "circle"), ("/steps/0", "more than 10")):
        found = visited(path)
        assert isinstance(found, Unreachable)
        assert word in found.reason
    assert isinstance(visited("/steps/25"), Gone), "30 is not there"
    assert isinstance(visited("/then-404"), Gone)


def test_robots_txt_holds_for_every_redirect() -> None:
    @on_loop
    async def scenario() -> None:
        async with hostile() as site:
            site.robots = robots("User-agent: *\nDisallow: /forbidden")
            async with crawling(site) as origin:
                for path in ("/forbidden", "/then-forbidden"):
                    found = await origin.visit(entry(site.url(path)), conditional=False)
                    assert found == Refused(reason="robots.txt forbids it")
                assert not site.count_requests("/forbidden")
                assert site.count_requests("/robots.txt") == 1

    scenario()


# ── Truncated, damaged, lying ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    ["/reset", "/reset-midway", "/closed", "/truncated", "/chunks-cut", "/chunks-without-end", "/chunks-bad",
     "/two-lengths", "/not-http", "/empty", "/gzip-cut", "/gzip-damaged", "/gzip-not", "/unknown-encoding"],
)  # fmt: skip
def test_an_incomplete_page_is_never_kept(path: str) -> None:
    found = visited(path)
    assert isinstance(found, Unreachable), found
    assert found.reason


def test_data_after_the_announced_length_is_ignored() -> None:
    @on_loop
    async def scenario() -> None:
        async with hostile() as site, crawling(site) as origin:
            for _ in range(5):
                await origin.visit(entry(site.url("/longer-than-it-says")), conditional=False)
                found = await origin.visit(entry(site.url("/good")), conditional=False)
                assert not isinstance(found, Fetched) or found.body == PAGE

    scenario()


# ── Deadlines ────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("path", "word"),
    [
        ("/hang", "nothing came for 0.3 s"),
        ("/hang-midway", "nothing came for 0.3 s"),
        ("/drip-headers", "took longer than 0.8 s"),
        ("/drip-body", "took longer than 0.8 s"),
        ("/continue-for-ever", "the server sent nothing but interim answers"),
        ("/endless-extension", "not a valid HTTP answer"),
    ],
)
def test_deadlines_hold(path: str, word: str) -> None:
    began = time.monotonic()
    found = visited(path, access=IMPATIENT)
    assert time.monotonic() - began < 2
    assert isinstance(found, Unreachable)
    assert word in found.reason


def test_a_crawl_goes_on_to_its_end_beside_one_whose_host_drips(tmp_path: Path) -> None:
    """How much of its speed it keeps is measured by `python -m bench.drip`."""

    @on_loop
    async def scenario() -> None:
        made = load(environment={}, folder=tmp_path, database=f"sqlite:///{tmp_path}/kept.db")
        async with hostile() as slow, open_runtime(made) as runtime:
            with served(100) as quick:
                dripping = asyncio.create_task(crawled(runtime, slow.url("/drips/")))
                begun = asyncio.create_task(take(slow.drips, Access().concurrency))
                await asyncio.wait([dripping, begun], return_when=asyncio.FIRST_COMPLETED)
                assert begun.done(), "it ended before a page came"
                done = await crawled(runtime, quick.root)
                assert (done.status, done.progress.tally.new) == (JobStatus.COMPLETED, 106)
                # The other has as many pages under way as it may, and not one of them has come or was given up.
                assert not dripping.done()
                assert slow.drips.empty()
                dripping.cancel()
                await asyncio.gather(dripping, return_exceptions=True)

    scenario()


async def take(queue: asyncio.Queue[str], number: int) -> list[str]:
    return [await queue.get() for _ in range(number)]


async def crawled(runtime: Runtime, root: str) -> CrawlJob:
    settings = SourceSettings(access=Access(allowed=(host_and_port(root),)))
    name = derive_name(root)
    source, _ = await sources.get_or_create_source(
        runtime.db, root=root, kind=SourceKind.WEB, name=name, settings=settings
    )
    return await runtime.worker_host.run_job(await jobs.request_crawl(runtime.db, source.label))


# ── Bombs and floods: memory holds ───────────────────────────────────────────────────────────────────────────────────

FLOODS = {
    "/endless": Refused, "/endless-chunks": Refused, "/endless-header": Unreachable, "/endless-headers": Unreachable,
    "/bomb-gzip": Refused, "/bomb-twice": Refused, "/bomb-inside": Refused, "/bomb-br": Refused, "/bomb-zstd": Refused,
    "/bomb-deflate": Refused, "/bomb-members": Refused,
}  # fmt: skip


@pytest.mark.parametrize("path", FLOODS)
def test_a_flood_costs_neither_memory_nor_time(path: str) -> None:
    @on_loop
    async def scenario() -> None:
        async with hostile() as site, crawling(site, Access(whole_seconds=5), limits=Limits()) as origin:
            assert isinstance(await origin.visit(entry(site.url("/good")), conditional=False), Fetched)
            if path.startswith("/bomb"):
                await _build(path)
            _forget_peak()
            before, began = _memory("VmRSS"), time.monotonic()
            found = await origin.visit(entry(site.url(path)), conditional=False)
            assert time.monotonic() - began < 2
            assert _memory("VmHWM") - before <= 64 * MEGABYTE
            assert isinstance(found, FLOODS[path]), found
            assert isinstance(await origin.visit(entry(site.url("/good")), conditional=False), Fetched), "it goes on"

    scenario()


async def _build(path: str) -> None:
    """Have the server build its bomb beforehand, so that only decompression is measured."""
    from tests.sites import hostile as server

    {"/bomb-br": server.brotli_bomb, "/bomb-zstd": server.zstd_bomb}.get(path, server.gzip_bomb)()


PROC = Path("/proc/self")  # where there is none, memory cannot be measured this way


def _forget_peak() -> None:
    if PROC.exists():
        (PROC / "clear_refs").write_text("5")


def _memory(name: str) -> int:
    if not PROC.exists():
        return 0
    found = re.search(rf"{name}:\s+(\d+) kB", (PROC / "status").read_text())
    assert found
    return int(found[1]) * 1024


# ── Manners and secrets ──────────────────────────────────────────────────────────────────────────────────────────────


def test_an_overloaded_host_is_left_alone_by_all_crawls() -> None:
    @on_loop
    async def scenario() -> None:
        async with hostile() as site, crawling(site) as origin:
            found = await origin.visit(entry(site.url("/429-much-later")), conditional=False)
            assert isinstance(found, Unreachable)
            other = await origin.visit(entry(site.url("/good")), conditional=False)
            assert isinstance(other, Unreachable)
            assert other.retry_after is not None
            assert other.retry_after > timedelta(hours=23)
            assert not site.count_requests("/good")

    scenario()


def test_secrets_are_sent_to_their_own_origin_only_and_shown_nowhere() -> None:
    token, cookie = "hunter2-hunter2", "session=abc-def"

    @on_loop
    async def scenario() -> None:
        headers = (Header(name="Authorization", value="env:TOKEN"), Header(name="Cookie", value=cookie))
        async with hostile() as site, hostile() as other:
            access = replace(IMPATIENT, headers=headers, allowed=(_pair(site), _pair(other)))
            settings = SourceSettings(access=access)
            values = {"env:TOKEN": f"Bearer {token}", cookie: cookie}
            origin = make_web_origin(site.url("/"), settings, look_up=values.__getitem__, rate_limiters=RateLimiters())
            seen = []
            for path in ("/echo", "/reset", "/hang", "/404", "/302-out", "/chunks-bad"):
                seen.append(await origin.visit(entry(site.url(path)), conditional=False))
            assert {request.headers.get("authorization") for request in site.requests} == {f"Bearer {token}"}
            assert {request.headers.get("cookie") for request in site.requests} == {cookie}
            client = origin._client
            await client.get_following_redirects(other.url("/echo"), max_bytes=1000)
            assert not {"authorization", "cookie"} & {name for request in other.requests for name in request.headers}
            things = [*seen[1:], settings, client, client._secret_headers, origin]
            assert not [repr(one) for one in things if token in repr(one) or cookie in repr(one)]
            assert client.redact(f"went to /?key={token}") == "went to /?key=***"
            await origin.close()

    scenario()


def test_a_forbidden_root_fails_the_crawl_and_an_error_at_the_root_does_not() -> None:
    @on_loop
    async def scenario() -> None:
        async with hostile() as site:
            closed = make_web_origin(site.url("/"), SourceSettings(), rate_limiters=RateLimiters())
            with pytest.raises(SourceUnavailable, match=r"127\.0\.0\.1 is not a public address \(loopback\)"):
                await closed.open()
            assert isinstance(await closed.visit(entry(site.url("/")), conditional=False), Unreachable | Refused)
            await closed.close()
            assert not site.requests
            async with crawling(site, root="/500") as origin:
                assert isinstance(await origin.visit(entry(site.url("/500")), conditional=False), Unreachable)

    scenario()
