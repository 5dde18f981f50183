"""Two orders become one: by rank, since their scores have nothing to do with each other."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

K = 3
WEIGHT = 0.1  # of meaning; words have the rest


def fuse(words: Sequence[T], meaning: Sequence[T], *, weight: float = WEIGHT, k: int = K) -> list[tuple[T, float]]:
    """What either found, best first, with a score of at most 1: each place counts less than the one before it.

    Of two that come out alike, the one that words rank higher is first, then the one that meaning does.
    """
    scores: dict[T, float] = {}
    for found, share in ((words, 1 - weight), (meaning, weight)):
        for place, one in enumerate(dict.fromkeys(found)):
            scores[one] = scores.get(one, 0.0) + share * (k + 1) / (k + 1 + place)
    return sorted(scores.items(), key=lambda item: -item[1])
