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

from kept.model.words import defined, name, words
from kept.search.query import Query
from kept.store.database import Row


class Weights(NamedTuple):
    """What each sign adds to the score of full text, which is ``text`` for the best candidate."""

    text: float = 1.0
    defines: float = 1.0  # its heading or its anchor is the name that was asked for
    spelled: float = 0.45  # and spelled in the same way
    inner: float = 1.0  # it is a name among the words that were asked for, as a share of them
    passing: float = 0.8  # the name is defined there, among others
    glossary: float = 0.4  # that is what the page is for
    heading: float = 0.35  # the words in the heading, as a share of both
    above: float = 0.2  # in the title and the headings above
    url: float = 0.15
    literal: float = 0.25  # in the text, as they were typed
    every: float = 0.36  # all of the words
    page: float = 0.22  # other sections of the page
    aside: float = 0.5  # what is left of the score of release notes, indexes …


WEIGHTS = Weights()


def rank(
    query: Query, rows: Sequence[Row], scores: Mapping[int, float], whole: Set[int], weights: Weights = WEIGHTS
) -> list[tuple[float, Row]]:
    """The rows with their scores, best first. Those in ``whole`` have every word."""
    if not rows:
        return []
    best = max(scores[row["id"]] for row in rows) or 1.0
    places = [_place(row) for row in rows]
    rare = _rarity(query, places)
    scored = [
        weights.text * scores[row["id"]] / best
        + weights.every * (row["id"] in whole)
        + _signs(query, rare, row, place, weights)
        for row, place in zip(rows, places, strict=True)
    ]
    pages: dict[str, list[float]] = defaultdict(list)
    for row, score in zip(rows, scored, strict=True):
        pages[row["document_id"]].append(score)
    support = {page: sum(sorted(found, reverse=True)[:4]) for page, found in pages.items()}
    asides = not _ASIDE_WORDS.isdisjoint(query.words)
    ranked = []
    for row, score in zip(rows, scored, strict=True):
        score += weights.page * math.log1p(max(0.0, support[row["document_id"]] - score))
        ranked.append((score if asides or not is_aside(row["url"]) else score * weights.aside, row))
    ranked.sort(key=lambda pair: (-pair[0], pair[1]["id"], pair[1]["source_name"], pair[1]["url"]))
    return ranked


# What a candidate shows at a glance.


class _Place(NamedTuple):
    """The stems of where a section stands."""

    heading: Set[str]
    above: Set[str]
    url: Set[str]


def _place(row: Row) -> _Place:
    url = stems(_path(row["url"]))
    return _Place(stems(row["heading"]), stems(_above(row)), url | stems(row["anchor"]) if row["anchor"] else url)


def _signs(query: Query, rare: Mapping[str, float], row: Row, place: _Place, weights: Weights) -> float:
    heading, above, url = place
    both, in_heading, in_either, in_url = 0, 0.0, 0.0, 0.0
    for word, weight in rare.items():
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
        _definition(query, rare, row, above, url, weights)
        + weights.heading * in_heading
        + weights.above * in_either
        + weights.url * in_url
        + weights.literal * (query.typed.lower() in row["text"].lower())
    )


def _definition(
    query: Query, rare: Mapping[str, float], row: Row, above: Set[str], url: Set[str], weights: Weights
) -> float:
    """What it is worth that the section defines the name, if it does."""
    asked, heading = query.whole, row["heading"]
    own = name(heading)
    if own:
        if "".join(own) == asked:
            return weights.defines + weights.spelled * (query.typed.strip("()") in heading)
        short = {stem(word) for word in own}
        if short < rare.keys() and rare.keys() - short <= above | url:  # a member, and its owner
            return 0.9 * weights.defines
    anchor = "".join(words(row["anchor"])) if row["anchor"] and len(rare) > 1 else ""
    if anchor.endswith(asked):
        return weights.defines
    for inner in query.inner:
        called = "".join(inner)
        if called == "".join(own) or anchor.endswith(called):
            return weights.inner * sum([rare.get(stem(word), 0.0) for word in inner])
    if any("".join(term) == asked for term in defined(row["text"])):
        return weights.passing + weights.glossary * any(
            word in f"{_path(row['url'])} {_above(row)}".lower() for word in _GLOSSARIES
        )
    return 0.0


def _rarity(query: Query, places: Sequence[_Place]) -> dict[str, float]:
    """How much each word, by its stem, tells the candidates apart; together 1."""
    weights = {}
    for word in map(stem, query.words):
        having = sum([word in place.heading or word in place.above for place in places])
        weights[word] = math.log(1 + len(places) / (1 + having))
    total = sum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}


def _above(row: Row) -> str:
    return f"{row['title']}\n{row['headings'].rpartition(chr(10))[0]}"


def _path(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


_ASIDE = frozenset({"changelog", "genindex", "modindex", "release", "releases", "relnotes", "whatsnew"})
_LISTS = frozenset({
    "_modules", "allclasses-index", "allpackages-index", "changes", "class-use", "constant-values", "contents",
    "deprecated-list", "help-doc", "history", "index-all", "index-files", "new-list", "news", "overview-tree",
    "package-tree", "package-use", "search", "serialized-form", "whats-new",
})  # fmt: skip
_ASIDE_WORDS = frozenset({
    "change", "changed", "changelog", "changes", "deprecated", "deprecation", "history", "index", "new", "news",
    "release", "released", "releases", "removed", "source", "upgrade", "upgrading", "version",
})  # fmt: skip


_GLOSSARIES = ("glossary", "terminology")


@lru_cache(maxsize=4096)
def is_aside(url: str) -> bool:
    """Release notes, changelogs, indexes and listings: they mention everything and explain nothing."""
    names = [part.partition(".")[0] for part in _path(url).lower().split("/")]
    return any(name in _LISTS or not _ASIDE.isdisjoint(name.replace("_", "-").split("-")) for name in names)


@lru_cache(maxsize=4096)
def stems(text: str) -> frozenset[str]:
    return frozenset(map(stem, words(text)))


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
