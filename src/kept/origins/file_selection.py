"""Selects the files of a repository or a package to index. Pure: paths in, paths out.

The source's patterns decide. Without any, folders of documentation and every README are selected; where there is no
such folder, every readable file is (decision 13).
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import translate

from kept.model.source import Scope

DOCUMENTATION_FOLDERS = frozenset(
    {"doc", "docs", "documentation", "manual", "guide", "guides", "handbook", "book", "wiki"}
)
NON_DOCUMENTATION_FOLDERS = frozenset(
    {"node_modules", "vendor", "third_party", "test", "tests", "testing", "testdata", "fixtures"}
)


class FileSelection:
    """The files that a source's settings select."""

    def __init__(self, scope: Scope, type_of: Callable[[str], str | None], *, subfolder: str = "") -> None:
        """``subfolder``: only this folder, or this one file; patterns are relative to it."""
        self._type_of = type_of
        self._included = [re.compile(translate(glob)) for glob in scope.include]
        self._excluded = [re.compile(translate(glob)) for glob in scope.exclude]
        self._subfolder = subfolder.strip("/")

    def select(self, paths: Iterable[str]) -> list[str]:
        """Return the selected ones of all paths of a tree."""
        admitted = [path for path in paths if self.why_excluded(path) is None]
        if self._included or self._subfolder or not any(map(is_in_documentation, admitted)):
            return admitted
        return [path for path in admitted if is_in_documentation(path) or _is_readme(path)]

    def why_excluded(self, path: str) -> str | None:
        """Return why the settings exclude a path; None when they do not (``select`` may still leave it out)."""
        if self._type_of(path) is None:
            return "not a kind of file that can be read"
        if path != self._subfolder and self._subfolder and not path.startswith(f"{self._subfolder}/"):
            return "outside the source's folder"
        path = path.removeprefix(f"{self._subfolder}/") if self._subfolder else path
        if any(part.startswith(".") for part in path.split("/")):
            return "hidden, or in a hidden folder"
        if self._included and not any(glob.match(path) for glob in self._included):
            return "left out by the source's patterns"
        return "left out by the source's patterns" if any(glob.match(path) for glob in self._excluded) else None


def is_in_documentation(path: str) -> bool:
    """Return whether a file is in a folder of documentation."""
    folders = {part.lower() for part in path.split("/")[:-1]}
    return bool(folders & DOCUMENTATION_FOLDERS) and not folders & NON_DOCUMENTATION_FOLDERS


def _is_readme(path: str) -> bool:
    *folders, name = path.lower().split("/")
    return name.partition(".")[0] == "readme" and not NON_DOCUMENTATION_FOLDERS & set(folders)
