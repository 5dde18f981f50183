"""Which version label answers to what a person asks for: pure.

18          the newest 18: 18.3.1 before 18.2; a label 18 answers for 18.2 as well
^18.2       the newest that is at least 18.2 and still an 18 (below 1, the second number counts: ^0.4 is a 0.4)
~18.2       the newest 18.2
latest      the newest that is no pre-release, if there is one
"""

import re
from collections.abc import Iterable
from functools import lru_cache

LATEST = "latest"
_LABEL = re.compile(r"[vV]?(\d+(?:\.\d+)*)[.-]?(.*)")

_VersionKey = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def best_match(requested: str, labels: Iterable[str]) -> str | None:
    """The label that answers best; None: none does."""
    found = sorted(labels, key=version_key)
    requested = requested.strip()
    if requested in found:
        return requested
    if requested in ("", LATEST):
        stable = [label for label in found if not is_prerelease(label)]
        return max(stable or found, key=version_key, default=None)
    sign, numbers = (
        (requested[0], _release_numbers(requested[1:])) if requested[0] in "^~" else ("", _release_numbers(requested))
    )
    if not numbers:
        return None
    fitting = [label for label in found if _satisfies(_release_numbers(label), sign, numbers)]
    stable = [label for label in fitting if not is_prerelease(label)] or fitting
    if stable:
        return stable[-1]
    wider = [label for label in found if (short := _release_numbers(label)) and numbers[: len(short)] == short]
    return wider[-1] if wider else None


@lru_cache(maxsize=1024)
def version_key(label: str) -> _VersionKey:
    """Sorts labels as versions: numbers as numbers, a pre-release before its release, what is no version first."""
    match = _LABEL.fullmatch(label)
    numbers = _release_numbers(label)
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    rest = match[2] if match else label
    parts = tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|\D+", rest))
    return numbers, bool(match) and not rest, parts


def is_prerelease(label: str) -> bool:
    """Alpha, beta, release candidate: not what somebody means who says 'latest'."""
    return bool(
        re.search(r"\d[.-]?(?:a|b|c|rc|alpha|beta|dev|pre|preview|next|canary|nightly|snapshot)", label.lower())
    )


def _release_numbers(label: str) -> tuple[int, ...]:
    match = _LABEL.fullmatch(label)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def _satisfies(numbers: tuple[int, ...], operator: str, requested: tuple[int, ...]) -> bool:
    if operator == "^":
        # The first number that is not 0 may not change.
        fixed = next((at for at, number in enumerate(requested, 1) if number), len(requested))
    else:
        fixed = min(2, len(requested)) if operator == "~" else len(requested)
    same = numbers[:fixed] == requested[:fixed] and len(numbers) >= fixed
    return same and (not operator or numbers[: len(requested)] >= requested or len(numbers) < len(requested))
