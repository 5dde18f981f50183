"""A package's archive, by the user's own npm or pip: their registry, proxy and credentials count.

Nothing of a package is ever run. npm is told to leave scripts alone; pip would have to run a source archive's build to
learn its name, so only wheels are taken. See decision 18.
"""

import email
import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from kept.errors import SourceMissing, SourceUnavailable
from kept.model.package import Package
from kept.origins.subprocesses import ProgramFailed, run_program

DOWNLOAD_SECONDS = 300.0
_README_NAMES = {"text/markdown": "README.md", "text/x-rst": "README.rst", "": "README.rst"}
_NOT_FOUND = re.compile(r"\bE404\b|\bETARGET\b|No matching distribution|Could not find a version|404 Client Error")


async def download_package(package: Package, folder: Path, environment: Mapping[str, str]) -> Path:
    """The archive in the folder. Raises SourceUnavailable."""
    separator = "@" if package.registry == "npm" else "=="
    named = f"{package.name}{separator}{package.version}" if package.version else package.name
    program = _find_program(package.registry, environment)
    try:
        command = (*program, *_DOWNLOAD_ARGUMENTS[package.registry], named)
        await run_program(*command, environment=environment, cwd=folder, seconds=DOWNLOAD_SECONDS)
    except ProgramFailed as failed:
        raise _download_error(package, failed.message) from None
    found = sorted(path for path in folder.iterdir() if path.suffix in (".tgz", ".gz", ".whl"))
    if not found:
        raise SourceUnavailable(f"'{program[0]}' brought no archive of {package.root}.")
    return found[0]


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
        if found := shutil.which(name, path=environment.get("PATH")):
            return [found]
    raise SourceUnavailable(f"This needs the program '{names[0]}', which is not installed here.")


def _download_error(package: Package, message: str) -> SourceUnavailable:
    wheel, tool = (" as a wheel", "pip") if package.registry == "pypi" else ("", "npm")
    if _NOT_FOUND.search(message):
        return SourceMissing(
            f"There is no package {package.root}{wheel}, as far as your {tool} knows. Check its name and version."
        )
    by_hand = "pack" if tool == "npm" else "download --no-deps --only-binary=:all:"
    return SourceUnavailable(
        f"{package.root} cannot be had now. See what your {tool} says: {tool} {by_hand} {package.name}"
    )


def extract_readme(metadata: bytes) -> tuple[str, bytes] | None:
    """The long description in a wheel's METADATA: a name for it, and its text."""
    message = email.message_from_string(metadata.decode("utf-8", "replace"))
    body = message.get_payload()
    text = body if isinstance(body, str) and body.strip() else str(message.get("Description", ""))
    if not text.strip():
        return None
    kind = str(message.get("Description-Content-Type", "")).partition(";")[0].strip().lower()
    return _README_NAMES.get(kind, "README.txt"), text.encode()
