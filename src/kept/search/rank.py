"""Ranks candidates by more than full text: pure, and the same for every database.

Full text counts how often words occur. Added here is what a reader would see at a glance: the section is *about* the
query (its heading is the name that was searched for), its page is, or other sections of the page match too. Pages that
are rarely wanted, such as release notes, changelogs and lists of links, lose unless the query mentions them.
"""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from typing import NamedTuple

from kept.model.section import SectionMatch
from kept.model.tokens import defined_symbols, parse_symbol, tokenize
from kept.search.query import Query


class RankWeights(NamedTuple):
    """How much each signal adds to the score of full text, which is ``text`` for the best candidate."""

    text: float = 1.0
    exact_name: float = 1.0  # its heading or its anchor is the name that was searched for
    exact_spelling: float = 0.45  # and spelled in the same way
    inner_name: float = 1.0  # its name is part of the query; times that part's share of the query
    listed_definition: float = 0.8  # it defines the name, among others
    glossary_page: float = 0.4  # and its page is for definitions
    heading: float = 0.35  # words in the heading, as a share of query and heading
    ancestor_headings: float = 0.2  # words in the title and the headings above
    url: float = 0.15
    literal: float = 0.25  # the text has the query literally
    all_terms: float = 0.36  # it has every word
    page_support: float = 0.22  # other sections of the page match
    low_value_factor: float = 0.5  # multiplies the score of release notes, indexes …


DEFAULT_WEIGHTS = RankWeights()


def rank_sections(
    query: Query,
    matches: Sequence[SectionMatch],
    scores: Mapping[int, float],
    full_matches: Set[int],
    weights: RankWeights = DEFAULT_WEIGHTS,
) -> list[tuple[float, SectionMatch]]:
    """Return the sections with their scores, best first. ``full_matches`` are the ids of those with every word."""
    if not matches:
        return []
    best = max(scores[match.id] for match in matches) or 1.0
    candidates = [_section_stems(match) for match in matches]
    term_weights = _term_weights(query, candidates)
    base_scores = [
        weights.text * scores[match.id] / best
        + weights.all_terms * (match.id in full_matches)
        + _signal_score(query, term_weights, match, section, weights)
        for match, section in zip(matches, candidates, strict=True)
    ]
    scores_by_page: dict[str, list[float]] = defaultdict(list)
    for match, score in zip(matches, base_scores, strict=True):
        scores_by_page[match.document_id].append(score)
    page_scores = {page: sum(sorted(found, reverse=True)[:4]) for page, found in scores_by_page.items()}
    wants_low_value = not _LOW_VALUE_QUERY_WORDS.isdisjoint(query.words)
    ranked = []
    for match, score in zip(matches, base_scores, strict=True):
        score += weights.page_support * math.log1p(max(0.0, page_scores[match.document_id] - score))
        if not wants_low_value and (match.kind in _LOW_VALUE_KINDS or is_low_value_page(match.url)):
            score *= weights.low_value_factor
        ranked.append((score, match))
    ranked.sort(key=lambda pair: (-pair[0], pair[1].id, pair[1].source_name, pair[1].url))
    return ranked


class _SectionStems(NamedTuple):
    """Stems of the words in a section's heading, above it, and in its URL."""

    heading: Set[str]
    ancestors: Set[str]
    url: Set[str]


def _section_stems(match: SectionMatch) -> _SectionStems:
    url = stems(_path(match.url))
    return _SectionStems(
        stems(match.heading), stems(_ancestor_text(match)), url | stems(match.anchor) if match.anchor else url
    )


def _signal_score(
    query: Query, term_weights: Mapping[str, float], match: SectionMatch, section: _SectionStems, weights: RankWeights
) -> float:
    heading, ancestors, url = section
    heading_words, in_heading, in_either, in_url = 0, 0.0, 0.0, 0.0
    for word, weight in term_weights.items():
        if word in heading:
            heading_words += 1
            in_heading += weight
            in_either += weight
        elif word in ancestors:
            in_either += weight
        if word in url:
            in_url += weight
    if heading_words:
        in_heading *= 0.5 + 0.5 * heading_words / len(heading)
    return (
        _definition_score(query, term_weights, match, ancestors, url, weights)
        + weights.heading * in_heading
        + weights.ancestor_headings * in_either
        + weights.url * in_url
        + weights.literal * (query.text.lower() in match.text.lower())
    )


def _definition_score(
    query: Query,
    term_weights: Mapping[str, float],
    match: SectionMatch,
    ancestors: Set[str],
    url: Set[str],
    weights: RankWeights,
) -> float:
    """Return what is added if the section defines the name that the query asks for, else 0."""
    name = query.joined_words
    if match.entry and _names_entry(name, match):
        return weights.exact_name + weights.exact_spelling * (query.text.strip("()") in match.heading)
    symbol = parse_symbol(match.heading)
    if symbol:
        if "".join(symbol) == name:
            return weights.exact_name + weights.exact_spelling * (query.text.strip("()") in match.heading)
        own_stems = {stem(word) for word in symbol}
        # A member and its owner: the query has all of the heading, the rest stands above it or in the URL.
        if own_stems < term_weights.keys() and term_weights.keys() - own_stems <= ancestors | url:
            return 0.9 * weights.exact_name
    anchor = "".join(tokenize(match.anchor)) if match.anchor and len(term_weights) > 1 else ""
    if anchor.endswith(name):
        return weights.exact_name
    for inner_name in query.inner_names:
        joined = "".join(inner_name)
        if joined == "".join(symbol) or anchor.endswith(joined):
            return weights.inner_name * sum([term_weights.get(stem(word), 0.0) for word in inner_name])
    if _names_entry(name, match) or any("".join(defined) == name for defined in defined_symbols(match.text)):
        return weights.listed_definition + weights.glossary_page * any(
            word in f"{_path(match.url)} {_ancestor_text(match)}".lower() for word in _GLOSSARY_NAMES
        )
    return 0.0


def _names_entry(name: str, match: SectionMatch) -> bool:
    """Return whether the section is, or holds, an entry of this name."""
    if not match.entry and not match.entries:
        return False
    return any("".join(parse_symbol(entry)) == name for entry in (match.entry, *[entry for entry, _ in match.entries]))


def _term_weights(query: Query, candidates: Sequence[_SectionStems]) -> dict[str, float]:
    """Return, by stem, how well each word of the query tells the candidates apart. The weights add up to 1."""
    weights = {}
    for word in map(stem, query.words):
        frequency = sum([word in section.heading or word in section.ancestors for section in candidates])
        weights[word] = math.log(1 + len(candidates) / (1 + frequency))
    total = sum(weights.values()) or 1.0
    return {word: weight / total for word, weight in weights.items()}


def _ancestor_text(match: SectionMatch) -> str:
    return f"{match.title}\n{match.headings.rpartition(chr(10))[0]}"


def _path(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]


_LOW_VALUE_KINDS = frozenset({"changelog", "contents", "index", "search", "stub"})
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
    """Whether a page is release notes, a changelog or an index, which mention everything and explain nothing."""
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
    """Return a word without its ending, roughly: 'logging', 'logs' and 'log' become the same."""
    if len(word) < 4 or word.endswith("ss") or not word.isalpha():
        return word
    short = next((word.removesuffix(ending) for ending in _ENDINGS if word.endswith(ending)), word)
    if len(short) < 3:
        return word.removesuffix("s")
    return short[:-1] if len(short) > 3 and short[-1] == short[-2] and short[-1] not in "aeiouls" else short
