"""What was perhaps meant: the nearest words that there are."""

import difflib
from collections import Counter

from kept.model.words import DEFINES, Term, words
from kept.search.query import Query
from kept.store import sections
from kept.store.database import Connection
from kept.store.sections import Generations

LOOKED_AT = 300  # sections
SHORTEST = 3  # letters that have to be right
MOST_WORDS = 8
LIKENESS = 0.7


async def suggest(db: Connection, query: Query, generations: Generations) -> str | None:
    """The query with each unknown word replaced by one that begins alike and is found; None if there is none."""
    spelled, changed = [], False
    for word in query.words[:MOST_WORDS]:
        nearest = await _nearest(db, word, generations)
        spelled.append(nearest or word)
        changed = changed or nearest not in (None, word)
    return " ".join(spelled) if changed else None


async def _nearest(db: Connection, word: str, generations: Generations) -> str | None:
    for length in range(len(word), min(SHORTEST, len(word)) - 1, -1):
        found = await sections.some_with(db, Term((word[:length],), prefix=length < len(word)), limit=LOOKED_AT)
        rows = await sections.in_generations(db, found, generations) if found else []
        if rows and length == len(word):
            return word
        known = Counter(
            other
            for row in rows
            for other in words(f"{row['title']} {row['headings']} {row['text']}")
            if other.startswith(word[:length]) and not other.startswith(DEFINES)
        )
        near = difflib.get_close_matches(word, known, n=3, cutoff=LIKENESS)
        if near:
            return max(near, key=lambda other: (difflib.SequenceMatcher(None, word, other).ratio(), known[other]))
    return None
