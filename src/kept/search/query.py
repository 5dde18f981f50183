"""What a person typed, as terms to look for. Whatever is typed, it is never a syntax error."""

import re
from dataclasses import dataclass

from kept.errors import WrongCall

LONGEST_QUERY = 1000
MOST_TERMS = 32

# Words of a question, not of its subject. "for loop" is about both of its words; among more, these say nothing.
_SMALL = frozenset({
    "a", "an", "and", "are", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it", "my",
    "of", "on", "or", "that", "the", "this", "to", "was", "what", "when", "where", "which", "who", "why", "with", "you",
})  # fmt: skip
_TERM = re.compile(r'((?:-(?!-))?)(?:"([^"]*)"|(\S+))')


@dataclass(frozen=True, slots=True)
class Query:
    """Words and "phrases" to find, and those that must not be there (``-word``)."""

    terms: tuple[str, ...]
    without: tuple[str, ...] = ()

    @property
    def words(self) -> tuple[str, ...]:
        """The single words, in lower case, as they are marked in a snippet."""
        return tuple(word for term in self.terms for word in re.findall(r"\w+", term.lower()))


def parse(text: str) -> Query:
    """The query behind a text. Raises WrongCall if there is nothing to look for in it."""
    text = "".join(char if char.isprintable() else " " for char in text[:LONGEST_QUERY])
    wanted: dict[str, None] = {}
    unwanted: dict[str, None] = {}
    for minus, phrase, word in _TERM.findall(text):
        term = " ".join((phrase or word).split())
        if any(char.isalnum() for char in term):
            (unwanted if minus else wanted).setdefault(term)
    if not wanted:
        raise WrongCall(
            'The query has no word to look for. Say what you want to find, as in: kept search "connection pool".'
        )
    telling = [term for term in wanted if term.lower() not in _SMALL]
    if len(telling) >= 2:
        wanted = dict.fromkeys(telling)
    return Query(tuple(wanted)[:MOST_TERMS], tuple(unwanted)[:MOST_TERMS])
