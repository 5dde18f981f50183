"""Two orders become one: by rank, since their scores have nothing to do with each other."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

RRF_K = 3
VECTOR_WEIGHT = 0.1  # of meaning; words have the rest


def fuse_rankings(
    lexical: Sequence[T], vector: Sequence[T], *, vector_weight: float = VECTOR_WEIGHT, k: int = RRF_K
) -> list[tuple[T, float]]:
    """What either found, best first, with a score of at most 1: each place counts less than the one before it.

    Of two that come out alike, the one that words rank higher is first, then the one that meaning does.
    """
    scores: dict[T, float] = {}
    for found, share in ((lexical, 1 - vector_weight), (vector, vector_weight)):
        for place, one in enumerate(dict.fromkeys(found)):
            scores[one] = scores.get(one, 0.0) + share * (k + 1) / (k + 1 + place)
    return sorted(scores.items(), key=lambda item: -item[1])
