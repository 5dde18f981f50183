"""Ignore files of a folder, ``.gitignore`` and ``.keptignore``, by the rules of gitignore(5).

A file's patterns apply to the paths below it. The deepest file with a match decides, and in it the last line that
matches; ``.keptignore`` counts after ``.gitignore``. A file in an ignored folder cannot be included again.
Why not a library: decision 26.
"""

import errno
import os
import re
import stat
from collections.abc import Sequence
from dataclasses import dataclass

IGNORE_FILES = (".gitignore", ".keptignore")
MAX_BYTES = 1024 * 1024
MAX_PATTERN_CHARACTERS = 4096
MAX_GLOBS = 2_000  # patterns with wildcards for one path, of all files together: matching them takes a millisecond
_WILDCARD = re.compile(r"[*?\[\\]")


@dataclass(frozen=True, slots=True)
class IgnoreRule:
    pattern: re.Pattern[str] | None  # None: it is the literal
    literal: str  # a name at any depth, or "/" and a path
    is_negated: bool  # began with '!'
    folders_only: bool


class TooManyPatterns(Exception):
    """The ignore files of a folder and of those above it would take too long to match."""


class FolderRules:
    """The rules of one folder. Names and paths are looked up; only patterns with wildcards are tried one by one."""

    def __init__(self, folder: str, rules: Sequence[IgnoreRule]) -> None:
        self.folder = folder  # path below the root with its slash
        self._rules = rules
        self.globs = [number for number, rule in enumerate(rules) if rule.pattern]
        self._last_literal = {rule.literal: number for number, rule in enumerate(rules) if not rule.pattern}
        self._last_for_files = {
            rule.literal: number for number, rule in enumerate(rules) if not (rule.pattern or rule.folders_only)
        }

    def last_match(self, path: str, *, is_folder: bool) -> IgnoreRule | None:
        literals = self._last_literal if is_folder else self._last_for_files
        found = max(literals.get(path.rpartition("/")[2], -1), literals.get(f"/{path}", -1))
        for number in reversed(self.globs):
            if number < found:
                break
            rule = self._rules[number]
            if (is_folder or not rule.folders_only) and rule.pattern and rule.pattern.fullmatch(path):
                return rule
        return self._rules[found] if found >= 0 else None


@dataclass(frozen=True, slots=True)
class IgnoreRules:
    """The rules of all ignore files from the root down to a folder."""

    rules_by_folder: tuple[FolderRules, ...] = ()

    def with_folder(self, folder: str, rules: Sequence[IgnoreRule]) -> "IgnoreRules":
        """Return these rules and those of a folder below. Raises TooManyPatterns."""
        if not rules:
            return self
        found = (*self.rules_by_folder, FolderRules(folder, rules))
        if sum(len(one.globs) for one in found) > MAX_GLOBS:
            raise TooManyPatterns(f"its ignore files have more than {MAX_GLOBS:,} patterns with wildcards")
        return IgnoreRules(found)

    def is_ignored(self, path: str, *, is_folder: bool) -> bool:
        """Return whether a pattern matches this path below the root itself; folders above it are not considered."""
        for rules in reversed(self.rules_by_folder):
            rule = rules.last_match(path[len(rules.folder) :], is_folder=is_folder)
            if rule:
                return not rule.is_negated
        return False


def read_rules(folder: str, names: set[str]) -> tuple[IgnoreRule, ...]:
    """Return the rules of a folder's ignore files, of which those in ``names`` exist."""
    rules: list[IgnoreRule] = []
    for name in IGNORE_FILES:
        if name in names:
            try:
                path = os.path.join(folder, name)
                with open(path, encoding="utf-8", errors="surrogateescape", opener=open_regular_file) as file:
                    rules += parse_rules(file.read(MAX_BYTES))
            except OSError:
                continue  # an unreadable ignore file ignores nothing
    return tuple(rules)


def open_regular_file(path: str, flags: int) -> int:
    """Open a regular file, as an ``opener`` for open(): follows no link, and does not wait for a pipe."""
    file = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        raise OSError(errno.EINVAL, "not a regular file")
    return file


def parse_rules(text: str) -> list[IgnoreRule]:
    """Return the rules of an ignore file. Raises TooManyPatterns before they are compiled, which takes longest."""
    lines = text.removeprefix("\ufeff").split("\n")
    if sum(1 for line in lines if _WILDCARD.search(line)) > MAX_GLOBS:
        raise TooManyPatterns(f"its ignore files have more than {MAX_GLOBS:,} patterns with wildcards")
    return [rule for line in lines if (rule := _parse_rule(line.removesuffix("\r")))]


def _parse_rule(text: str) -> IgnoreRule | None:
    if text.startswith("#"):
        return None
    while text.endswith(" ") and not text.endswith("\\ "):
        text = text[:-1]
    is_negated = text.startswith("!")
    text = text[1:] if is_negated else text
    folders_only = text.endswith("/")
    text = text.removesuffix("/")
    if not text:
        return None
    if len(text) > MAX_PATTERN_CHARACTERS:
        return None  # no path is as long
    is_anchored = "/" in text
    text = text.removeprefix("/")
    if not _WILDCARD.search(text):
        return IgnoreRule(None, f"/{text}" if is_anchored else text, is_negated, folders_only)
    try:
        pattern = re.compile(_glob_to_regex(text, any_depth=not is_anchored), re.DOTALL)
    except re.error:
        return None
    return IgnoreRule(pattern, "", is_negated, folders_only)


_TOKEN = re.compile(
    r"(?P<start>\A(?:\*\*/)+)|(?P<middle>/(?:\*\*/)+)|(?P<end>(?:\A|/)\*\*\Z)|(?P<stars>\*+)|(?P<one>\?)"
    r"|\[(?P<not>[!^]?)(?P<set>\]?(?:\\.|\[:\w+:\]|[^\]\\])*)\]|\\(?P<escaped>.)|(?P<plain>.)",
    re.DOTALL,
)


def _glob_to_regex(glob: str, *, any_depth: bool) -> str:
    """Translate a glob to a regular expression for the whole path.

    The text between two wildcards is matched where it first occurs, in an atomic group: if the rest does not match
    after that, it matches nowhere. Backtracking over every occurrence would take exponential time.
    """
    spans, pieces = [""], [""]  # parts between '**'; pieces of the last name between '*'
    for token in _TOKEN.finditer(glob):
        kind = token.lastgroup
        if kind == "start":
            any_depth = True
        elif kind == "stars":
            pieces.append("")
        elif kind == "middle" or token[0] in ("/", "\\/"):
            spans[-1] += _segment_regex(pieces) + "/"
            spans += [""] if kind == "middle" else []
            pieces = [""]
        else:
            pieces[-1] += _token_regex(token)
    *leading, last = [*spans[:-1], spans[-1] + _segment_regex(pieces)]
    prefix = "".join(f"(?>{'(?:.*?/)??' if any_depth or number else ''}{span})" for number, span in enumerate(leading))
    return prefix + ("(?:.*/)?" if any_depth or leading else "") + last


def _segment_regex(pieces: list[str]) -> str:
    first, *others = pieces
    *between, last = others or [""]
    return first + "".join(f"(?>[^/]*?{piece})" for piece in between) + (f"[^/]*{last}" if others else "")


def _token_regex(token: re.Match[str]) -> str:
    if token["set"] is not None:
        items = re.sub(r"\[:(\w+):\]|\\?([^-\w\s])|\\(.)", _class_item_regex, token["set"])
        return f"(?!/)[{'^' if token['not'] else ''}{items}]"
    if token.lastgroup in ("end", "one"):
        return token[0].replace("**", ".+") if token.lastgroup == "end" else "[^/]"
    return re.escape(token["escaped"] or token["plain"])


def _class_item_regex(item: re.Match[str]) -> str:
    return _CLASSES.get(item[1], "") if item[1] else "\\" + item[2] if item[2] else item[3]


_CLASSES = {"alpha": "A-Za-z", "digit": "0-9", "alnum": "A-Za-z0-9", "upper": "A-Z", "lower": "a-z", "space": r"\s"}
