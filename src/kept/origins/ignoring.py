"""Which files a folder's ``.gitignore`` and ``.keptignore`` leave out: by the rules of gitignore(5).

Each file speaks about what lies below it. The deepest that says something decides, and in one file the last line that
matches; ``.keptignore`` comes after ``.gitignore``. What lies in a folder that is left out cannot be taken in again.
"""

import os
import re
from dataclasses import dataclass

FILES = (".gitignore", ".keptignore")
LARGEST = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Line:
    pattern: re.Pattern[str]
    takes_in: bool  # it began with '!'
    only_folders: bool


@dataclass(frozen=True, slots=True)
class Ignoring:
    """What the ignore files from the root down to a folder say."""

    files: tuple[tuple[str, tuple[Line, ...]], ...] = ()  # the folder below the root with its slash, its lines

    def below(self, folder: str, lines: tuple[Line, ...]) -> "Ignoring":
        return Ignoring((*self.files, (folder, lines))) if lines else self

    def leaves_out(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder, named by its path below the root, is left out by itself."""
        for folder, lines in reversed(self.files):
            inside = path[len(folder) :]
            for line in reversed(lines):
                if (is_folder or not line.only_folders) and line.pattern.fullmatch(inside):
                    return not line.takes_in
        return False


def read(folder: str, names: "set[str]") -> tuple[Line, ...]:
    """What the ignore files of a folder say, of which these names are there."""
    lines: list[Line] = []
    for name in FILES:
        if name in names:
            try:
                with open(os.path.join(folder, name), encoding="utf-8", errors="surrogateescape") as file:
                    lines += parse(file.read(LARGEST))
            except OSError:
                continue  # what cannot be read leaves nothing out
    return tuple(lines)


def parse(text: str) -> list[Line]:
    return [line for one in text.removeprefix("\ufeff").split("\n") if (line := _line(one.removesuffix("\r")))]


def _line(text: str) -> Line | None:
    if text.startswith("#"):
        return None
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    takes_in = text.startswith("!")
    text = text[1:] if takes_in else text
    only_folders = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    anchored = "/" in text
    try:
        pattern = re.compile(("" if anchored else "(?:.*/)?") + _pattern(text.removeprefix("/")), re.DOTALL)
    except re.error:
        return None
    return Line(pattern, takes_in, only_folders)


_TOKEN = re.compile(
    r"(?P<start>\A\*\*/)|(?P<middle>/\*\*/)|(?P<end>/\*\*\Z)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


def _pattern(glob: str) -> str:
    """A glob as a regular expression for the whole path."""
    return "".join(_translated(found) for found in _TOKEN.finditer(glob))


def _translated(found: re.Match[str]) -> str:
    if found["set"] is not None:
        inside = re.sub(r"\[:(\w+):\]|\\?([^-\w\s])|\\(.)", _in_set, found["set"])
        return f"(?!/)[{'^' if found['not'] else ''}{inside}]"
    kind = found.lastgroup
    return {"start": "(?:.*/)?", "middle": "/(?:.*/)?", "end": "/.+", "stars": "[^/]*", "one": "[^/]"}.get(
        kind or "", re.escape(found["escaped"] or found["plain"] or "")
    )


def _in_set(one: re.Match[str]) -> str:
    return _CLASSES.get(one[1], "") if one[1] else "\\" + one[2] if one[2] else one[3]


_CLASSES = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}
