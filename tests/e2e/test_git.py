"""Git repositories and packages, through the command line and at their edges: secrets, refusals, odd files, caches."""

import asyncio
import base64
import hashlib
import io
import json
import os
import shutil
import socket
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from kept.errors import SourceUnavailable
from kept.extract.reader import guess_content_type
from kept.model.frontier import Fetched, FrontierEntry, Refused, Visit
from kept.model.repository import repository_from_root
from kept.model.root import parse_root
from kept.model.source import Access, Header, Limits, SourceSettings
from kept.origins.git import GitOrigin, make_git_origin
from kept.origins.git.bare_clone import clone_folder
from kept.origins.git.transport import Transport
from kept.origins.subprocesses import ProgramFailed
from tests.e2e.test_access import command_lines, files_with
from tests.e2e.test_cli import Kept
from tests.sites.repositories import PLAIN, GitServer, Repository, git_daemon, git_server

TERN = "# Terns\n\nThe tern flies from pole to pole, and back again when the year has turned.\n"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[GitServer]:
    (tmp_path / "served").mkdir()
    with git_server(tmp_path / "served") as made:
        yield made


@pytest.fixture
def kept(tmp_path: Path) -> Kept:
    made = Kept(tmp_path / "home", f"sqlite:///{tmp_path}/home/kept.db")
    made.folder.mkdir(exist_ok=True)
    return made


def origin_of(root: str, cache: Path, settings: SourceSettings | None = None) -> GitOrigin:
    settings = settings or SourceSettings()
    made = make_git_origin(
        parse_root(root, "git")[1],
        settings,
        type_of=guess_content_type,
        look_up=str,
        environment=PLAIN,
        cache_folder=cache,
    )
    assert isinstance(made, GitOrigin)
    return made


def allowing(server: GitServer) -> SourceSettings:
    return SourceSettings(access=Access(allowed=(server.url.removeprefix("http://"),)))


async def opened(origin: GitOrigin) -> dict[str, Visit]:
    """Return every URL that an origin lists, with its visit."""
    try:
        await origin.open()
        urls = [one.url async for one in origin.list()]
        entries = [FrontierEntry(url=url, depth=0, attempts=0, reached=True, base_version=None) for url in urls]
        return dict(
            zip(urls, await asyncio.gather(*(origin.visit(one, conditional=False) for one in entries)), strict=True)
        )
    finally:
        await origin.close()


# Secrets -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["header", "login", "helper"])
def test_a_token_is_sent_to_its_host_only(kept: Kept, server: GitServer, by: str) -> None:
    token = f"tok-{uuid4().hex}"
    server.login = f"me:{token}"
    basic = base64.b64encode(server.login.encode()).decode()
    server.repository("docs.git").commit({"a.md": TERN})
    lines: list[str] = []
    server.before = lambda: lines.append(command_lines())
    root, options = f"{server.url}/docs.git", []
    if by == "header":
        kept.environment["TOKEN"] = basic
        options = ["--header", "Authorization: Basic env:TOKEN"]
    elif by == "login":
        root = root.replace("://", f"://me:{token}@")
    else:
        helper = kept.folder / "helper"
        helper.write_text(f"#!/bin/sh\n[ \"$1\" = get ] && printf 'username=me\\npassword={token}\\n'\nexit 0\n")
        helper.chmod(0o700)
        (kept.folder / ".gitconfig").write_text(f"[credential]\n\thelper = {helper}\n")
    runs = [
        kept("add", root, *options, "--name", "docs", "--verbose"),
        kept("show", "docs", "--verbose"),
        kept("export", str(kept.folder / "exported"), "--verbose"),
    ]
    assert [run.code for run in runs] == [0] * len(runs), runs
    assert files_with(kept.folder / "exported", "tern"), "something was exported"
    output = "".join(run.out + run.err for run in runs)
    assert "git-remote-http" in "".join(lines), "git was running"
    ours = [line for line in "\n".join(lines).splitlines() if "-m kept add" not in line]  # where a person typed it
    for secret in (token, basic):
        assert secret not in output
        assert secret not in "\n".join(ours)
    holder = {"header": set(), "login": {".local/share/kept/secrets.json"}, "helper": {"helper"}}[by]
    assert files_with(kept.folder, token, basic) == holder

    server.login = "me:another"
    refused = kept("refresh", "docs", "--verbose")
    assert refused.code == 1
    assert "requires another login. Give a token that may read it" in refused.err
    assert token not in refused.err
    assert basic not in refused.err
    assert kept.json("show", "docs")["generation"] == 1, "what was active stays active"


# Versions and what is chosen -----------------------------------------------------------------------------------------


def test_a_tag_is_a_version_and_patterns_choose(kept: Kept, server: GitServer) -> None:
    repository = server.repository("o/birds.git")
    repository.commit({"docs/tern.md": TERN, "docs/draft.md": TERN + "\nA draft.\n", "lib/x.md": "# X\n\nCode.\n"})
    repository.git("tag", "v1.2")
    root = f"{server.url}/o/birds.git"
    first = kept.json("add", f"{root}@v1.2", "--exclude", "docs/draft*")
    assert first["source"] == "birds@v1.2"
    assert first["counts"]["new"] == 1
    assert kept.json("add", root, "--include", "lib/*")["source"] == "birds"
    hits = kept.json("search", "tern OR code")["hits"]
    assert {hit["url"].partition("#")[0] for hit in hits} == {f"{root}/v1.2/docs/tern.md", f"{root}/main/lib/x.md"}
    assert "from pole to pole" in kept("read", f"{root}/v1.2/docs/tern.md").out
    listed = kept.json("add", f"{root}#main/docs", "--dry-run")
    assert listed["included"] == [f"{root}/main/docs/draft.md", f"{root}/main/docs/tern.md"]
    assert kept("add", f"{root}@v9").code == 3
    assert kept("add", root, "--as", "folder").code == 2


# Refusals ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("root", "sentence"),
    [
        ("{url}/nothing.git", "does not exist, or requires a login"),
        ("{url}/page.git", "is empty, or its default branch is, or it is not a git repository"),
        ("{url}/dumb.git", "('dumb HTTP'), which cannot serve single commits. Clone it"),
        ("{url}/moved.git", "has moved. Open it in a browser"),
        ("{url}/empty.git", "is empty, or its default branch is, or it is not a git repository"),
        ("{url}/docs.git@gone", "There is no branch or tag 'gone' in {url}/docs.git. If it was deleted or renamed"),
        ("{url}/docs.git#main/nowhere", "There is no 'nowhere' in main of"),
        ("{url}/docs.git#" + "0" * 40, "has no such commit"),
        ("http://127.0.0.1:1/docs.git", "cannot be fetched: 127.0.0.1 is not a public address"),
        ("git://127.0.0.1/docs.git", "cannot be fetched: 127.0.0.1 is not a public address"),
        ("git://" + "x" * 64 + ".test/docs.git", ".test/docs.git cannot be reached: its host name cannot be resolved."),
        ("ssh://git@127.0.0.1/docs.git", "cannot be fetched: 127.0.0.1 is not a public address"),
        ("{folder}/missing.git", "is not a git repository"),
    ],
)
def test_each_refusal_has_advice(server: GitServer, tmp_path: Path, root: str, sentence: str) -> None:
    server.repository("docs.git").commit({"a.md": TERN})
    server.repository("empty.git")
    server.pages["/page.git/info/refs"] = (200, "<h1>A page</h1>")
    dumb = server.repository("docs.git").git("rev-parse", "main")
    server.pages |= {
        "/dumb.git/info/refs": (200, f"{dumb}\trefs/heads/main\n"),
        "/dumb.git/HEAD": (200, "ref: refs/heads/main\n"),
    }
    server.pages["/moved.git/info/refs"] = (301, f"{server.url}/docs.git/info/refs?service=git-upload-pack")
    with pytest.raises(SourceUnavailable) as refused:
        asyncio.run(
            opened(origin_of(root.format(url=server.url, folder=tmp_path), tmp_path / "cache", allowing(server)))
        )
    assert sentence.format(url=server.url) in str(refused.value)


def test_a_token_in_a_server_message_is_not_repeated(server: GitServer, tmp_path: Path) -> None:
    token = f"tok-{uuid4().hex}"
    line = f"ERR {token} is not known here"
    server.pages["/docs.git/info/refs"] = (200, f"001e# service=git-upload-pack\n0000{len(line) + 4:04x}{line}")
    header = Header(name="Authorization", value=f"Bearer {token}")
    settings = SourceSettings(access=replace(allowing(server).access, headers=(header,)))
    with pytest.raises(SourceUnavailable) as refused:
        asyncio.run(opened(origin_of(f"{server.url}/docs.git", tmp_path / "cache", settings)))
    assert "*** is not known here" in str(refused.value)
    assert token not in str(refused.value)


def test_every_request_of_git_passes_the_gate(server: GitServer, tmp_path: Path) -> None:
    server.repository("docs.git").commit({"a.md": TERN})
    (tmp_path / "other").mkdir()

    async def scenario(other: GitServer) -> None:
        way = Transport(settings=allowing(server), environment=PLAIN, look_up=str)
        async with way.connect(f"{server.url}/docs.git") as git:
            assert b"refs/heads/main" in await git("ls-remote", f"{server.url}/docs.git", folder=tmp_path / "none")
            with pytest.raises(ProgramFailed) as refused:
                await git("ls-remote", f"{other.url}/docs.git", folder=tmp_path / "none")
            assert "403" in refused.value.message

    with git_server(tmp_path / "other") as other:
        other.repository("docs.git").commit({"a.md": TERN})
        asyncio.run(scenario(other))
        assert not other.requests


def test_a_hanging_git_is_killed_with_its_children(server: GitServer, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        settings = SourceSettings(access=Access(allowed=(f"127.0.0.1:{port}",)))
        origin = origin_of(f"http://127.0.0.1:{port}/docs.git", tmp_path / "cache", settings)

        async def give_up() -> None:
            opening = asyncio.create_task(opened(origin))
            await asyncio.to_thread(silent.accept)  # it is asked, and says nothing
            assert f"127.0.0.1:{port}/docs.git" in command_lines()
            opening.cancel()
            await asyncio.wait({opening})
            assert opening.cancelled()

        asyncio.run(give_up())
    assert f"127.0.0.1:{port}/docs.git" not in command_lines()


# What lies in repositories -------------------------------------------------------------------------------------------


def test_odd_files_are_left_out_or_kept_exactly(tmp_path: Path) -> None:
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 5\n"
    odd = os.fsdecode(b"b\xff \xc3\xa9#?.md")
    Repository(tmp_path / "odd.git").commit(
        {
            "a.md": TERN,
            odd: TERN,
            "big.md": "x" * 2000,
            "media.md": pointer,
            "120000 link.md": "a.md",
            "160000 module.md": "1" * 40,
            ".hidden/a.md": TERN,
            "a.c": "int main;",
        }
    )
    settings = SourceSettings(limits=Limits(max_bytes=1000))
    found = asyncio.run(opened(origin_of(f"file://{tmp_path}/odd.git", tmp_path / "cache", settings)))
    base = f"file://{tmp_path}/odd.git/main/"
    assert {url.removeprefix(base): type(visit) for url, visit in found.items()} == {
        "a.md": Fetched,
        "b%FF%20%C3%A9%23%3F.md": Fetched,
        "big.md": Refused,
        "media.md": Refused,
    }
    assert found[f"{base}media.md"] == Refused(reason="a Git LFS pointer: the file itself is kept elsewhere")
    fetched = found[f"{base}a.md"]
    assert isinstance(fetched, Fetched)
    assert fetched.body == TERN.encode()
    blob = hashlib.sha1(f"blob {len(TERN)}\0{TERN}".encode()).hexdigest()
    assert fetched.validators.etag == blob


def test_a_broken_incomplete_or_shared_clone_is_repaired(server: GitServer, tmp_path: Path) -> None:
    repository = server.repository("docs.git")
    files = {f"{number}.md": TERN * number for number in range(1, 40)}
    repository.commit(files)
    root, cache = f"{server.url}/docs.git", tmp_path / "cache"
    copy = clone_folder(cache, root)

    async def twice() -> list[dict[str, Visit]]:
        return await asyncio.gather(*(opened(origin_of(root, cache, allowing(server))) for _ in range(2)))

    both = asyncio.run(twice())
    assert both[0] == both[1]
    assert len(both[0]) == 39
    assert stat.S_IMODE(copy.parent.stat().st_mode) == 0o700
    for damage in ("objects", "HEAD", "shallow", "config"):
        files["1.md"] += f"\nAnd {damage}.\n"
        repository.commit(files)
        broken = copy / damage
        shutil.rmtree(broken) if broken.is_dir() else broken.write_bytes(b"\0 nonsense")
        found = asyncio.run(opened(origin_of(root, cache, allowing(server))))
        first = found[f"{root}/main/1.md"]
        assert isinstance(first, Fetched), (damage, first)
        assert first.body.endswith(f"And {damage}.\n".encode())
        assert len(found) == 39
    for pack in copy.glob("objects/pack/*.pack"):
        pack.chmod(0o600)
        pack.write_bytes(pack.read_bytes()[:40] + b"\0" * (pack.stat().st_size - 40))
    for _ in range(2):
        found = {}
        with suppress(SourceUnavailable):
            found = asyncio.run(opened(origin_of(root, cache, allowing(server))))
    assert {type(visit) for visit in found.values()} == {Fetched}, "at the latest by the second crawl"


def test_gits_own_server_works_too(tmp_path: Path) -> None:
    Repository(tmp_path / "served" / "docs.git").commit({"a.md": TERN})
    with git_daemon(tmp_path / "served") as url:
        settings = SourceSettings(access=Access(allowed=(url.removeprefix("git://"),)))
        found = asyncio.run(opened(origin_of(f"{url}/docs.git", tmp_path / "cache", settings)))
    assert list(found) == ["https://127.0.0.1/docs.git/main/a.md"]
    assert [type(visit) for visit in found.values()] == [Fetched]


def test_the_users_ssh_is_used_without_prompts(tmp_path: Path) -> None:
    Repository(tmp_path / "docs.git").commit({"a.md": TERN})
    ssh = tmp_path / "ssh"
    ssh.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/output\nfor last; do :; done\nexec sh -c "$last"\n')
    ssh.chmod(0o700)
    settings = SourceSettings(access=Access(allowed=("127.0.0.1:22",)))
    way = Transport(settings=settings, environment=PLAIN | {"GIT_SSH_COMMAND": str(ssh)}, look_up=str)
    repository = repository_from_root(f"ssh://git@127.0.0.1{tmp_path}/docs.git")
    origin = GitOrigin(repository, settings, transport=way, cache_folder=tmp_path / "cache", type_of=guess_content_type)
    found = asyncio.run(opened(origin))
    assert [type(visit) for visit in found.values()] == [Fetched]
    output = (tmp_path / "output").read_text().splitlines()
    assert len(output) == 3, "where it is, its commit, its file"
    assert all("-oBatchMode=yes" in line and "git@127.0.0.1 git-upload-pack" in line for line in output), output


# Packages ------------------------------------------------------------------------------------------------------------


def make_wheel(folder: Path, version: str, description: str) -> None:
    folder.mkdir(exist_ok=True)
    about = f"birds-{version}.dist-info"
    with zipfile.ZipFile(folder / f"birds-{version}-py3-none-any.whl", "w") as wheel:
        head = f"Metadata-Version: 2.1\nName: birds\nVersion: {version}\nDescription-Content-Type: text/markdown\n"
        wheel.writestr(f"{about}/METADATA", f"{head}\n{description}")
        wheel.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{about}/RECORD", "")
        wheel.writestr("birds/__init__.py", "")
        wheel.writestr("birds/docs/migration.md", "# Migration\n\nWhere they go.\n")


def test_a_python_package_is_downloaded_by_pip_without_running_it(kept: Kept, tmp_path: Path) -> None:
    if not shutil.which("pip"):
        pytest.skip("pip is not installed")
    make_wheel(tmp_path / "wheels", "1.0", "# Birds \u00e9\n\nSee [migration](birds/docs/migration.md).\n")
    kept.environment |= {
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": str(tmp_path / "wheels"),
        "PIP_CACHE_DIR": str(tmp_path),
    }
    first = kept.json("add", "pypi:Birds@1.0")
    assert (first["source"], first["counts"]["new"]) == ("birds@1.0", 2)
    page = kept("read", "pypi:/birds@1.0/README.md").out
    assert "# Birds \u00e9" in page
    assert kept("read", "pypi:/birds@1.0/birds/docs/migration.md").code == 0
    missing = kept("add", "pypi:Birds@2.0")
    assert missing.code == 3
    assert missing.sentence.startswith("There is no package pypi:birds@2.0 as a wheel, as far as your pip knows.")


def test_an_npm_package_is_downloaded_by_npm_from_the_users_registry(kept: Kept, server: GitServer) -> None:
    if not shutil.which("npm"):
        pytest.skip("npm is not installed")
    archive = io.BytesIO()
    files = {
        "package.json": '{"name": "birds", "version": "1.2.3"}',
        "README.md": TERN,
        "docs/more.md": "# More\n\nOf it.\n",
    }
    with tarfile.open(fileobj=archive, mode="w:gz") as tar:
        for name, text in (files | {"lib/notes.md": "# Notes\n\nNo documentation.\n"}).items():
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(text)
            tar.addfile(member, io.BytesIO(text.encode()))
    packed = archive.getvalue()
    dist = {"tarball": f"{server.url}/birds.tgz", "shasum": hashlib.sha1(packed).hexdigest()}
    version = {"name": "birds", "version": "1.2.3", "dist": dist}
    document = {"name": "birds", "dist-tags": {"latest": "1.2.3"}, "versions": {"1.2.3": version}}
    server.pages["/birds"] = (200, json.dumps(document))
    server.pages["/birds.tgz"] = (200, packed.decode("latin-1"))
    kept.environment |= {"npm_config_registry": f"{server.url}/", "npm_config_update_notifier": "false"}
    added = kept.json("add", "npm:birds")
    assert (added["source"], added["counts"]["new"]) == ("birds", 2)
    hit = kept.json("search", "pole to pole")["hits"][0]
    assert hit["url"] == "npm:/birds/README.md#terns"
    assert {path for _, path in server.requests} == {"/birds", "/birds.tgz"}
