"""Describes by numbers how a section, its headings, its page and its names match a query, as a reader would see it.

Pure, and the same for every database: a section's score in full text is not among them. ``rank`` weighs them.
"""

import math
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

from kept.model.section import SectionMatch
from kept.model.tokens import Term, defined_terms, fold_text, parse_symbol, tokenize
from kept.search.page_kinds import is_low_value, wants_low_value
from kept.search.query import Query
from kept.search.stems import stem, stems

MAX_TEXT_CHARACTERS = 8_000  # of a section that are looked at
COMMON = 300  # a word in so many sections is as common as one in more
_ASSUMED_SECTIONS = 3000
_TYPICAL_CHARACTERS = 1500
_SATURATION = 1.2


class Features(NamedTuple):
    """How a section matches a query: from 0 (not at all) to 1, or a little more."""

    body: float  # its words, by rarity and frequency, as BM25 counts them
    coverage: float  # the share of the query's words in it or above it
    all_words: float  # it has all of them
    heading: float  # the share of the query's words in its heading
    heading_purity: float  # and of its heading's words in the query
    above: float  # the share in its heading, the headings above it and the title
    title: float
    url: float
    exact_name: float  # its heading is the name that was searched for
    exact_spelling: float  # spelled in the same way
    exact_url: float  # its page is called like the query
    exact_anchor: float
    owner_and_member: float  # its heading is a member, and the rest of the query names its owner
    inner_name: float  # its name is part of the query: that part's share
    defines: float  # it defines the name, among others
    defines_part: float  # it defines a rare word of the query
    defines_sign: float  # it defines the flags and operators of the query
    has_sign: float
    literal: float  # it has the query literally
    heading_literal: float
    adjacent: float  # the share of neighbouring words that are neighbours in it
    first: float  # it is the first section of its page
    depth: float
    short: float  # it says next to nothing
    low_value: float  # its page is an index, release notes …
    page: float  # what other sections of its page have
    page_coverage: float  # the share of the query's words that its page has
    named_source: float  # the query names its source
    question_body: float  # body, where the query is a sentence
    question_above: float
    question_first: float


def compute_features(
    query: Query,
    matches: Sequence[SectionMatch],
    frequencies: Mapping[str, int],
    named_sources: Mapping[str, str],
) -> list[Features]:
    """Return the features of each match. ``frequencies``: in how many sections the words are, up to COMMON."""
    return _QueryFeatures(query, frequencies, named_sources).of_all(matches)


class _Counted(NamedTuple):
    """A match, and what its text was found to have."""

    match: SectionMatch
    heading: Set[str]
    above: Set[str]
    url: Set[str]
    found: Counter[str]  # how often it has each stem
    body: float
    text: str  # in lower case


class _QueryFeatures:
    def __init__(self, query: Query, frequencies: Mapping[str, int], named_sources: Mapping[str, str]) -> None:
        self._query = query
        self._named_sources = named_sources
        naming = set(named_sources.values())
        words = [word for word in query.words if word not in naming] or list(query.words)
        rarity = {stem(word): math.log(1 + _ASSUMED_SECTIONS / (1 + frequencies.get(word, COMMON))) for word in words}
        total = sum(rarity.values()) or 1.0
        self._weights = {word: weight / total for word, weight in rarity.items()}
        self._pattern = _word_pattern(tuple(self._weights))
        self._name = query.joined_words
        self._own_names = {self._name, "".join(words)} - {""}
        self._signs = [term for term in query.terms if term.text]
        self._text = query.text.lower()
        self._spelled = query.text.strip("() ")
        all_words = tokenize(query.text)
        self._pairs = [
            (stem(one), stem(other), re.compile(rf"{re.escape(one)}\w{{0,3}}[\W_]{{1,4}}{re.escape(other)}"))
            for one, other in pairwise(all_words)
        ][:12]
        parts = {word: self._weights.get(stem(word), 0.0) for word in query.words}
        inner = {"".join(name): sum(self._weights.get(stem(word), 0.0) for word in name) for name in query.inner_names}
        self._parts = parts | inner
        self._question = float(len(all_words) >= 5 and not any(term.text for term in query.terms))
        self._wants_low_value = wants_low_value(query.words)

    def of_all(self, matches: Sequence[SectionMatch]) -> list[Features]:
        counted = [self._count(match) for match in matches]
        by_page: dict[str, list[_Counted]] = defaultdict(list)
        for one in counted:
            by_page[one.match.document_id].append(one)
        page_words = {
            page: set().union(*(set(one.found) | one.heading | one.above | one.url for one in found))
            for page, found in by_page.items()
        }
        page_body = {page: sorted((one.body for one in found), reverse=True)[:5] for page, found in by_page.items()}
        return [
            self._features(one, page_words[one.match.document_id], sum(page_body[one.match.document_id]))
            for one in counted
        ]

    def _count(self, match: SectionMatch) -> _Counted:
        text = match.text[:MAX_TEXT_CHARACTERS].lower()
        if not text.isascii():
            text = fold_text(text).lower()
        found = Counter([next(filter(None, groups)) for groups in self._pattern(text)]) if self._weights else Counter()
        norm = _SATURATION * (0.4 + 0.6 * min(4.0, len(text) / _TYPICAL_CHARACTERS))
        body = sum(self._weights[word] * count / (count + norm) for word, count in found.items())
        url = stems(_path(match.url))
        return _Counted(
            match,
            stems(match.heading),
            stems(_ancestor_text(match)),
            url | stems(match.anchor) if match.anchor else url,
            found,
            body,
            text,
        )

    def _share(self, words: Set[str]) -> float:
        return sum([weight for word, weight in self._weights.items() if word in words])

    def _features(self, one: _Counted, page_words: Set[str], page_body: float) -> Features:
        match = one.match
        lower = one.text
        symbol = parse_symbol(match.heading)
        joined = "".join(symbol)
        title_words = stems(match.title)
        in_heading = self._share(one.heading)
        shared = len(one.heading & self._weights.keys())
        anywhere = set(one.found) | one.heading | one.above | one.url
        coverage = self._share(anywhere)
        is_exact = float(bool(joined) and joined in self._own_names)
        entries = [name for name in (match.entry, *[name for name, _ in match.entries]) if name]
        terms = entries + (
            list(defined_terms(match.text[:MAX_TEXT_CHARACTERS])) if "**" in match.text or "| `" in match.text else []
        )
        symbols = ["".join(parse_symbol(term)) for term in terms]
        above_share = self._share(one.heading | one.above)
        path_name = "".join(tokenize(_path(match.url).rpartition("/")[2].partition(".html")[0]))
        anchor = "".join(tokenize(match.anchor)) if match.anchor else ""
        own_stems = {stem(word) for word in symbol}
        owner = (
            bool(own_stems)
            and own_stems < self._weights.keys()
            and (self._weights.keys() - own_stems <= one.above | one.url)
        )
        first = float(match.position <= 1 and "\n" not in match.headings)
        return Features(
            body=one.body,
            coverage=coverage,
            all_words=float(coverage > 0.999),
            heading=in_heading,
            heading_purity=in_heading * shared / max(1, len(one.heading)),
            above=above_share,
            title=self._share(title_words),
            url=self._share(one.url),
            exact_name=is_exact,
            exact_spelling=is_exact * (self._spelled in match.heading),
            exact_url=float(path_name in self._own_names),
            exact_anchor=float(
                bool(anchor) and any(anchor.endswith(name) for name in self._own_names if len(name) > 2)
            ),
            owner_and_member=float(owner),
            inner_name=self._inner_name_share(joined, anchor),
            defines=float(any(one in self._own_names for one in symbols)),
            defines_part=self._defined_share(symbols),
            defines_sign=self._sign_share("\n".join([match.heading, *terms])),
            has_sign=self._sign_share(match.text[:MAX_TEXT_CHARACTERS]),
            literal=float(self._text in lower),
            heading_literal=float(self._text in match.heading.lower()),
            adjacent=self._adjacent_share(one),
            first=first,
            depth=min(1.0, match.headings.count("\n") / 5),
            short=float(len(match.text) < 200),
            low_value=float(not self._wants_low_value and is_low_value(match.kind, match.url)),
            page=math.log1p(max(0.0, page_body - one.body)),
            page_coverage=self._share(page_words),
            named_source=float(match.source_name in self._named_sources),
            question_body=self._question * one.body,
            question_above=self._question * above_share,
            question_first=self._question * first,
        )

    def _inner_name_share(self, joined: str, anchor: str) -> float:
        best = 0.0
        for inner in self._query.inner_names:
            name = "".join(inner)
            if name and (joined == name or anchor.endswith(name)):
                best = max(best, sum(self._weights.get(stem(word), 0.0) for word in inner))
        return best

    def _defined_share(self, symbols: Sequence[str]) -> float:
        """Return the rarity of the rarest word or inner name of the query that is defined."""
        return min(1.0, max((self._parts[name] for name in symbols if name in self._parts), default=0.0))

    def _adjacent_share(self, one: _Counted) -> float:
        """Return the share of the query's neighbouring words that are neighbours in the text."""
        if not self._pairs:
            return 0.0
        found = 0
        for left, right, pattern in self._pairs:
            is_possible = all(word in one.found or word not in self._weights for word in (left, right))
            found += is_possible and pattern.search(one.text) is not None
        return found / len(self._pairs)

    def _sign_share(self, text: str) -> float:
        if not self._signs:
            return 0.0
        return sum(any(pattern.search(text) for pattern in _sign_patterns(term)) for term in self._signs) / len(
            self._signs
        )


@lru_cache(maxsize=256)
def _sign_patterns(term: Term) -> tuple[re.Pattern[str], ...]:
    """Return how a flag or operator is written, first as it was typed."""
    text, forms = term.text, [term.text]
    if text.startswith("-") and text[1:2] != "-" and len(text) > 2:
        forms.append(text[:2] if not term.words else text[2:])
    if text.startswith("--"):
        forms.append(f"--[no-]{text.removeprefix('--').removeprefix('no-')}")
    escaped = ["".join(rf"\\?{re.escape(char)}" if not char.isalnum() else char for char in form) for form in forms]
    before = r"(?<![\w-])" if text[0] in "-" or text[0].isalnum() else r"(?<![^\w\s`|(\[*\\])"
    after = r"(?![\w-])" if text[-1].isalnum() else r"(?![=<>|&*+:?-])"
    is_case_sensitive = text.startswith("-")
    return tuple(re.compile(before + form + after, 0 if is_case_sensitive else re.IGNORECASE) for form in escaped)


@lru_cache(maxsize=256)
def _word_pattern(words: tuple[str, ...]):  # type: ignore[no-untyped-def]
    """Return a function that finds words by their stems in a text in lower case, as tuples with one text each."""
    parts = [f"({re.escape(word)})" for word in sorted(words, key=len, reverse=True)]
    if any(not word.isascii() for word in words):
        pattern = re.compile("|".join(parts))
    else:
        pattern = re.compile(
            rf"(?<![a-z0-9])(?:{'|'.join(parts)})(?:ings?|e[sdr]?|ers?|ies|ied|y|s|ly|\w)?(?![a-z0-9])"
        )

    def find(text: str) -> list[tuple[str, ...]]:
        return [groups if isinstance(groups, tuple) else (groups,) for groups in pattern.findall(text)]

    return find


def _ancestor_text(match: SectionMatch) -> str:
    return f"{match.title}\n{match.headings.rpartition(chr(10))[0]}"


def _path(url: str) -> str:
    return url.partition("://")[2].partition("/")[2]
