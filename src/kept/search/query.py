"""Parses what a user typed into search terms. No input is a syntax error."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kept.errors import InvalidInput
from kept.model.tokens import Term, symbol_token, tokenize

MAX_QUERY_CHARACTERS = 1000
MAX_WORDS = 32  # including those in phrases; excluded terms have the same limit of their own
MIN_PREFIX_CHARACTERS = 2  # a shorter prefix is taken as a word
MAX_PREFIXES = 3
MAX_PHRASE_WORDS = 8
MAX_PHRASES = 6  # further phrases are searched as single words
MAX_NAME_WORDS = 10

# Words of a question, not of its subject. They count only where fewer than two other words are left: "for loop".
_STOP_WORDS = frozenset({
    "a", "an", "and", "are", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it", "my",
    "of", "on", "or", "that", "the", "this", "to", "was", "what", "when", "where", "which", "who", "why", "with", "you",
})  # fmt: skip
_QUERY_TOKEN = re.compile(r'((?:-(?!-))?)(?:"([^"]*)"|(\S+))')
# Splits asyncio.wait_for, std::vector and List#add, but neither 3.2 nor no-ff.
_IDENTIFIER_SEPARATOR = re.compile(r"(?<=\w)(?:\.|::|#|->|/|\()(?=[^\W\d])")


@dataclass(frozen=True, slots=True)
class Query:
    """Words and "phrases" to find, and those to exclude (``-word``)."""

    terms: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()  # symbol tokens for the whole query, in case it is the name of something
    inner_names: tuple[tuple[str, ...], ...] = ()  # possible names in it: "pg_restore in parallel" has (pg, restore)
    text: str = ""
    joined_words: str = ""  # all of its words without spaces

    @property
    def words(self) -> tuple[str, ...]:
        """Return the distinct words, in lower case and without accents."""
        return tuple(dict.fromkeys(word for term in self.terms for word in term.words))


def parse_query(text: str) -> Query:
    """Return the query for a text. Raises InvalidInput if it has no word to search for."""
    text = "".join(char if char.isprintable() else " " for char in text[:MAX_QUERY_CHARACTERS])
    wanted: dict[Term, None] = {}
    excluded: dict[Term, None] = {}
    for minus, phrase, word in _QUERY_TOKEN.findall(text):
        for term in _terms(phrase, word):
            (excluded if minus else wanted).setdefault(term)
    if not wanted:
        raise InvalidInput(
            'The query has no word to look for. Say what you want to find, as in: kept search "connection pool".'
        )
    content_terms = [term for term in wanted if len(term.words) > 1 or term.words[0] not in _STOP_WORDS]
    content_terms = content_terms if len(content_terms) >= 2 else list(wanted)
    terms = tuple(_limit_terms(content_terms))
    joined = "".join(dict.fromkeys(word for term in terms for word in term.words))
    names = tuple(_symbol_tokens(list(wanted), content_terms))
    return Query(terms, tuple(_limit_terms(excluded)), names, _inner_names(terms), text.strip(), joined)


def _inner_names(terms: Sequence[Term]) -> tuple[tuple[str, ...], ...]:
    """Return the words of possible names among other words: identifiers, and each two words in a row."""
    identifiers = [term.words for term in terms if len(term.words) > 1] if len(terms) > 1 else []
    neighbours = [(*one.words, *other.words) for one, other in pairwise(terms)] if len(terms) > 2 else []
    return tuple(dict.fromkeys([*identifiers, *neighbours]))


def _terms(phrase: str, word: str) -> Iterator[Term]:
    for part in [phrase] if phrase else _IDENTIFIER_SEPARATOR.split(word):
        if words := tokenize(part):
            is_prefix = part.endswith("*") and len(words[-1]) >= MIN_PREFIX_CHARACTERS
            # The index has CJK text as pairs of characters; a single one matches the pairs that begin with it.
            is_single_cjk = len(words) == 1 and len(words[0]) == 1 and not words[0].isascii()
            yield Term(tuple(words), is_prefix=is_prefix or is_single_cjk)


def _limit_terms(terms: Iterable[Term]) -> Iterator[Term]:
    """Yield as many terms as a database can search quickly: phrases cost more than words, and prefixes most."""
    words, prefixes, phrases = 0, 0, 0
    for term in terms:
        limited = term.words[: min(MAX_PHRASE_WORDS, MAX_WORDS - words)]
        if not limited:
            return
        words += len(limited)
        prefixes += term.is_prefix and limited[-1].isascii()
        phrases += len(limited) > 1
        if phrases > MAX_PHRASES and len(limited) > 1:
            yield from (Term((word,)) for word in limited)
            continue
        yield Term(limited, is_prefix=term.is_prefix and (prefixes <= MAX_PREFIXES or not limited[-1].isascii()))


def _symbol_tokens(*readings: list[Term]) -> list[str]:
    word_lists = [[word for term in terms for word in term.words] for terms in readings]
    return list(dict.fromkeys(symbol_token(words) for words in word_lists if len(words) <= MAX_NAME_WORDS))
