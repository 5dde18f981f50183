"""Ranks candidates by a weighted sum of their features: pure, and the same for every database.

The weights were fitted to judged queries of some manuals and are measured on others: ``python -m bench.quality.fit``.
"""

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from kept.model.section import SectionMatch
from kept.search.features import Features, compute_features
from kept.search.page_kinds import is_listing
from kept.search.query import Query

WEIGHTS_FILE = Path(__file__).with_name("ranking_weights.json")


@cache
def fitted_weights() -> Features:
    """Return the weight of each feature."""
    return Features(**json.loads(WEIGHTS_FILE.read_text("utf-8")))


def rank_sections(
    query: Query,
    matches: Sequence[SectionMatch],
    frequencies: Mapping[str, int],
    named_sources: Mapping[str, str],
    weights: Features | None = None,
) -> list[tuple[float, SectionMatch]]:
    """Return the sections with their scores, best first."""
    weights = weights or fitted_weights()
    features = compute_features(query, matches, frequencies, named_sources)
    ranked = [
        (sum([weight * value for weight, value in zip(weights, found, strict=True)]), match)
        for match, found in zip(matches, features, strict=True)
    ]
    # What only points to other pages never comes before them.
    ranked.sort(
        key=lambda pair: (
            is_listing(pair[1].kind, pair[1].url),
            -pair[0],
            pair[1].url,
            pair[1].position,
            pair[1].source_name,
        )
    )
    return ranked
