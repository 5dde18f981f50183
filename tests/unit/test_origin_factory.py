"""Origins of every kind are built without I/O, checked and probed, and explain what they leave out."""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kept import settings as app
from kept.errors import InvalidInput, SecretUnavailable, SourceMissing, SourceUnavailable
from kept.model.frontier import ListedUrl
from kept.model.source import Access, Header, Region, Scope, SourceKind, SourceSettings
from kept.model.url import file_url
from kept.origins.origin import Origin
from kept.origins.web import make_web_origin
from kept.origins.web.rate_limiter import RateLimiters
from kept.runtime.origin_factory import make_checked_origin, make_origin
from tests.sites import hostile as server
from tests.sites.hostile import hostile

ROOTS = {
    SourceKind.WEB: "https://docs.test/",
    SourceKind.GIT: "https://github.com/kept/docs",
    SourceKind.PACKAGE: "npm:left-pad",
    SourceKind.FOLDER: "file:///srv/docs",
}
SECRET = Header(name="Authorization", value="env:NOT_SET")


@pytest.fixture
def app_settings(tmp_path: Path) -> app.Settings:
    return replace(app.load(environment={}, folder=tmp_path), secrets_file=tmp_path / "secrets.json")


@asynccontextmanager
async def closing(origin: Origin) -> AsyncIterator[Origin]:
    try:
        yield origin
    finally:
        await origin.close()


@pytest.mark.parametrize("kind", ROOTS)
def test_an_origin_is_built_checked_and_asked_about_urls_without_its_secrets(
    kind: SourceKind, app_settings: app.Settings
) -> None:
    settings = SourceSettings(access=Access(headers=(SECRET,), proxy="env:NOT_SET"))
    origin = make_checked_origin(kind, ROOTS[kind], settings, app_settings)
    assert origin.why_excluded("https://elsewhere.test/page.html") is not None
    assert not origin.admits("https://elsewhere.test/page.html")
    asyncio.run(origin.close())


def test_a_secret_is_looked_up_when_the_origin_is_opened(app_settings: app.Settings) -> None:
    settings = SourceSettings(access=Access(headers=(SECRET,)))

    async def scenario() -> None:
        async with closing(make_origin(SourceKind.WEB, "https://docs.test/", settings, app_settings)) as origin:
            with pytest.raises(SecretUnavailable, match="NOT_SET"):
                await origin.open()

    asyncio.run(scenario())


@pytest.mark.parametrize("kind", [SourceKind.WEB, SourceKind.GIT])
@pytest.mark.parametrize(
    "access",
    [Access(allowed=("localhost",)), Access(proxy="socks5://127.0.0.1:1080"), Access(ca_file=__file__)],
    ids=["allowed", "proxy", "ca_file"],
)
def test_settings_that_no_client_can_be_built_from_are_refused(
    kind: SourceKind, access: Access, app_settings: app.Settings
) -> None:
    settings = SourceSettings(access=access)
    with pytest.raises(InvalidInput):
        make_origin(kind, ROOTS[kind], settings, app_settings).check()


def test_a_root_of_another_kind_is_refused(app_settings: app.Settings) -> None:
    with pytest.raises(InvalidInput, match="npm:left-pad"):
        make_origin(SourceKind.PACKAGE, "https://docs.test/", SourceSettings(), app_settings)


def test_a_request_may_not_refer_to_a_stored_secret_unless_the_source_does_already(app_settings: app.Settings) -> None:
    settings = SourceSettings(access=Access(headers=(Header(name="X-Key", value="secret:x-key-1"),)))
    with pytest.raises(InvalidInput, match="secret:NAME"):
        make_checked_origin(SourceKind.WEB, ROOTS[SourceKind.WEB], settings, app_settings)
    make_checked_origin(SourceKind.WEB, ROOTS[SourceKind.WEB], settings, app_settings, before=settings)


def test_a_region_that_cannot_be_parsed_is_refused(app_settings: app.Settings) -> None:
    with pytest.raises(InvalidInput):
        make_checked_origin(
            SourceKind.WEB, ROOTS[SourceKind.WEB], SourceSettings(region=Region(select="main[")), app_settings
        )


def test_the_probe_of_a_root_that_cannot_be_reached_says_why(tmp_path: Path, app_settings: app.Settings) -> None:
    (tmp_path / "broken.zip").write_bytes(b"PK, but nothing more")
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        web = SourceSettings(access=Access(allowed=(address,)))

        async def probe(kind: SourceKind, root: str, settings: SourceSettings) -> None:
            async with closing(make_origin(kind, root, settings, app_settings)) as origin:
                await origin.probe()

        with pytest.raises(SourceMissing, match="There is no file or folder"):
            asyncio.run(probe(SourceKind.FOLDER, file_url(str(tmp_path / "missing")), SourceSettings()))
        with pytest.raises(SourceUnavailable, match="cannot be read as a zip file"):
            asyncio.run(probe(SourceKind.FOLDER, file_url(str(tmp_path / "broken.zip")), SourceSettings()))
        with pytest.raises(SourceUnavailable, match="cannot be reached: Connection refused"):
            asyncio.run(probe(SourceKind.WEB, f"http://{address}/", web))
        with pytest.raises(SourceUnavailable, match="not a public address"):
            asyncio.run(probe(SourceKind.WEB, f"http://{address}/", SourceSettings()))
    asyncio.run(probe(SourceKind.FOLDER, file_url(str(tmp_path)), SourceSettings()))


def test_a_listing_can_include_the_pages_that_the_scope_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PATHS", dict(server.PATHS))

    async def scenario() -> None:
        async with hostile() as site:
            urls = "".join(f"<url><loc>{site.url(path)}</loc></url>" for path in ("/a", "/old/b", "/picture.png"))
            server.answers("/sitemap.xml", "200 OK", body=f"<urlset>{urls}</urlset>".encode(), type="application/xml")
            settings = SourceSettings(
                access=Access(allowed=(f"127.0.0.1:{site.port}",)), scope=Scope(exclude=("old/*",))
            )
            async with closing(make_web_origin(site.url("/"), settings, rate_limiters=RateLimiters())) as origin:
                found = [one async for one in origin.list(include_excluded=True) if isinstance(one, ListedUrl)]
                assert {one.url.removeprefix(site.origin): one.excluded for one in found} == {
                    "/": None,
                    "/a": None,
                    "/old/b": "left out by the source's patterns",
                    "/picture.png": "not a page, by its name",
                }
                admitted = [one.url.removeprefix(site.origin) async for one in origin.list()]
                assert admitted == ["/", "/a"]

    asyncio.run(scenario())
