"""The state of one page while it is read: the current module and domain, the roles it defines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

_SILENT_LANGUAGES: Final = frozenset({"default", "none", "text", "txt", "plain", "guess", "plaintext"})
_LANGUAGE_ALIASES: Final = {
    "python3": "python", "py": "python", "py3": "python", "ipython": "python", "ipython3": "python",
    "pycon3": "pycon", "c++": "cpp", "shell": "sh", "rest": "rst", "restructuredtext": "rst",
}  # fmt: skip


@dataclass(slots=True)
class Page:
    """The state of one page's reading. Directives change it in the order of the text."""

    domain: str = "py"
    module: str = ""
    class_path: list[str] = field(default_factory=list)  # of the descriptions around
    program: str = ""
    shows_modules: bool = True  # before the names of functions and classes
    files: Mapping[str, bytes] = field(default_factory=dict)  # that the page includes
    included: set[str] = field(default_factory=set)  # their names, so far
    included_characters: int = 0
    roles: dict[str, str] = field(default_factory=dict)  # that the page defines, to the role they are based on
    default_role: str = ""


def code_language_name(name: str) -> str:
    """Return the name under which a language is written in fences; "" where it says nothing."""
    name = name.strip().lower()
    if name in _SILENT_LANGUAGES or not name.isprintable() or any(mark in name for mark in ' `"<>&'):
        return ""
    return _LANGUAGE_ALIASES.get(name, name)
