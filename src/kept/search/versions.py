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

_Order = tuple[tuple[int, ...], bool, tuple[tuple[bool, int, str], ...]]


def best(target: str, labels: Iterable[str]) -> str | None:
    """The label that answers best; None: none does."""
    found = sorted(labels, key=order)
    target = target.strip()
    if target in found:
        return target
    if target in ("", LATEST):
        stable = [label for label in found if not is_early(label)]
        return max(stable or found, key=order, default=None)
    sign, numbers = (target[0], _numbers(target[1:])) if target[0] in "^~" else ("", _numbers(target))
    if not numbers:
        return None
    fitting = [label for label in found if _fits(_numbers(label), sign, numbers)]
    stable = [label for label in fitting if not is_early(label)] or fitting
    if stable:
        return stable[-1]
    wider = [label for label in found if (short := _numbers(label)) and numbers[: len(short)] == short]
    return wider[-1] if wider else None


@lru_cache(maxsize=1024)
def order(label: str) -> _Order:
    """Sorts labels as versions: numbers as numbers, a pre-release before its release, what is no version first."""
    match = _LABEL.fullmatch(label)
    numbers = _numbers(label)
    while numbers and not numbers[-1]:
        numbers = numbers[:-1]
    rest = match[2] if match else label
    parts = tuple((part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|\D+", rest))
    return numbers, bool(match) and not rest, parts


def is_early(label: str) -> bool:
    """Alpha, beta, release candidate: not what somebody means who says 'latest'."""
    return bool(
        re.search(r"\d[.-]?(?:a|b|c|rc|alpha|beta|dev|pre|preview|next|canary|nightly|snapshot)", label.lower())
    )


def _numbers(label: str) -> tuple[int, ...]:
    match = _LABEL.fullmatch(label)
    return tuple(int(part) for part in match[1].split(".")) if match else ()


def _fits(numbers: tuple[int, ...], sign: str, asked: tuple[int, ...]) -> bool:
    if sign == "^":
        # The first number that is not 0 may not change.
        fixed = next((at for at, number in enumerate(asked, 1) if number), len(asked))
    else:
        fixed = min(2, len(asked)) if sign == "~" else len(asked)
    same = numbers[:fixed] == asked[:fixed] and len(numbers) >= fixed
    return same and (not sign or numbers[: len(asked)] >= asked or len(numbers) < len(asked))
