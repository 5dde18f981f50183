"""Which of the candidates answers best: pure, and the same for every database.

Full text knows how often words occur. What a person would see at a glance comes on top: this section is *about* it
(its heading is the name that was asked for), it stands on a page about it, other sections of the page match as well;
and what nobody looks for unless they say so: release notes, changelogs, lists of links.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from kept.model.tokens import defined_symbols, parse_symbol, tokenize
from kept.search.query import Query
from kept.store.database import Row


class RankWeights(NamedTuple):
    """What each sign adds to the score of full text, which is ``text`` for the best candidate."""

    text: float = 1.0
    exact_name: float = 1.0  # its heading or its anchor is the name that was asked for
    exact_spelling: float = 0.45  # and spelled in the same way
    inner_name: float = 1.0  # it is a name among the words that were asked for, as a share of them
    listed_definition: float = 0.8  # the name is defined there, among others
    glossary_page: float = 0.4  # that is what the page is for
    heading: float = 0.35  # the words in the heading, as a share of both
    ancestor_headings: float = 0.2  # in the title and the headings above
    url: float = 0.15
    literal: float = 0.25  # in the text, as they were typed
    all_terms: float = 0.36  # all of the words
    page_support: float = 0.22  # other sections of the page
    low_value_factor: float = 0.5  # what is left of the score of release notes, indexes …


DEFAULT_WEIGHTS = RankWeights()


def rank_sections(
    query: Query,
    rows: Sequence[Row],
    scores: Mapping[int, float],
    full_matches: Set[int],
    weights: RankWeights = DEFAULT_WEIGHTS,
) -> list[tuple[float, Row]]:
    """The rows with their scores, best first. Those in ``whole`` have every word."""
    if not rows:
        return []
    best = max(scores[row["id"]] for row in rows) or 1.0
    places = [_section_stems(row) for row in rows]
    rare = _term_weights(query, places)
    scored = [
        weights.text * scores[row["id"]] / best
        + weights.all_terms * (row["id"] in full_matches)
        + _signal_score(query, rare, row, place, weights)
        for row, place in zip(rows, places, strict=True)
    ]
    pages: dict[str, list[float]] = defaultdict(list)
    for row, score in zip(rows, scored, strict=True):
        pages[row["document_id"]].append(score)
    support = {page: sum(sorted(found, reverse=True)[:4]) for page, found in pages.items()}
    asides = not _LOW_VALUE_QUERY_WORDS.isdisjoint(query.words)
    ranked = []
    for row, score in zip(rows, scored, strict=True):
        score += weights.page_support * math.log1p(max(0.0, support[row["document_id"]] - score))
        ranked.append((score if asides or not is_low_value_page(row["url"]) else score * weights.low_value_factor, row))
    ranked.sort(key=lambda pair: (-pair[0], pair[1]["id"], pair[1]["source_name"], pair[1]["url"]))
    return ranked


# What a candidate shows at a glance.


class _SectionStems(NamedTuple):
    """The stems of where a section stands."""

    heading: Set[str]
    ancestors: Set[str]
    url: Set[str]


def _section_stems(row: Row) -> _SectionStems:
    url = stems(_path(row["url"]))
    return _SectionStems(
        stems(row["heading"]), stems(_ancestor_text(row)), url | stems(row["anchor"]) if row["anchor"] else url
    )


def _signal_score(
    query: Query, term_weights: Mapping[str, float], row: Row, section: _SectionStems, weights: RankWeights
) -> float:
    heading, above, url = section
    both, in_heading, in_either, in_url = 0, 0.0, 0.0, 0.0
    for word, weight in term_weights.items():
        if word in heading:
            both += 1
            in_heading += weight
            in_either += weight
        elif word in above:
            in_either += weight
        if word in url:
            in_url += weight
    if both:
        in_heading *= 0.5 + 0.5 * both / len(heading)
    return (
        _definition_score(query, term_weights, row, above, url, weights)
        + weights.heading * in_heading
        + weights.ancestor_headings * in_either
        + weights.url * in_url
        + weights.literal * (query.text.lower() in row["text"].lower())
    )


def _definition_score(
    query: Query, term_weights: Mapping[str, float], row: Row, ancestors: Set[str], url: Set[str], weights: RankWeights
) -> float:
    """What it is worth that the section defines the name, if it does."""
    asked, heading = query.joined_words, row["heading"]
    own = parse_symbol(heading)
    if own:
        if "".join(own) == asked:
            return weights.exact_name + weights.exact_spelling * (query.text.strip("()") in heading)
        short = {stem(word) for word in own}
        if short < term_weights.keys() and term_weights.keys() - short <= ancestors | url:  # a member, and its owner
            return 0.9 * weights.exact_name
    anchor = "".join(tokenize(row["anchor"])) if row["anchor"] and len(term_weights) > 1 else ""
    if anchor.endswith(asked):
        return weights.exact_name
    for inner in query.inner_names:
        called = "".join(inner)
        if called == "".join(own) or anchor.endswith(called):
            return weights.inner_name * sum([term_weights.get(stem(word), 0.0) for word in inner])
    if any("".join(term) == asked for term in defined_symbols(row["text"])):
        return weights.listed_definition + weights.glossary_page * any(
            word in f"{_path(row['url'])} {_ancestor_text(row)}".lower() for word in _GLOSSARY_NAMES
        )
    return 0.0


def _term_weights(query: Query, candidates: Sequence[_SectionStems]) -> dict[str, float]:
    """How much each word, by its stem, tells the candidates apart; together 1."""
    weights = {}
    for word in map(stem, query.words):
        having = sum([word in place.heading or word in place.ancestors for place in candidates])
        weights[word] = math.log(1 + len(candidates) / (1 + having))
    total = sum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}


def _ancestor_text(row: Row) -> str:
    return f"{row['title']}\n{row['headings'].rpartition(chr(10))[0]}"


def _path(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


_LOW_VALUE_NAMES = frozenset({"changelog", "genindex", "modindex", "release", "releases", "relnotes", "whatsnew"})
_LISTING_NAMES = frozenset({
    "_modules", "allclasses-index", "allpackages-index", "changes", "class-use", "constant-values", "contents",
    "deprecated-list", "help-doc", "history", "index-all", "index-files", "new-list", "news", "overview-tree",
    "package-tree", "package-use", "search", "serialized-form", "whats-new",
})  # fmt: skip
_LOW_VALUE_QUERY_WORDS = frozenset({
    "change", "changed", "changelog", "changes", "deprecated", "deprecation", "history", "index", "new", "news",
    "release", "released", "releases", "removed", "source", "upgrade", "upgrading", "version",
})  # fmt: skip


_GLOSSARY_NAMES = ("glossary", "terminology")


@lru_cache(maxsize=4096)
def is_low_value_page(url: str) -> bool:
    """Release notes, changelogs, indexes and listings: they mention everything and explain nothing."""
    names = [part.partition(".")[0] for part in _path(url).lower().split("/")]
    return any(
        name in _LISTING_NAMES or not _LOW_VALUE_NAMES.isdisjoint(name.replace("_", "-").split("-")) for name in names
    )


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, tokenize(text)))


_ENDINGS = ("ings", "ing", "ies", "ied", "es", "ed", "ers", "er", "ly", "s", "e", "y")


@lru_cache(maxsize=16384)
def stem(word: str) -> str:
    """A word without its ending, roughly: enough to see that 'logging', 'logs' and 'log' are about the same."""
    if len(word) < 4 or word.endswith("ss") or not word.isalpha():
        return word
    short = next((word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)), word)
    if len(short) < 3:
        return word.removesuffix("s")
    return short[:-1] if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "aeiouls" else short
