"""Which files of a repository or a package are kept. Pure: paths go in, paths come out.

Patterns that a person gave decide. Without any, where there is a folder of documentation, that and every README are
kept; a repository without one is taken for documentation itself, and all of it is kept that can be read (decision 13).
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
    """The files that a source's settings have in."""

    def __init__(self, scope: Scope, type_of: Callable[[str], str | None], *, subfolder: str = "") -> None:
        """``below``: only this folder, or this one file; patterns count from there."""
        self._type_of = type_of
        self._included = [re.compile(translate(glob)) for glob in scope.include]
        self._excluded = [re.compile(translate(glob)) for glob in scope.exclude]
        self._subfolder = subfolder.strip("/")

    def select(self, paths: Iterable[str]) -> list[str]:
        """Those of all the paths there are that are kept."""
        possible = [path for path in paths if self.why_excluded(path) is None]
        if self._included or self._subfolder or not any(map(_is_in_documentation, possible)):
            return possible
        return [path for path in possible if _is_in_documentation(path) or _is_readme(path)]

    def why_excluded(self, path: str) -> str | None:
        """Why a path is none of the source, by its settings alone; None: it could be."""
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


def _is_in_documentation(path: str) -> bool:
    folders = {part.lower() for part in path.split("/")[:-1]}
    return bool(folders & DOCUMENTATION_FOLDERS) and not folders & NON_DOCUMENTATION_FOLDERS


def _is_readme(path: str) -> bool:
    *folders, name = path.lower().split("/")
    return name.partition(".")[0] == "readme" and not NON_DOCUMENTATION_FOLDERS & set(folders)
