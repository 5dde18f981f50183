"""The authority matrix: each way to name something × everything a source can reach. Every cell is run.

person     the owner at the command line          MCP        an assistant, over stdio or with any key
admin …    a key of the server with this scope    import     a manifest that its owner has not confirmed
                                                  folder     MCP, in a folder whose kept.toml allows everything
yes   it is accepted, and a crawl may use it
ask   only with the owner's confirmation
no    it is refused: when it is asked for, or at the latest by the crawl
"""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from kept import settings as app
from kept.errors import KeptError
from kept.maintenance.import_trust import find_authority, without_authority
from kept.model.authority import why_change_refused
from kept.model.export import ManifestSource
from kept.model.key import KeyScope
from kept.model.repository import repository_from_root
from kept.model.root import parse_root
from kept.model.source import Access, Authority, Header, Source, SourceKind, SourceSettings
from kept.origins.git.transport import Transport
from kept.runtime.origin_factory import make_checked_origin
from kept.service.access import OWNER, Principal, pin_private_hosts
from kept.service.source_options import SourceOptions
from kept.service.source_request import SourceRequest, resolve_request

TABLE = """
what                        person  admin  write  read  MCP  import  folder
root: public site           yes     yes    yes    yes   yes  yes     yes
root: private site          yes     no     no     no    no   no      no
root: loopback site         yes     no     no     no    no   no      no
root: metadata service      yes     no     no     no    no   no      no
root: list of pages         yes     no     no     no    no   ask     no
root: folder                yes     no     no     no    no   ask     no
root: file                  yes     no     no     no    no   ask     no
root: git by https          yes     yes    yes    yes   yes  yes     yes
root: git by git            yes     yes    yes    yes   yes  ask     yes
root: git on private host   yes     no     no     no    no   no      no
root: git by ssh            yes     no     no     no    no   ask     no
root: git by scp            yes     no     no     no    no   ask     no
root: git by scp, forge     yes     no     no     no    no   ask     no
root: git by git+ssh        yes     no     no     no    no   ask     no
root: git in a file         yes     no     no     no    no   ask     no
root: git helper            yes     no     no     no    no   ask     no
root: npm                   yes     no     no     no    no   ask     no
root: pypi                  yes     no     no     no    no   ask     no
header                      yes     yes    yes    yes   yes  yes     yes
header from environment     yes     no     no     no    no   ask     no
header from secrets file    no      no     no     no    no   ask     no
cookie from environment     yes     no     no     no    no   ask     no
proxy                       yes     no     no     no    no   ask     no
proxy from environment      yes     no     no     no    no   ask     no
CA file                     yes     no     no     no    no   ask     no
private host in settings    -       -      -      -     -    ask     -
webhook                     yes     yes    yes    yes   yes  ask     yes
webhook from environment    yes     no     no     no    no   ask     no
webhook secret              yes     yes    yes    yes   yes  ask     yes
webhook secret from env.    yes     no     no     no    no   ask     no
hook secret from env.       yes     no     no     no    no   ask     no
schedule                    yes     yes    yes    yes   yes  ask     yes
ignore robots.txt           yes     yes    yes    yes   yes  ask     yes
render                      yes     yes    yes    yes   yes  yes     yes
limits, scope               yes     yes    yes    yes   yes  yes     yes
public: scope               yes     yes    yes    no    yes  no      yes
public: webhook             yes     yes    yes    no    yes  no      yes
callers own: header         yes     yes    yes    no    yes  no      yes
private: tag, schedule      yes     yes    yes    no    yes  no      yes
private: scope              yes     no     no     no    no   no      no
private: header             yes     no     no     no    no   no      no
private: webhook            yes     no     no     no    no   no      no
private: robots, render     yes     no     no     no    no   no      no
with token: scope           yes     no     no     no    no   no      no
with token: header          yes     no     no     no    no   no      no
with proxy: limits          yes     no     no     no    no   no      no
folder: include             yes     no     no     no    no   no      no
by ssh: include             yes     no     no     no    no   no      no
package: include            yes     no     no     no    no   no      no
with webhook: webhook       yes     no     no     no    no   no      no
with webhook: its secret    yes     no     no     no    no   no      no
with webhook: scope         yes     yes    yes    no    yes  no      yes
"""

ROOTS = {
    "public site": "http://93.184.216.34/docs/",  # an address, so that nothing is resolved; and nothing is dialled
    "private site": "http://10.0.0.7/",
    "loopback site": "http://127.0.0.1:8000/",
    "metadata service": "http://169.254.169.254/latest/",
    "list of pages": "@{folder}/urls.txt",
    "folder": "{folder}",
    "file": "{folder}/urls.txt",
    "git by https": "https://93.184.216.34/manual.git",
    "git by git": "git://93.184.216.34/manual.git",
    "git on private host": "https://10.0.0.7/manual.git",
    "git by ssh": "ssh://git@93.184.216.34/manual.git",
    "git by scp": "git@93.184.216.34:secret.git",
    "git by scp, forge": "git@github.com:owner/secret.git",
    "git by git+ssh": "git+ssh://git@93.184.216.34/manual.git",
    "git in a file": "file://{folder}/manual.git",
    "git helper": "ext::sh -c touch% x://manual.git",  # the name of a folder that is not there: git never sees it
    "npm": "npm:left-pad",
    "pypi": "pypi:requests",
}
OPTIONS = {
    "header": {"header": ["X-Key: abc"]},
    "header from environment": {"header": ["X-Key: Bearer env:TOKEN"]},
    "header from secrets file": {"header": ["X-Key: secret:authorization-1"]},
    "cookie from environment": {"cookie": "a=env:TOKEN"},
    "proxy": {"proxy": "http://93.184.216.34:3128"},
    "proxy from environment": {"proxy": "env:PROXY"},
    "CA file": {"ca_file": "/etc/ssl/certs/ca-certificates.crt"},
    "webhook": {"webhook": "https://hooks.test/"},
    "webhook from environment": {"webhook": "env:HOOK"},
    "webhook secret": {"webhook": "https://hooks.test/", "webhook_secret": "abc"},
    "webhook secret from env.": {"webhook_secret": "env:HOOK"},
    "hook secret from env.": {"hook_secret": "env:HOOK"},
    "schedule": {"schedule": "1d"},
    "ignore robots.txt": {"ignore_robots": True},
    "render": {"render": "always"},
    "limits, scope": {"max_pages": 9, "scope": ["host"], "no_traps": True, "concurrency": 64, "include": ["*"]},
}
TOKEN = (Header(name="Authorization", value="secret:a"),)
KNOWN = {
    "public": (SourceKind.WEB, "https://docs.test/", SourceSettings(), Authority.OWNER),
    "callers own": (
        SourceKind.WEB,
        "https://docs.test/",
        SourceSettings(access=Access(headers=TOKEN)),
        Authority.CALLER,
    ),
    "private": (
        *(SourceKind.WEB, "https://wiki.test/", SourceSettings(access=Access(allowed=("wiki.test:443 private",)))),
        Authority.OWNER,
    ),
    "with token": (SourceKind.WEB, "https://docs.test/", SourceSettings(access=Access(headers=TOKEN)), Authority.OWNER),
    "with proxy": (
        SourceKind.WEB,
        "https://docs.test/",
        SourceSettings(access=Access(proxy="secret:p")),
        Authority.OWNER,
    ),
    "folder": (SourceKind.FOLDER, "file:///srv/docs", SourceSettings(), Authority.OWNER),
    "by ssh": (SourceKind.GIT, "ssh://git@git.test/manual.git", SourceSettings(), Authority.OWNER),
    "package": (SourceKind.PACKAGE, "npm:left-pad", SourceSettings(), Authority.OWNER),
    "with webhook": (
        *(SourceKind.WEB, "https://docs.test/", SourceSettings(webhook="https://hooks.test/", webhook_secret="env:A")),
        Authority.OWNER,
    ),
}
CHANGES = {
    "scope": ["scope"],
    "webhook": ["webhook"],
    "its secret": ["webhook_secret"],
    "header": ["header"],
    "tag, schedule": ["tag", "schedule"],
    "robots, render": ["ignore_robots", "render"],
    "limits": ["max_pages"],
    "include": ["include"],
}
EVERYTHING = """
database = "postgresql://evil.test/x"
[network]
allow_private = 1
allow_files = 1
allow_packages = 1
[webhooks]
url = "http://127.0.0.1:1"
secret = "env:TOKEN"
allow = "127.0.0.1:1 10.0.0.7:80"
[crawl]
browser = "./evil"
[serve]
hosts = "evil.test"
[embed]
url = "http://127.0.0.1:1"
key = "env:TOKEN"
[rerank]
url = "http://127.0.0.1:1"
key = "env:TOKEN"
"""
HEADINGS, *ROWS = ([row[:28].strip(), *row[28:].split()] for row in TABLE.strip().splitlines())
WAYS = HEADINGS[1:]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "urls.txt").write_text("http://93.184.216.34/a.html\n")
    (tmp_path / "kept.toml").write_text(EVERYTHING)
    return tmp_path


@pytest.mark.parametrize("way", WAYS)
def test_the_authority_matrix(folder: Path, way: str) -> None:
    column = WAYS.index(way) + 1
    loaded = app.load(
        environment={"TOKEN": "t", "PROXY": "http://93.184.216.34:3128", "HOOK": "h", "HOME": str(folder)},
        folder=folder if way == "folder" else folder / "elsewhere",
    )
    expected = {row[0]: row[column] for row in ROWS if row[column] != "-"}
    found = {what: asyncio.run(run_cell(way, what, loaded, folder)) for what in expected}
    differences = [f"{what}: {found[what]}, expected {said}" for what, said in expected.items() if found[what] != said]
    assert differences == []
    assert len(found) >= 50


def test_the_matrix_has_every_cell_and_nothing_that_is_not_run() -> None:
    assert all(len(row) == len(HEADINGS) and {*row[1:]} <= {"yes", "no", "ask", "-"} for row in ROWS)
    named = [f"root: {name}" for name in ROOTS] + [*OPTIONS, "private host in settings"]
    rows = [row[0] for row in ROWS]
    assert [row for row in rows if row not in named and row.partition(": ")[0] not in KNOWN] == []
    assert set(named) <= set(rows)
    assert len(rows) == len(set(rows))


async def run_cell(way: str, row: str, loaded: app.Settings, folder: Path) -> str:
    group, _, what = row.partition(": ")
    if group in KNOWN:
        return change(way, group, what, loaded)
    root = ROOTS[what if group == "root" else "public site"].format(folder=folder)
    options = OPTIONS.get(row, {})
    if way == "import":
        return await import_source(row, root, options, loaded)
    try:
        resolved = resolve_request(SourceRequest(root=root, options=SourceOptions(**options)), principal(way, loaded))
        settings = await pin_private_hosts(resolved.settings)
        await begin_crawl(resolved.kind, resolved.root, settings, loaded, resolved.authority)
    except KeptError:
        return "no"
    return "yes"


def principal(way: str, loaded: app.Settings) -> Principal:
    """Return the principal as the auth middleware and the MCP server make it."""
    if way == "person":
        return OWNER
    scope = KeyScope(way) if way in list(KeyScope) else KeyScope.ADMIN
    return Principal(name=way, scope=scope, permissions=loaded.permissions_of(Authority.CALLER))


async def begin_crawl(
    kind: SourceKind, root: str, settings: SourceSettings, loaded: app.Settings, authority: Authority
) -> None:
    """Do what a crawl does before it connects: raises KeptError where it would be refused."""
    origin = make_checked_origin(kind, root, settings, loaded, authority)
    try:
        if kind is SourceKind.WEB:
            await origin.open()
        elif kind is SourceKind.GIT:
            transport = Transport(
                settings=settings,
                environment=loaded.environment,
                look_up=str,
                permissions=loaded.permissions_of(authority),
            )
            remote = repository_from_root(root).remote
            if "github.com" in remote:
                remote = remote.replace("github.com", "93.184.216.34")  # nothing is resolved
            async with transport.connect(remote):
                pass
    finally:
        await origin.close()


async def import_source(row: str, root: str, options: dict[str, object], loaded: app.Settings) -> str:
    try:
        kind, url = parse_root(root)
        given = SourceOptions(**options).apply_to(SourceSettings())
        if row == "private host in settings":
            given = replace(given, access=replace(given.access, allowed=("10.0.0.7:80",)))
        listed = ManifestSource(
            place="docs",
            name="docs",
            version="",
            kind=kind,
            root=url,
            settings=given,
            created_at="",
            generation=1,
            generations=(),
        )
        if find_authority(listed):
            left = without_authority(given)
            assert left == SourceSettings() or left != given or kind is not SourceKind.WEB or url.startswith("file:")
            return "ask"
        await begin_crawl(kind, url, without_authority(given), loaded, Authority.CALLER)
    except KeptError:
        return "no"
    return "yes"


def change(way: str, group: str, what: str, loaded: app.Settings) -> str:
    """Change settings of a source that is kept. An import never does: what is kept it refuses. Nor does a read key."""
    kind, root, settings, authority = KNOWN[group]
    source = Source(
        id="1",
        name="docs",
        version="",
        kind=kind,
        root=root,
        settings=settings,
        active_generation=None,
        created_at=None,
        authority=authority,  # type: ignore[arg-type]
    )
    who = principal(way, loaded) if way != "import" else None
    if who is None or not who.scope.allows(KeyScope.WRITE):
        return "no"
    return "no" if why_change_refused(who.permissions, source, CHANGES[what]) else "yes"
