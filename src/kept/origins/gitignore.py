"""Which files a folder's ``.gitignore`` and ``.keptignore`` leave out: by the rules of gitignore(5).

Each file speaks about what lies below it. The deepest that says something decides, and in one file the last line that
matches; ``.keptignore`` comes after ``.gitignore``. What lies in a folder that is left out cannot be taken in again.
"""

import errno
import os
import re
import stat
from dataclasses import dataclass

IGNORE_FILES = (".gitignore", ".keptignore")
MAX_BYTES = 1024 * 1024


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    pattern: re.Pattern[str]
    is_negated: bool  # it began with '!'
    folders_only: bool


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """What the ignore files from the root down to a folder say."""

    rules_by_folder: tuple[
        tuple[str, tuple[IgnoreRule, ...]], ...
    ] = ()  # the folder below the root with its slash, its lines

    def with_folder(self, folder: str, rules: tuple[IgnoreRule, ...]) -> "IgnoreRules":
        return IgnoreRules((*self.rules_by_folder, (folder, rules))) if rules else self

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """Whether a file or folder, named by its path below the root, is left out by itself."""
        for folder, lines in reversed(self.rules_by_folder):
            inside = path[len(folder) :]
            for line in reversed(lines):
                if (is_folder or not line.folders_only) and line.pattern.fullmatch(inside):
                    return not line.is_negated
        return False


def read_rules(folder: str, names: "set[str]") -> tuple[IgnoreRule, ...]:
    """What the ignore files of a folder say, of which these names are there."""
    lines: list[IgnoreRule] = []
    for name in IGNORE_FILES:
        if name in names:
            try:
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="surrogateescape", opener=open_regular_file) as file:
                    lines += parse_rules(file.read(MAX_BYTES))
            except OSError:
                continue  # what cannot be read leaves nothing out
    return tuple(lines)


def open_regular_file(path: str, flags: int) -> int:
    """How open() opens what should be a file of the folder: no link is followed, and no pipe is waited for."""
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def parse_rules(text: str) -> list[IgnoreRule]:
    return [line for one in text.removeprefix("\ufeff").split("\n") if (line := _parse_rule(one.removesuffix("\r")))]


def _parse_rule(text: str) -> IgnoreRule | None:
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
        pattern = re.compile(_glob_to_regex(text.removeprefix("/"), anywhere=not anchored), re.DOTALL)
    except re.error:
        return None
    return IgnoreRule(pattern, takes_in, only_folders)


_TOKEN = re.compile(
    r"(?P<start>\A(?:\*\*/)+)|(?P<middle>/(?:\*\*/)+)|(?P<end>(?:\A|/)\*\*\Z)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


def _glob_to_regex(glob: str, *, anywhere: bool) -> str:
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
            stretches[-1] += _segment_regex(pieces) + "/"
            stretches += [""] if kind == "middle" else []
            pieces = [""]
        else:
            pieces[-1] += _token_regex(found)
    *before, last = [*stretches[:-1], stretches[-1] + _segment_regex(pieces)]
    passed = "".join(f"(?>{'(?:.*?/)??' if anywhere or number else ''}{one})" for number, one in enumerate(before))
    return passed + ("(?:.*/)?" if anywhere or before else "") + last


def _segment_regex(pieces: list[str]) -> str:
    first, *others = pieces
    *between, last = others or [""]
    return first + "".join(f"(?>[^/]*?{piece})" for piece in between) + (f"[^/]*{last}" if others else "")


def _token_regex(found: re.Match[str]) -> str:
    if found["set"] is not None:
        inside = re.sub(r"\[:(\w+):\]|\\?([^-\w\s])|\\(.)", _class_item_regex, found["set"])
        return f"(?!/)[{'^' if found['not'] else ''}{inside}]"
    if found.lastgroup in ("end", "one"):
        return found[0].replace("**", ".+") if found.lastgroup == "end" else "[^/]"
    return re.escape(found["escaped"] or found["plain"])


def _class_item_regex(one: re.Match[str]) -> str:
    return _CLASSES.get(one[1], "") if one[1] else "\\" + one[2] if one[2] else one[3]


_CLASSES = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}
