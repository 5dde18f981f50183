"""Downloads a package's archive with the user's own npm or pip, and so with their registry, proxy and credentials.

No code of a package is ever run (decision 18): npm runs without scripts, and pip downloads only wheels, because it
would have to run a source archive's build to learn its name.
"""

import email
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from kept.errors import SourceMissing, SourceUnavailable
from kept.model.package import Package
from kept.origins.subprocesses import ProgramFailed, make_neutral_environment, run_program
from kept.origins.web.gate_proxy import GateProxy

DOWNLOAD_SECONDS = 300.0
_README_NAMES = {"text/markdown": "README.md", "text/x-rst": "README.rst", "": "README.rst"}
_NOT_FOUND = re.compile(r"\bE404\b|\bETARGET\b|No matching distribution|Could not find a version|404 Client Error")


async def download_package(package: Package, folder: Path, environment: Mapping[str, str]) -> Path:
    """Download the archive into a folder and return its path. Raises SourceUnavailable."""
    separator = "@" if package.registry == "npm" else "=="
    specifier = f"{package.name}{separator}{package.version}" if package.version else package.name
    program = _find_program(package.registry, environment)
    # npm takes the settings of the project around it: without its own, another user could plant one in a folder above.
    (folder / "package.json").write_text("{}")
    try:
        command = (*program, *_DOWNLOAD_ARGUMENTS[package.registry], specifier)
        await run_program(*command, environment=environment, cwd=folder, seconds=DOWNLOAD_SECONDS)
    except ProgramFailed as failed:
        raise _download_error(package, failed.message) from None
    archives = sorted(path for path in folder.iterdir() if path.suffix in (".tgz", ".gz", ".whl"))
    if not archives:
        raise SourceUnavailable(f"'{program[0]}' downloaded no archive of {package.root}.")
    return archives[0]


def make_gated_environment(user_environment: Mapping[str, str], proxy: GateProxy) -> dict[str, str]:
    """Return the environment of npm and pip without the user's configuration, through a proxy."""
    url = proxy.url.replace("://", f"://{proxy.username}:{proxy.password}@")
    # npm refuses one file as both of its configurations.
    no_config = {
        "PIP_CONFIG_FILE": "/dev/null",
        "npm_config_userconfig": "/dev/null",
        "npm_config_globalconfig": "/dev/null/none",
    }
    proxies = dict.fromkeys(
        ("http_proxy", "https_proxy", "PIP_PROXY", "npm_config_proxy", "npm_config_https_proxy"), url
    )
    return make_neutral_environment(user_environment) | no_config | proxies | {"npm_config_cache": "./cache"}


_DOWNLOAD_ARGUMENTS = {
    "npm": ("pack", "--ignore-scripts", "--silent", "--loglevel=error", "--"),
    "pypi": (
        *("download", "--no-deps", "--only-binary=:all:", "--quiet", "--no-input", "--disable-pip-version-check"),
        *("--dest", ".", "--"),
    ),
}


def _find_program(registry: str, environment: Mapping[str, str]) -> list[str]:
    names = ("npm",) if registry == "npm" else ("pip", "pip3")
    for name in names:
        if program := shutil.which(name, path=environment.get("PATH")):
            return [program]
    raise SourceUnavailable(f"This needs the program '{names[0]}', which is not installed here.")


def _download_error(package: Package, message: str) -> SourceUnavailable:
    wheel, tool = (" as a wheel", "pip") if package.registry == "pypi" else ("", "npm")
    if _NOT_FOUND.search(message):
        return SourceMissing(
            f"There is no package {package.root}{wheel}, as far as your {tool} knows. Check its name and version."
        )
    command = "pack" if tool == "npm" else "download --no-deps --only-binary=:all:"
    return SourceUnavailable(
        f"{package.root} cannot be downloaded now. To see why, run: {tool} {command} {package.name}"
    )


def extract_readme(metadata: bytes) -> tuple[str, bytes] | None:
    """Return the long description in a wheel's METADATA as a file name and its text; None when it has none."""
    message = email.message_from_string(metadata.decode("utf-8", "replace"))
    body = message.get_payload()
    text = body if isinstance(body, str) and body.strip() else str(message.get("Description", ""))
    if not text.strip():
        return None
    content_type = str(message.get("Description-Content-Type", "")).partition(";")[0].strip().lower()
    return _README_NAMES.get(content_type, "README.txt"), text.encode()
