"""The credentials of the machine's owner serve the sources of the owner, and of nobody else."""

import asyncio
import os
import shutil
from pathlib import Path

import pytest

from kept import settings as app
from kept.errors import SourceUnavailable
from kept.model.package import Package
from kept.model.source import Access, Authority, SourceKind, SourceSettings
from kept.origins.git.program import make_git_environment
from kept.origins.packages.download import download_package, make_gated_environment
from kept.origins.web.client_factory import make_http_client
from kept.origins.web.gate_proxy import GateProxy
from kept.runtime.origin_factory import make_permitted_origin
from tests.sites.repositories import git_server


@pytest.mark.parametrize("credentials", ["netrc", "helper", "header", "rewrite"])
def test_what_the_owners_git_may_read_a_caller_may_not(tmp_path: Path, credentials: str) -> None:
    home = tmp_path / "home"
    home.mkdir()
    with git_server(tmp_path / "served") as server:
        server.repository("secret.git").commit({"a.md": "# Secret\n\nOf the owner.\n"})
        server.login = "owner:password"
        address = server.url.removeprefix("http://")
        config, basic = "", "b3duZXI6cGFzc3dvcmQ="
        match credentials:
            case "netrc":
                (home / ".netrc").write_text("machine 127.0.0.1 login owner password password\n")
            case "helper":
                config = "[credential]\n\thelper = store\n"
                (home / ".git-credentials").write_text(f"http://owner:password@{address}\n")
            case "header":
                config = f'[http]\n\textraHeader = "Authorization: Basic {basic}"\n'
            case "rewrite":
                config = f'[url "http://owner:password@{address}/"]\n\tinsteadOf = http://{address}/\n'
        (home / ".gitconfig").write_text(config)
        environment = {"HOME": str(home), "PATH": os.environ["PATH"], "KEPT_NETWORK__ALLOW_PRIVATE": "1"}
        loaded = app.load(environment=environment, folder=tmp_path)
        settings = SourceSettings(access=Access(allowed=(address,)))

        async def list_files(authority: Authority) -> list[str]:
            root = f"{server.url}/secret.git"
            origin = make_permitted_origin(SourceKind.GIT, root, settings, loaded, authority)
            try:
                await origin.open()
                return [listed.url async for listed in origin.list()]
            finally:
                await origin.close()

        owners = asyncio.run(list_files(Authority.OWNER))
        assert [url.rpartition("/")[2] for url in owners] == ["a.md"], "and so it is in the owner's clone"
        with pytest.raises(SourceUnavailable, match="requires another login"):
            asyncio.run(list_files(Authority.CALLER))


def test_git_and_package_programs_of_a_caller_know_nothing_of_the_owner(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text('[url "ssh://evil/"]\n\tinsteadOf = https://\n')
    user = {
        "HOME": str(tmp_path),
        "PATH": os.environ["PATH"],
        "SSH_AUTH_SOCK": "/x",
        "GIT_SSH_COMMAND": "ssh",
        "TOKEN": "t",
        "KRB5CCNAME": "FILE:/x",
        "GIT_SSL_CERT": "/x",
        "https_proxy": "http://x",
        "NO_PROXY": "*",
        "PIP_INDEX_URL": "http://x",
        "npm_config_registry": "http://x",
        "NODE_OPTIONS": "-r /x",
        "PYTHONPATH": "/x",
    }
    neutral = make_git_environment(user, [], protocol="https", uses_user_tools=False)
    leaked = set(user.items()) & set(neutral.items()) - {("PATH", user["PATH"])}
    assert not leaked
    assert str(tmp_path) not in neutral.values()
    assert (neutral["GIT_ALLOW_PROTOCOL"], neutral["GIT_SSH_COMMAND"]) == ("https", "false")
    assert asyncio.run(git_config(neutral, "url.ssh://evil/.insteadOf")) == ""
    assert asyncio.run(git_config(make_git_environment(user, [], protocol="https"), "url.ssh://evil/.insteadOf"))
    # Negotiate would use a Kerberos ticket, which libraries find without HOME.
    assert asyncio.run(git_config(neutral, "http.emptyAuth")) == "false\n"
    assert neutral["KRB5CCNAME"] == "FILE:/dev/null"


async def git_config(environment: dict[str, str], name: str) -> str:
    process = await asyncio.create_subprocess_exec(
        "git", "config", "--get", name, env=environment, stdout=asyncio.subprocess.PIPE
    )
    out, _ = await process.communicate()
    return out.decode()


@pytest.mark.parametrize(
    ("registry", "program", "question", "answer"),
    [
        ("npm", "npm", "config get registry", "https://registry."),
        ("pypi", "pip", "config list", ""),
    ],
)
def test_the_package_programs_of_a_caller_have_no_configuration_of_anybody(
    tmp_path: Path, registry: str, program: str, question: str, answer: str
) -> None:
    """Not of the user, and not of whoever can write to a folder above that of the download."""
    real = shutil.which(program)
    if not real:
        pytest.skip(f"{program} is not installed")
    for folder in (tmp_path, tmp_path / "home"):
        folder.mkdir(exist_ok=True)
        (folder / ".npmrc").write_text("registry=http://127.0.0.1:9/evil/\n")
        (folder / "package.json").write_text("{}")
    (tmp_path / "home" / ".config" / "pip").mkdir(parents=True)
    (tmp_path / "home" / ".config" / "pip" / "pip.conf").write_text("[global]\nindex-url = http://127.0.0.1:9/evil/\n")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / program).write_text(f"#!/bin/sh\n{real} {question} > asked 2>&1 && touch x.tgz\n")
    (tmp_path / "bin" / program).chmod(0o755)
    download = tmp_path / "download"
    download.mkdir()
    user = {"HOME": str(tmp_path / "home"), "PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"}

    async def run() -> str:
        client = make_http_client("", SourceSettings())
        async with GateProxy(client) as proxy:
            environment = make_gated_environment(user, proxy)
            await download_package(Package(registry=registry, name="birds"), download, environment)
        await client.close()
        return (download / "asked").read_text()

    asked = asyncio.run(run())
    assert asked.startswith(answer)
    assert "evil" not in asked
