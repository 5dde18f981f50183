"""Which files a folder's ``.gitignore`` and ``.keptignore`` leave out: by the rules of gitignore(5).

Each file speaks about what lies below it. The deepest that says something decides, and in one file the last line that
matches; ``.keptignore`` comes after ``.gitignore``. What lies in a folder that is left out cannot be taken in again.
"""

import errno
import os
import re
import stat

from kept.model.nouns import dataclass

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
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="surrogateescape", opener=carefully) as file:
                    lines += parse(file.read(LARGEST))
            except OSError:
                continue  # what cannot be read leaves nothing out
    return tuple(lines)


def carefully(path: str, flags: int) -> int:
    """How open() opens what should be a file of the folder: no link is followed, and no pipe is waited for."""
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


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
        pattern = re.compile(_pattern(text.removeprefix("/"), anywhere=not anchored), re.DOTALL)
    except re.error:
        return None
    return Line(pattern, takes_in, only_folders)


_TOKEN = re.compile(
    r"(?P<start>\A(?:\*\*/)+)|(?P<middle>/(?:\*\*/)+)|(?P<end>(?:\A|/)\*\*\Z)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


def _pattern(glob: str, *, anywhere: bool) -> str:
    """A glob as a regular expression for the whole path.

    What stands between two wildcards is taken where it first fits: if the rest does not fit behind that, it fits
    nowhere. Trying all places of all of them, as expressions do by themselves, could take for ever.
    """
    stretches, pieces = [""], [""]  # what is between '**', and of its last name what is between '*'
    for found in _TOKEN.finditer(glob):
        kind = found.lastgroup
        if kind == "start":
            anywhere = True
        elif kind == "stars":
            pieces.append("")
        elif kind == "middle" or found[0] in ("/", "\\/"):
            stretches[-1] += _name(pieces) + "/"
            stretches += [""] if kind == "middle" else []
            pieces = [""]
        else:
            pieces[-1] += _translated(found)
    *before, last = [*stretches[:-1], stretches[-1] + _name(pieces)]
    passed = "".join(f"(?>{'(?:.*?/)??' if anywhere or number else ''}{one})" for number, one in enumerate(before))
    return passed + ("(?:.*/)?" if anywhere or before else "") + last


def _name(pieces: list[str]) -> str:
    first, *others = pieces
    *between, last = others or [""]
    return first + "".join(f"(?>[^/]*?{piece})" for piece in between) + (f"[^/]*{last}" if others else "")


def _translated(found: re.Match[str]) -> str:
    if found["set"] is not None:
        inside = re.sub(r"\[:(\w+):\]|\\?([^-\w\s])|\\(.)", _in_set, found["set"])
        return f"(?!/)[{'^' if found['not'] else ''}{inside}]"
    if found.lastgroup in ("end", "one"):
        return found[0].replace("**", ".+") if found.lastgroup == "end" else "[^/]"
    return re.escape(found["escaped"] or found["plain"])


def _in_set(one: re.Match[str]) -> str:
    return _CLASSES.get(one[1], "") if one[1] else "\\" + one[2] if one[2] else one[3]


_CLASSES = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}
