"""Parses what a user typed into search terms. No input is a syntax error."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from kept.errors import InvalidInput
from kept.model.sign_tokens import find_signed, sign_token
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
_QUERY_TOKEN = re.compile(r'(?:(-?)"([^"]*)"|(\S+))')
# Splits asyncio.wait_for, std::vector and List#add, but neither 3.2 nor no-ff.
_IDENTIFIER_SEPARATOR = re.compile(r"(?<=\w)(?:\.|::|#|->|/|\()(?=[^\W\d])")
_FILTER = re.compile(r"(source|lang|language|kind):([^\s:]+)")
_VERSION_FILTER = re.compile(r"@(v?\d[\w.]*|latest)")
_FLAG = re.compile(r"--?[A-Za-z][\w-]*")
_PLAIN_MINUS = re.compile(r"-[^\W\d_A-Z][^\W_A-Z]+")  # may be a flag, or exclude a word
_BRACKETS = "()[]{}<>'\"`,;:!?"
_OPERATORS_IN_CODE = frozenset(
    {"->>", "->", "==", "===", "!=", "<>", ":=", "=>", "**", "&&", "||", "@>", "<@", "??", "|>"}
)


@dataclass(frozen=True, slots=True)
class QueryFilters:
    """The filters that a query itself has: ``source:django lang:python kind:code @5.2``."""

    sources: tuple[str, ...] = ()
    language: str = ""
    kind: str = ""
    version: str = ""


@dataclass(frozen=True, slots=True)
class Query:
    """Words and "phrases" to find, and those to exclude (``-word``)."""

    terms: tuple[Term, ...]
    excluded: tuple[Term, ...] = ()
    names: tuple[str, ...] = ()  # symbol tokens for the whole query, in case it is the name of something
    inner_names: tuple[tuple[str, ...], ...] = ()  # possible names in it: "pg_restore in parallel" has (pg, restore)
    text: str = ""  # without filters
    joined_words: str = ""  # all of its words without spaces
    filters: QueryFilters = QueryFilters()
    frequencies: Mapping[str, int] = field(default_factory=dict, hash=False)  # sections that have a word
    minus_words: tuple[str, ...] = ()  # those that are excluded, unless the index knows them as flags

    @property
    def words(self) -> tuple[str, ...]:
        """Return the distinct words, in lower case and without accents."""
        return tuple(dict.fromkeys(word for term in self.terms for word in term.words))


def parse_query(text: str, *, flags: Iterable[str] = ()) -> Query:
    """Return the query for a text. A word of ``flags`` is a flag. Raises InvalidInput only for an empty text."""
    text = " ".join("".join(char if char.isprintable() else " " for char in text[:MAX_QUERY_CHARACTERS]).split())
    if not text:
        raise InvalidInput('The query is empty. Say what you want to find, as in: kept search "connection pool".')
    known_flags = frozenset(flags)
    filters, text = _split_filters(text)
    wanted: dict[Term, None] = {}
    excluded: dict[Term, None] = {}
    minus_words: list[str] = []
    for at, (minus, phrase, word) in enumerate(_QUERY_TOKEN.findall(text)):
        if _PLAIN_MINUS.fullmatch(word) and at and word not in known_flags:
            minus_words.append(word)
            excluded |= dict.fromkeys(_terms("", word[1:]))
        elif phrase and minus:
            excluded |= dict.fromkeys(_terms(phrase, ""))
        else:
            wanted |= dict.fromkeys(_terms(phrase, word))
    if not wanted:  # what is left would find everything, or nothing
        wanted, excluded, minus_words = excluded, {}, []
    if not wanted:
        wanted = {Term((), tokens=(sign_token(text),), text=text): None}
    content_terms = [term for term in wanted if len(term.words) != 1 or term.words[0] not in _STOP_WORDS]
    content_terms = content_terms if len(content_terms) >= 2 else list(wanted)
    terms = tuple(_limit_terms(content_terms))
    joined = "".join(dict.fromkeys(word for term in terms for word in term.words))
    names = tuple(_symbol_tokens(list(wanted), content_terms))
    return Query(
        terms,
        tuple(_limit_terms(excluded)),
        names,
        _inner_names(terms),
        text,
        joined,
        filters,
        minus_words=tuple(minus_words),
    )


def _split_filters(text: str) -> tuple[QueryFilters, str]:
    """Return the filters of a query and the rest of its text. A query of filters alone has none: it is searched."""
    values: dict[str, list[str]] = {"source": [], "lang": [], "kind": [], "version": []}
    rest = []
    for word in text.split(" "):
        if (match := _FILTER.fullmatch(word)) and (match[1] != "kind" or match[2] in ("code", "text")):
            values[match[1].removesuffix("uage")].append(match[2])
        elif match := _VERSION_FILTER.fullmatch(word):
            values["version"].append(match[1])
        else:
            rest.append(word)
    if not rest:
        return QueryFilters(), text
    last = {name: found[-1] if found else "" for name, found in values.items()}
    return QueryFilters(tuple(values["source"]), last["lang"], last["kind"], last["version"]), " ".join(rest)


def _inner_names(terms: Sequence[Term]) -> tuple[tuple[str, ...], ...]:
    """Return the words of possible names among other words: identifiers, and each two words in a row."""
    named = [term for term in terms if term.words]
    identifiers = [term.words for term in named if len(term.words) > 1] if len(terms) > 1 else []
    neighbours = [(*one.words, *other.words) for one, other in pairwise(named)] if len(terms) > 2 else []
    return tuple(dict.fromkeys([*identifiers, *neighbours]))


def _terms(phrase: str, word: str) -> Iterator[Term]:
    if not phrase and (signed := list(_signed_terms(word))):
        yield from signed
        return
    for part in [phrase] if phrase else _IDENTIFIER_SEPARATOR.split(word):
        if words := tokenize(part):
            is_prefix = part.endswith("*") and len(words[-1]) >= MIN_PREFIX_CHARACTERS
            # The index has CJK text as pairs of characters; a single one matches the pairs that begin with it.
            is_single_cjk = len(words) == 1 and len(words[0]) == 1 and not words[0].isascii()
            yield Term(tuple(words), is_prefix=is_prefix or is_single_cjk)


def _signed_terms(word: str) -> Iterator[Term]:
    """Yield the terms of a word with signs that carry meaning; nothing for any other word."""
    core = word.strip(_BRACKETS) if any(char.isalnum() for char in word) else word
    if flag := _FLAG.match(core):
        yield _flag_term(flag[0])
        yield from _terms("", core[flag.end() :].lstrip("="))
        return
    signed = list(find_signed(core, is_code=True))
    if not any(char.isalnum() for char in core):
        if len(core) > 1 and signed == [core]:
            yield Term((), tokens=(sign_token(core),), text=core)
    elif signed and core.startswith(signed[0]) and signed[0][-1:].isalnum() | (signed[0] == core):
        # $HOME, @decorator, .gitignore, __init__, c++
        words = tokenize(signed[0])[:MAX_PHRASE_WORDS]
        words = words if len("".join(words)) > 1 else []  # c++ is not C
        yield Term(tuple(words), tokens=(sign_token(signed[0]),), text=signed[0])
        if rest := core[len(signed[0]) :]:
            yield from _terms("", rest)
    elif operators := [sign for sign in signed if sign in _OPERATORS_IN_CODE or not re.search("[A-Za-z]", core)]:
        for part in re.split(r"[^\w.]+", core):
            if words := tokenize(part):
                yield Term(tuple(words))
        yield from (Term((), tokens=(sign_token(operator),), text=operator) for operator in operators)


def _flag_term(flag: str) -> Term:
    """Return the term of a flag: the flag itself, the letters that it may be made of, or its words."""
    tokens, words = [flag], tokenize(flag)
    if flag[1] != "-" and len(flag) > 2:
        if re.fullmatch(r"[A-Z][A-Z\d_]{2,}", flag[2:]):
            words = tokenize(flag[2:])  # -DSQLITE_DEBUG
        else:
            tokens += [flag[:2], *(f"-{letter}" for letter in flag[2:4] if letter.isalpha() and len(flag) <= 4)]
            words = words if len(flag) > 4 else []
    elif len(flag) == 2:
        words = []
    return Term(tuple(words[:MAX_PHRASE_WORDS]), tokens=tuple(map(sign_token, dict.fromkeys(tokens))), text=flag)


def _limit_terms(terms: Iterable[Term]) -> Iterator[Term]:
    """Yield as many terms as a database can search quickly: phrases cost more than words, and prefixes most."""
    words, prefixes, phrases = 0, 0, 0
    for term in terms:
        if not term.words and words < MAX_WORDS:
            words += 1
            yield term
            continue
        limited = term.words[: min(MAX_PHRASE_WORDS, MAX_WORDS - words)]
        if not limited:
            return
        words += len(limited)
        prefixes += term.is_prefix and limited[-1].isascii()
        phrases += len(limited) > 1
        if phrases > MAX_PHRASES and len(limited) > 1:
            yield from (Term((word,)) for word in limited)
            continue
        is_prefix = term.is_prefix and (prefixes <= MAX_PREFIXES or not limited[-1].isascii())
        yield term._replace(words=limited, is_prefix=is_prefix)


def _symbol_tokens(*readings: list[Term]) -> list[str]:
    word_lists = [[word for term in terms for word in term.words] for terms in readings]
    return list(dict.fromkeys(symbol_token(words) for words in word_lists if 0 < len(words) <= MAX_NAME_WORDS))
