"""What was perhaps meant: the nearest words that there are."""

import difflib
from collections import Counter

from kept.model.tokens import SYMBOL_TOKEN_PREFIX, Term, tokenize
from kept.search.query import Query
from kept.store import sections
from kept.store.database import Connection
from kept.store.sections import GenerationFilter

MAX_SECTIONS = 300  # sections
MIN_PREFIX_CHARACTERS = 3  # letters that have to be right
MAX_WORDS = 8
MIN_SIMILARITY = 0.7


async def suggest_spelling(db: Connection, query: Query, generations: GenerationFilter) -> str | None:
    """The query with each unknown word replaced by one that begins alike and is found; None if there is none."""
    spelled, changed = [], False
    for word in query.words[:MAX_WORDS]:
        nearest = await _closest_word(db, word, generations)
        spelled.append(nearest or word)
        changed = changed or nearest not in (None, word)
    return " ".join(spelled) if changed else None


async def _closest_word(db: Connection, word: str, generations: GenerationFilter) -> str | None:
    for length in range(len(word), min(MIN_PREFIX_CHARACTERS, len(word)) - 1, -1):
        found = await sections.sample_with_term(
            db, Term((word[:length],), is_prefix=length < len(word)), limit=MAX_SECTIONS
        )
        rows = await sections.in_generations(db, found, generations) if found else []
        if rows and length == len(word):
            return word
        known = Counter(
            other
            for row in rows
            for other in tokenize(f"{row['title']} {row['headings']} {row['text']}")
            if other.startswith(word[:length]) and not other.startswith(SYMBOL_TOKEN_PREFIX)
        )
        near = difflib.get_close_matches(word, known, n=3, cutoff=MIN_SIMILARITY)
        if near:
            return max(near, key=lambda other: (difflib.SequenceMatcher(None, word, other).ratio(), known[other]))
    return None
