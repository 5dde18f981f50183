"""Chooses the version label that best satisfies a requested version.

18          the newest 18: 18.3.1 before 18.2; the label 18 also satisfies 18.2
^18.2       the newest 18 that is at least 18.2 (below 1, the second number counts: ^0.4 is a 0.4)
~18.2       the newest 18.2
latest      the newest that is not a pre-release, if there is one
"""

import re
from collections.abc import Iterable
from functools import lru_cache

LATEST = "latest"
_LABEL = re.compile(r"[vV]?(\d+(?:\.\d+)*)[.-]?(.*)")

_VersionKey = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def best_match(requested: str, labels: Iterable[str]) -> str | None:
    """Return the label that satisfies the request best, or None."""
    ordered = sorted(labels, key=version_key)
    requested = requested.strip()
    if requested in ordered:
        return requested
    if requested in ("", LATEST):
        stable = [label for label in ordered if not is_prerelease(label)]
        return max(stable or ordered, key=version_key, default=None)
    operator, numbers = (
        (requested[0], _release_numbers(requested[1:])) if requested[0] in "^~" else ("", _release_numbers(requested))
    )
    if not numbers:
        return None
    satisfying = [label for label in ordered if _satisfies(_release_numbers(label), operator, numbers)]
    stable = [label for label in satisfying if not is_prerelease(label)] or satisfying
    if stable:
        return stable[-1]
    wider = [label for label in ordered if (short := _release_numbers(label)) and numbers[: len(short)] == short]
    return wider[-1] if wider else None


@lru_cache(maxsize=1024)
def version_key(label: str) -> _VersionKey:
    """Return a sort key: labels that are no versions first, numbers by value, a pre-release before its release."""
    match = _LABEL.fullmatch(label)
    numbers = _release_numbers(label)
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    rest = match[2] if match else label
    parts = tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|\D+", rest))
    return numbers, bool(match) and not rest, parts


def is_prerelease(label: str) -> bool:
    """Whether a label is an alpha, beta, release candidate or the like, which 'latest' does not mean."""
    return bool(
        re.search(r"\d[.-]?(?:a|b|c|rc|alpha|beta|dev|pre|preview|next|canary|nightly|snapshot)", label.lower())
    )


def _release_numbers(label: str) -> tuple[int, ...]:
    match = _LABEL.fullmatch(label)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def _satisfies(numbers: tuple[int, ...], operator: str, requested: tuple[int, ...]) -> bool:
    if operator == "^":
        # The first number that is not 0 must not change.
        fixed = next((at for at, number in enumerate(requested, 1) if number), len(requested))
    else:
        fixed = min(2, len(requested)) if operator == "~" else len(requested)
    same = numbers[:fixed] == requested[:fixed] and len(numbers) >= fixed
    return same and (not operator or numbers[: len(requested)] >= requested or len(numbers) < len(requested))
