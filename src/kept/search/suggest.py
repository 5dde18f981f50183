"""Suggests a spelling for a query that found nothing, from the words of the stored sections."""

import difflib
from collections import Counter

from kept.model.section import GenerationFilter
from kept.model.tokens import SYMBOL_TOKEN_PREFIX, Term, tokenize
from kept.search.query import Query
from kept.store import sections
from kept.store.database import Connection

MAX_SECTIONS = 300  # that are read for one word
MIN_PREFIX_CHARACTERS = 3  # the first characters have to be right
MAX_WORDS = 8
MIN_SIMILARITY = 0.7


async def suggest_spelling(db: Connection, query: Query, generations: GenerationFilter) -> str | None:
    """Return the query with unknown words replaced by similar known ones, or None if there is none to replace."""
    words, is_changed = [], False
    for word in query.words[:MAX_WORDS]:
        nearest = await _closest_word(db, word, generations)
        words.append(nearest or word)
        is_changed = is_changed or nearest not in (None, word)
    return " ".join(words) if is_changed else None


async def _closest_word(db: Connection, word: str, generations: GenerationFilter) -> str | None:
    for length in range(len(word), min(MIN_PREFIX_CHARACTERS, len(word)) - 1, -1):
        term = Term((word[:length],), is_prefix=length < len(word))
        ids = await sections.sample_with_term(db, term, limit=MAX_SECTIONS)
        matches = await sections.in_generations(db, ids, generations) if ids else []
        if matches and length == len(word):
            return word
        known = Counter(
            other
            for match in matches
            for other in tokenize(f"{match.title} {match.headings} {match.text}")
            if other.startswith(word[:length]) and not other.startswith(SYMBOL_TOKEN_PREFIX)
        )
        similar = difflib.get_close_matches(word, known, n=3, cutoff=MIN_SIMILARITY)
        if similar:
            return max(similar, key=lambda other: (difflib.SequenceMatcher(None, word, other).ratio(), known[other]))
    return None
