"""What a person typed, as terms to look for. Whatever is typed, it is never a syntax error."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from kept.errors import InvalidInput
from kept.model.tokens import Term, symbol_token, tokenize

MAX_QUERY_CHARACTERS = 1000
MAX_WORDS = 32  # those of phrases are counted; so many for what must not be there
MIN_PREFIX_CHARACTERS = 2  # letters; a shorter one is a word of its own
MAX_PREFIXES = 3
MAX_PHRASE_WORDS = 8  # words
MAX_PHRASES = 6  # the words of others count one by one
MAX_NAME_WORDS = 10  # words

# Words of a question, not of its subject. "for loop" is about both of its words; among more, these say nothing.
_STOP_WORDS = frozenset({
    "a", "an", "and", "are", "at", "be", "by", "can", "do", "does", "for", "from", "how", "i", "in", "is", "it", "my",
    "of", "on", "or", "that", "the", "this", "to", "was", "what", "when", "where", "which", "who", "why", "with", "you",
})  # fmt: skip
_QUERY_TOKEN = re.compile(r'((?:-(?!-))?)(?:"([^"]*)"|(\S+))')
# asyncio.wait_for, std::vector, List#add: each side is a word of its own; 3.2 and no-ff stay together.
_IDENTIFIER_SEPARATOR = re.compile(r"(?<=\w)(?:\.|::|#|->|/|\()(?=[^\W\d])")


@dataclass(frozen=True, slots=True)
class Query:
    """Words and "phrases" to find, and those that must not be there (``-word``)."""

    terms: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()  # the whole query, if it is the name of something
    inner_names: tuple[
        tuple[str, ...], ...
    ] = ()  # names among its words: "pg_restore in parallel" is about (pg, restore)
    text: str = ""
    joined_words: str = ""  # all of its words as one

    @property
    def words(self) -> tuple[str, ...]:
        """The single words, in lower case and without accents."""
        return tuple(dict.fromkeys(word for term in self.terms for word in term.words))


def parse_query(text: str) -> Query:
    """The query behind a text. Raises WrongCall if there is nothing to look for in it."""
    text = "".join(char if char.isprintable() else " " for char in text[:MAX_QUERY_CHARACTERS])
    wanted: dict[Term, None] = {}
    unwanted: dict[Term, None] = {}
    for minus, phrase, word in _QUERY_TOKEN.findall(text):
        for term in _terms(phrase, word):
            (unwanted if minus else wanted).setdefault(term)
    if not wanted:
        raise InvalidInput(
            'The query has no word to look for. Say what you want to find, as in: kept search "connection pool".'
        )
    telling = [term for term in wanted if len(term.words) > 1 or term.words[0] not in _STOP_WORDS]
    telling = telling if len(telling) >= 2 else list(wanted)
    terms = tuple(_limit_terms(telling))
    whole = "".join(dict.fromkeys(word for term in terms for word in term.words))
    names = tuple(_names(list(wanted), telling))
    return Query(terms, tuple(_limit_terms(unwanted)), names, _inner_names(terms), text.strip(), whole)


def _inner_names(terms: Sequence[Term]) -> tuple[tuple[str, ...], ...]:
    """What may be names among other words: identifiers, and two words in a row."""
    identifiers = [term.words for term in terms if len(term.words) > 1] if len(terms) > 1 else []
    neighbours = [(*one.words, *other.words) for one, other in pairwise(terms)] if len(terms) > 2 else []
    return tuple(dict.fromkeys([*identifiers, *neighbours]))


def _terms(phrase: str, word: str) -> Iterator[Term]:
    for part in [phrase] if phrase else _IDENTIFIER_SEPARATOR.split(word):
        if found := tokenize(part):
            alone = len(found) == 1 and len(found[0]) == 1 and not found[0].isascii()  # half a pair of neighbours
            yield Term(
                tuple(found), is_prefix=(part.endswith("*") and len(found[-1]) >= MIN_PREFIX_CHARACTERS) or alone
            )


def _limit_terms(terms: Iterable[Term]) -> Iterator[Term]:
    """As many as a database can look for in no time: common phrases cost it more than words, and prefixes most."""
    words, prefixes, phrases = 0, 0, 0
    for term in terms:
        kept = term.words[: min(MAX_PHRASE_WORDS, MAX_WORDS - words)]
        if not kept:
            return
        words += len(kept)
        prefixes += term.is_prefix and kept[-1].isascii()
        phrases += len(kept) > 1
        if phrases > MAX_PHRASES and len(kept) > 1:
            yield from (Term((word,)) for word in kept)
            continue
        yield Term(kept, is_prefix=term.is_prefix and (prefixes <= MAX_PREFIXES or not kept[-1].isascii()))


def _names(*readings: list[Term]) -> list[str]:
    spelled = [[word for term in terms for word in term.words] for terms in readings]
    return list(dict.fromkeys(symbol_token(one) for one in spelled if len(one) <= MAX_NAME_WORDS))
