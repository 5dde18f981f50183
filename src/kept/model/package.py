"""Published packages, whose archives contain documentation: 'npm:left-pad@1.3.0', 'pypi:requests'."""

import re
from dataclasses import dataclass

from kept.errors import InvalidInput

PYTHON_MODULE_TYPE = "text/x-python-module"
"""The content type of a module that is read for its docstrings. No server sends it."""

_ROOT = re.compile(r"(npm|pypi):(?!/)(@?[^@]+)(?:@(.*))?", re.IGNORECASE)
_NAME_PATTERNS = {
    "npm": re.compile(r"(?:@[a-z0-9~][\w.~-]*/)?[a-z0-9~][\w.~-]*", re.IGNORECASE),
    "pypi": re.compile(r"[a-z0-9](?:[\w.-]*[a-z0-9])?", re.IGNORECASE),
}
_VERSION = re.compile(r"[A-Za-z0-9][\w.+!-]{0,59}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Package:
    registry: str  # npm or pypi
    name: str
    version: str = ""  # empty: the newest

    @property
    def root(self) -> str:
        return f"{self.registry}:{self.name}{f'@{self.version}' if self.version else ''}"

    @property
    def base_url(self) -> str:
        """Return the start of its documents' URLs. No site serves them, so the form is Kept's own."""
        return self.root.replace(":", ":/", 1) + "/"


def parse_package(root: str) -> Package | None:
    """Return the package that a root names, or None if it names none. Raises InvalidInput for an impossible name."""
    found = _ROOT.fullmatch(root)
    if not found:
        return None
    registry, name, version = found[1].lower(), found[2], found[3] or ""
    if not _NAME_PATTERNS[registry].fullmatch(name) or (version and not _VERSION.fullmatch(version)):
        raise InvalidInput(f"{root} is no package. It should look like npm:left-pad@1.3.0 or pypi:requests.")
    if registry == "pypi":
        name = re.sub(r"[-_.]+", "-", name).lower()
    return Package(registry=registry, name=name, version=version)
