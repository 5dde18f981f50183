"""Who names a source decides what it may reach: a table of ways in and things to reach, and what once got through."""

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from kept import settings as app
from kept.errors import InvalidInput, KeptError, SourceUnavailable
from kept.model.authority import OWNER_PERMISSIONS, Permissions, restrict_settings, why_change_refused
from kept.model.key import KeyScope
from kept.model.source import Access, Authority, Header, Source, SourceKind, SourceSettings
from kept.origins.web.client_factory import make_http_client, pin_allowed
from kept.origins.web.http.address_policy import AddressForbidden
from kept.runtime.origin_factory import make_checked_origin, make_permitted_origin
from kept.service.access import OWNER, Principal
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest, resolve_request
from kept.service.sources import add_source, update_settings
from tests.e2e.server import Server, serving
from tests.e2e.test_cli import Kept

ROOTS = {
    "https": "https://docs.test/",
    "git https": "https://git.test/manual.git",
    "git": "git://git.test/manual.git",
    "ssh": "ssh://git@git.test/manual.git",
    "scp": "git@git.test:secret.git",
    "scp on a forge": "git@github.com:owner/secret.git",
    "git+ssh": "git+ssh://git@git.test/manual.git",
    "ext": "ext::sh -c touch% /tmp/x",
    "folder": "/srv/docs",
    "file": "file:///srv/docs",
    "file git": "file:///srv/manual.git",
    "list": "@/srv/urls.txt",
    "npm": "npm:left-pad",
    "pypi": "pypi:requests",
}
SETTINGS = {
    "header": {"header": ["X-Key: abc"]},
    "header env": {"header": ["X-Key: env:AWS_SECRET_ACCESS_KEY"]},
    "cookie env": {"cookie": "a=env:TOKEN"},
    "proxy": {"proxy": "http://127.0.0.1:3128"},
    "ca_file": {"ca_file": "/etc/ssl/ca.pem"},
    "webhook": {"webhook": "https://hooks.test/"},
    "webhook env": {"webhook": "env:HOOK"},
    "webhook_secret env": {"webhook_secret": "env:HOOK"},
    "render": {"render": "always"},
}
OPEN_TO_CALLERS = {"https", "git https", "git", "header", "webhook", "render"}
WITH_FILES = {"folder", "file", "file git", "list", "header env", "cookie env", "proxy", "ca_file", "webhook env"} | {
    "webhook_secret env",
    "ext",  # the name of a folder: git never gets to see it
}
WAYS = ("person", "admin key", "write key", "read key", "MCP", "MCP with files", "MCP with packages")


def principal(way: str, tmp_path: Path) -> Principal:
    if way == "person":
        return OWNER
    network = {"MCP with files": "ALLOW_FILES", "MCP with packages": "ALLOW_PACKAGES"}.get(way)
    environment = {f"KEPT_NETWORK__{network}": "1"} if network else {}
    permissions = app.load(environment=environment, folder=tmp_path).permissions_of(Authority.CALLER)
    scope = KeyScope(way.partition(" ")[0]) if way.endswith("key") else KeyScope.ADMIN
    return Principal(name=way, scope=scope, permissions=permissions)


def expected(way: str, what: str) -> bool:
    extra = {"MCP with files": WITH_FILES, "MCP with packages": {"npm", "pypi"}}.get(way, set())
    return way == "person" or what in OPEN_TO_CALLERS | extra


@pytest.mark.parametrize("way", WAYS)
def test_every_way_in_may_name_what_the_table_says(way: str, tmp_path: Path) -> None:
    who, differences = principal(way, tmp_path), []
    (tmp_path / "urls.txt").write_text("https://docs.test/a.html\n")
    for what, root in ROOTS.items():
        root = root.replace("@/srv", f"@{tmp_path}")
        if is_permitted(lambda root=root: resolve_request(request(root), who)) != expected(way, what):
            differences.append(what)
    for what, options in SETTINGS.items():
        asked = request(ROOTS["https"], **options)
        if is_permitted(lambda asked=asked: resolve_request(asked, who)) != expected(way, what):
            differences.append(what)
    assert differences == []


def is_permitted(ask: Callable[[], object]) -> bool:
    try:
        ask()
    except KeptError:
        return False
    return True


def request(root: str, **options: object) -> SourceRequest:
    return SourceRequest(root=root, options=SourceOptions(**options))


@pytest.mark.parametrize("what", ["ssh", "scp", "scp on a forge", "folder", "file git", "npm", "pypi"])
def test_a_crawl_asks_again_what_its_source_may_reach(what: str, tmp_path: Path) -> None:
    """A source of a caller that is in the database already, as an earlier version may have stored it."""
    loaded = app.load(environment={}, folder=tmp_path)
    resolved = resolve_request(request(ROOTS[what]))
    with pytest.raises(SourceUnavailable):
        make_permitted_origin(resolved.kind, resolved.root, SourceSettings(), loaded, Authority.CALLER)
    make_permitted_origin(resolved.kind, resolved.root, SourceSettings(), loaded, Authority.OWNER)


def test_a_crawl_of_a_callers_source_reads_no_variable_of_the_machine(tmp_path: Path) -> None:
    loaded = app.load(environment={"TOKEN": "t"}, folder=tmp_path)
    settings = SourceSettings(access=Access(headers=(Header(name="X", value="env:TOKEN"),), allowed=("10.0.0.1:80",)))
    with pytest.raises(SourceUnavailable, match="server's own machine"):
        make_permitted_origin(SourceKind.WEB, ROOTS["https"], settings, loaded, Authority.CALLER)
    by_owner = settings.record_given(["header"], Authority.OWNER)
    make_permitted_origin(SourceKind.WEB, ROOTS["https"], by_owner, loaded, Authority.CALLER)


def test_a_crawl_asks_for_each_setting_what_its_giver_may_do_now(tmp_path: Path) -> None:
    """An operator who takes back allow_files also takes back what callers have set meanwhile, on any source."""
    loaded = app.load(environment={}, folder=tmp_path)
    for name, access in (("proxy", Access(proxy="secret:proxy-1")), ("ca_file", Access(ca_file="/etc/ca.pem"))):
        for source_authority in Authority:
            by_caller = SourceSettings(access=access).record_given([name], Authority.CALLER)
            with pytest.raises(SourceUnavailable, match="server's own machine"):
                restrict_settings(loaded.permissions_of, source_authority, by_caller)
            by_owner = by_caller.record_given([name], Authority.OWNER)
            assert restrict_settings(loaded.permissions_of, source_authority, by_owner) == by_owner


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    options = {"network__allow_private": "0", "network__allow_files": "0"}
    with serving(f"sqlite:///{tmp_path / 'kept.db'}", tmp_path, workers=0, **options) as running:
        yield running


@pytest.mark.parametrize("scope", ["admin", "write", "read"])
def test_no_key_reaches_the_servers_ssh_keys_files_or_packages(server: Server, scope: str) -> None:
    refused = ("ssh", "scp", "scp on a forge", "folder", "file git", "npm", "pypi")
    with server.client(server.key(scope, scope)) as client:
        for what in refused:
            tried = client.post("/api/v1/try", json={"url": ROOTS[what]})
            assert tried.status_code == 422 or tried.status_code == 400, (what, tried.text)
            added = client.post("/api/v1/sources", json={"root": ROOTS[what]})
            assert added.status_code == (403 if scope == "read" else tried.status_code), (what, added.text)


def test_a_public_host_that_a_person_named_must_stay_public() -> None:
    async def scenario(first: str, later: str) -> bool:
        async def resolve(address: str) -> list[str]:
            return [address]

        allowed = await pin_allowed(["docs.test:80"], lambda host, port: resolve(first))
        settings = SourceSettings(access=Access(allowed=allowed))
        client = make_http_client("http://docs.test/", settings, resolver=lambda host, port: resolve(later))
        try:
            await client.address_policy.resolve_allowed("docs.test", 80)
        except AddressForbidden:
            return False
        finally:
            await client.close()
        return True

    public, private, loopback, metadata = "93.184.216.34", "10.0.0.7", "127.0.0.1", "169.254.169.254"
    may = {
        (first, later): asyncio.run(scenario(first, later))
        for first in (public, private, loopback)
        for later in (public, private, loopback, metadata)
    }
    assert {pair for pair, allowed in may.items() if allowed} == {
        (first, later) for first, later in may if later in (public, first)
    }


def test_a_host_that_nobody_can_resolve_when_it_is_named_gets_no_exception() -> None:
    async def unknown(host: str, port: int) -> list[str]:
        raise OSError("no such host")

    assert asyncio.run(pin_allowed(["docs.test:80", "10.0.0.7:80"], unknown)) == ("10.0.0.7:80",)
    assert asyncio.run(pin_allowed(["docs.test:80"], unknown, keep_unresolved=True)) == ("docs.test:80",)


def test_naming_a_root_again_decides_anew_whether_its_host_may_be_private(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'kept.db'}", tmp_path, workers=0) as server, closing_listener() as port:

        def add(who: Principal) -> tuple[str, ...]:
            adding = add_source(server.runtime.services, who, request(f"http://localhost:{port}/"))
            added = asyncio.run_coroutine_threadsafe(adding, server.loop).result(30)
            return added.source.settings.access.allowed

        def forget(_: SourceSettings) -> SourceSettings:
            return SourceSettings()  # as if the host had been public then

        caller = Principal(name=None, scope=KeyScope.WRITE, permissions=Permissions(private_hosts=True))
        pinned = add(OWNER)
        assert pinned == (f"localhost:{port} loopback",)
        assert add(caller) == pinned, "a refresh, with no other settings"
        db = server.runtime.db
        asyncio.run_coroutine_threadsafe(update_settings(db, f"localhost-{port}", forget), server.loop).result(30)
        with pytest.raises(SourceUnavailable, match="not a public address"):
            add(caller)
        assert add(OWNER) == pinned


@contextmanager
def closing_listener() -> Iterator[int]:
    with socket.create_server(("localhost", 0)) as listening:
        yield listening.getsockname()[1]


def test_a_caller_takes_over_no_setting_by_naming_it_again(tmp_path: Path) -> None:
    with serving(f"sqlite:///{tmp_path / 'kept.db'}", tmp_path, workers=0) as server:
        (tmp_path / "docs").mkdir()
        asked = request(str(tmp_path / "docs"), webhook="https://hooks.test/")
        caller = Principal(name=None, scope=KeyScope.WRITE, permissions=Permissions(local_files=True))
        for who in (OWNER, caller):
            adding = add_source(server.runtime.services, who, asked)
            added = asyncio.run_coroutine_threadsafe(adding, server.loop).result(30)
            assert added.source.authority_of("webhook") is Authority.OWNER


def source(authority: Authority, **access: object) -> Source:
    return Source(
        id="1",
        name="wiki",
        version="",
        kind=SourceKind.WEB,
        root="https://wiki.test/",
        settings=SourceSettings(access=Access(**access)),  # type: ignore[arg-type]
        active_generation=None,
        created_at=None,  # type: ignore[arg-type]
        authority=authority,
    )


def test_a_caller_cannot_widen_a_source_that_the_owner_gave_more_than_a_caller_has(tmp_path: Path) -> None:
    caller = principal("write key", tmp_path).permissions
    token = (Header(name="Authorization", value="secret:a"),)
    private = source(Authority.OWNER, allowed=("wiki.test:443 private",), headers=token)
    for name in ("scope", "ignore_robots", "max_pages", "include", "webhook", "header", "render", "concurrency"):
        assert why_change_refused(caller, private, [name]), name
        assert why_change_refused(OWNER_PERMISSIONS, private, [name]) is None
        assert why_change_refused(caller, source(Authority.OWNER), [name]) is None
        assert why_change_refused(caller, source(Authority.CALLER, headers=token), [name]) is None
    assert why_change_refused(caller, private, ["tag", "schedule"]) is None
    hooked = source(Authority.OWNER)
    hooked = replace(hooked, settings=replace(hooked.settings, webhook_secret="secret:b"))
    assert why_change_refused(caller, hooked, ["webhook"])


def test_a_caller_is_refused_by_the_api_and_the_owner_by_nothing(server: Server, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("# A\n\nText.\n")
    Kept(tmp_path, f"sqlite:///{tmp_path / 'kept.db'}").json("add", "docs", "--no-wait")
    with server.client(server.key("w", "write")) as client:
        answer = client.patch("/api/v1/sources/docs", json={"include": ["**"]})
        assert answer.status_code in (400, 422), answer.text
        assert "kept set docs" in answer.text or "command line" in answer.text
        assert client.patch("/api/v1/sources/docs", json={"tag": ["x"]}).status_code == 200


def test_the_origin_of_a_request_is_checked_like_that_of_a_crawl(tmp_path: Path) -> None:
    loaded = app.load(environment={}, folder=tmp_path)
    resolved = resolve_request(request(ROOTS["scp"]))
    with pytest.raises((SourceUnavailable, InvalidInput)):
        make_checked_origin(resolved.kind, resolved.root, SourceSettings(), loaded, Authority.CALLER)
