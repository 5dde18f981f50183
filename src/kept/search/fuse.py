"""Reciprocal rank fusion of lexical and vector search, whose scores cannot be compared."""

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

RRF_K = 3
VECTOR_WEIGHT = 0.1  # of 1; the lexical ranking has the rest


def fuse_rankings(
    lexical: Sequence[T], vector: Sequence[T], *, vector_weight: float = VECTOR_WEIGHT, k: int = RRF_K
) -> list[tuple[T, float]]:
    """Return the items of both rankings, best first, each with a score of at most 1.

    Of equal scores, the item that the lexical ranking has first comes first, then the vector ranking's order counts.
    """
    scores: dict[T, float] = {}
    for ranking, weight in ((lexical, 1 - vector_weight), (vector, vector_weight)):
        for rank, item in enumerate(dict.fromkeys(ranking)):
            scores[item] = scores.get(item, 0.0) + weight * (k + 1) / (k + 1 + rank)
    return sorted(scores.items(), key=lambda scored: -scored[1])
