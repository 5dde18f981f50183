"""Checks the words of a query against the index: flags are told from exclusions, and unknown words are corrected.

A word that no section has is replaced by the one nearest to it: first among all that one change away (a letter too
many, too few or another, or two that changed places), then among the words of sections that begin in the same way.
"""

import difflib
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from kept.model.section import GenerationFilter
from kept.model.sign_tokens import SIGN_TOKEN_PREFIX, sign_token
from kept.model.tokens import SYMBOL_TOKEN_PREFIX, Term, tokenize
from kept.search.features import COMMON
from kept.search.query import Query, parse_query
from kept.store import sections
from kept.store.database import Connection

MAX_SECTIONS = 300  # that are read for one word
MIN_PREFIX_CHARACTERS = 3  # the first characters have to be right, where more than one letter is wrong
MIN_CORRECTED_CHARACTERS = 4  # shorter words are corrected only where two letters changed places: gti
MAX_CORRECTED_CHARACTERS = 24
MAX_WORDS = 8
MIN_SIMILARITY = 0.75
MANY_SECTIONS = 200  # a word in so many sections is as common as one in more
_LETTERS = "abcdefghijklmnopqrstuvwxyz"
_QUOTED = re.compile(r'"[^"]*"')


@dataclass(frozen=True, slots=True)
class CheckedQuery:
    """A query as it is searched, and how its text was spelled for that; None where it was not changed."""

    query: Query
    corrected: str | None = None


async def check_query(db: Connection, text: str, generations: GenerationFilter) -> CheckedQuery:
    """Parse a query, with its flags as flags and its unknown words corrected. Quoted words stay as they are."""
    query = parse_query(text)
    flags = await _known_flags(db, query.minus_words) if query.minus_words else []
    query = parse_query(text, flags=flags) if flags else query
    frequencies = await _frequencies(db, query)
    corrections = await _corrections(db, query, frequencies, generations)
    corrected = _replace_words(text, corrections) if corrections else text
    if corrected == text:
        return CheckedQuery(replace(query, frequencies=frequencies))
    query = parse_query(corrected, flags=flags)
    return CheckedQuery(replace(query, frequencies=await _frequencies(db, query)), corrected)


async def suggest_spelling(db: Connection, text: str, generations: GenerationFilter) -> str | None:
    """Return the text with unknown words replaced by similar known ones, or None if there is none to replace."""
    return (await check_query(db, text, generations)).corrected


async def _known_flags(db: Connection, minus_words: Sequence[str]) -> list[str]:
    """Return those that the index knows as flags: ``-readonly``; and ``-fdx``, if its letters are and it is no word."""
    letters = {word: [Term((), tokens=(sign_token(f"-{letter}"),)) for letter in word[1:]] for word in minus_words}
    flags = {word: Term((), tokens=(sign_token(word),)) for word in minus_words}
    plain = {word: Term(tuple(tokenize(word))) for word in minus_words}
    asked = [*flags.values(), *plain.values(), *(term for terms in letters.values() for term in terms)]
    counts = await sections.count_with_terms(db, asked, limit=MANY_SECTIONS)
    return [
        word
        for word in minus_words
        if counts[flags[word]]
        or (len(word) <= 4 and counts[plain[word]] < 3 and all(counts[letter] for letter in letters[word]))
    ]


async def _frequencies(db: Connection, query: Query) -> dict[str, int]:
    """Count in how many sections each word of a query is."""
    counts = await sections.count_with_terms(db, [Term((word,)) for word in query.words], limit=COMMON)
    return {term.words[0]: count for term, count in counts.items()}


async def _corrections(
    db: Connection, query: Query, frequencies: Mapping[str, int], generations: GenerationFilter
) -> dict[str, str]:
    quoted = set(tokenize(" ".join(_QUOTED.findall(query.text))))
    words = [
        word
        for term in query.terms
        for word in term.words
        if word.isascii() and word.isalpha() and len(word) >= 3 and word not in quoted and not term.is_prefix
    ][:MAX_WORDS]
    found = {}
    for word in dict.fromkeys(words):
        if not frequencies[word] and len(word) <= MAX_CORRECTED_CHARACTERS:
            nearest = await _one_change_away(db, word)
            if nearest is None and len(word) > MIN_CORRECTED_CHARACTERS:
                nearest = await _closest_word(db, word, generations)
            if nearest not in (None, word):
                found[word] = str(nearest)
    return found


async def _one_change_away(db: Connection, word: str) -> str | None:
    changed = dict(_changes(word)) if len(word) >= MIN_CORRECTED_CHARACTERS else dict(_transpositions(word))
    candidates = [other for other in changed if len(other) > 2 and not other.startswith(SIGN_TOKEN_PREFIX)]
    counts = await sections.count_with_terms(db, [Term((other,)) for other in candidates], limit=MANY_SECTIONS)
    known = [other for other in candidates if counts[Term((other,))]]
    # Common words first, roughly; of those the likelier mistake.
    return min(known, key=lambda other: _rank(counts[Term((other,))], changed[other], other), default=None)


def _rank(count: int, mistake: int, word: str) -> tuple[int, int, int, str]:
    return -(count >= 3) - (count >= 30), mistake, -count, word


def _changes(word: str) -> Iterator[tuple[str, int]]:
    """Yield the words one change away, each with how unlikely that mistake is; the likeliest last."""
    splits = [(word[:at], word[at:]) for at in range(len(word) + 1)]
    for left, right in splits:
        for letter in _LETTERS:
            if right:
                yield left + letter + right[1:], 3
    for left, right in splits:
        if right:
            yield left + right[1:], 2
    for left, right in splits:
        for letter in _LETTERS:
            yield left + letter + right, 1
    yield from _transpositions(word)


def _transpositions(word: str) -> Iterator[tuple[str, int]]:
    for at in range(len(word) - 1):
        if word[at] != word[at + 1]:
            yield word[:at] + word[at + 1] + word[at] + word[at + 2 :], 0


async def _closest_word(db: Connection, word: str, generations: GenerationFilter) -> str | None:
    for length in range(len(word) - 1, MIN_PREFIX_CHARACTERS - 1, -1):
        ids = await sections.sample_with_term(db, Term((word[:length],), is_prefix=True), limit=MAX_SECTIONS)
        matches = await sections.in_generations(db, ids, generations) if ids else []
        known = Counter(
            other
            for match in matches
            for other in tokenize(f"{match.title} {match.headings} {match.text}")
            if other.startswith(word[:length]) and not other.startswith((SYMBOL_TOKEN_PREFIX, SIGN_TOKEN_PREFIX))
        )
        similar = difflib.get_close_matches(word, known, n=3, cutoff=MIN_SIMILARITY)
        if similar:
            return max(similar, key=lambda other: (difflib.SequenceMatcher(None, word, other).ratio(), known[other]))
    return None


def _replace_words(text: str, corrections: dict[str, str]) -> str:
    """Return the text with words replaced, wherever they stand alone or in an identifier, except in quotes."""
    pattern = re.compile(rf"(?<![^\W_])(?:{'|'.join(map(re.escape, corrections))})(?![^\W_])", re.IGNORECASE)
    pieces = re.split(r'("[^"]*")', text)
    return "".join(
        piece if piece.startswith('"') and piece.endswith('"') and len(piece) > 1
        else pattern.sub(lambda found: corrections[found[0].lower()], piece)
        for piece in pieces
    )  # fmt: skip
