"""Words as full text knows them: the same for what is stored and for what is asked, on every database.

A word is a run of letters and digits, in lower case, without accents. An identifier is its parts in a row
(``wait_for``: wait for). Chinese, Japanese and Korean are written without spaces: their words are pairs of neighbours.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+")
_ACCENTS = "[\u0300-\u036f]+"  # compiled by who meets one: most texts are ASCII
_CJK = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"


_TYPOGRAPHIC_MARKS = "\xa0’“”—–…‘"  # what most texts have that are not quite ASCII


def blank_typographic_marks(text: str) -> str:
    """The text with blanks for typographic marks. What is ASCII then is quick to deal with."""
    for mark in _TYPOGRAPHIC_MARKS:
        if text.isascii():
            return text
        text = text.replace(mark, " ")
    return text


def fold_text(text: str) -> str:
    """The text without accents, and with spaces between the words that are written without."""
    text = blank_typographic_marks(text)
    if text.isascii():
        return text
    return "\n".join([line if line.isascii() else _fold_line(line) for line in text.split("\n")])


def _fold_line(text: str) -> str:
    plain = unicodedata.normalize("NFC", re.sub(_ACCENTS, "", unicodedata.normalize("NFKD", text)))
    return re.sub(_CJK, lambda run: f" {' '.join(bigrams(run[0]))} ", plain)


def bigrams(run: str) -> list[str]:
    """Neighbours in a run of characters; one that is alone stays alone."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def tokenize(text: str) -> list[str]:
    return _WORD.findall(fold_text(text).lower())


_SYMBOL_KINDS = frozenset({
    "abstract", "annotation", "async", "attribute", "class", "classmethod", "command", "constant", "coroutine", "enum",
    "exception", "final", "function", "interface", "method", "module", "package", "property", "record", "setting",
    "static", "staticmethod", "struct", "trait", "type",
})  # fmt: skip
_SIGNATURE_START = re.compile(r"[(<\[={]")
_MAX_SYMBOL_WORDS = 6  # words


@lru_cache(maxsize=4096)  # headings come again and again: above others, on page after page
def parse_symbol(heading: str) -> tuple[str, ...]:
    """What a heading names: ``class QuerySet(model=None)`` is about queryset. A sentence names nothing: no words."""
    before = _SIGNATURE_START.split(heading, maxsplit=1)[0]
    found = tokenize(heading if before.endswith(".") else before) or tokenize(heading)
    while len(found) > 1 and found[0] in _SYMBOL_KINDS:
        del found[0]
    return tuple(found) if len(found) <= _MAX_SYMBOL_WORDS else ()


_MAX_TERM_LENGTH = 81  # characters


def defined_symbols(text: str) -> Iterator[tuple[str, ...]]:
    """The names that a definition list in this Markdown explains: lines of their own, in bold."""
    if "\n**" in text or text.startswith("**"):
        for term in f"\n{text}".split("\n**")[1:]:
            end = term.find("\n")
            line = (term[:end] if end >= 0 else term).rstrip(" \\")
            explained = line[:-2]
            # "Returns:" explains nothing.
            if line.endswith("**") and 2 <= len(explained) <= _MAX_TERM_LENGTH and not explained.endswith(":"):
                found = parse_symbol(explained)
                if found:
                    yield found


_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=4096)
def split_camel_case(text: str) -> tuple[str, ...]:
    """The parts of the words that are spelled likeThis, LikeThis or HTMLLike."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if not (word.islower() or word.isupper() or _is_capitalised(word)):
            parts = _CAMEL_PART.findall(word)
            if len(parts) > 1:
                found += parts
    return tuple(found)


def _is_capitalised(word: str) -> bool:
    """Whether this is one part, as most words with a capital are: asked quicker than by a pattern."""
    return word[1:].islower() and word.isascii() and word.isalpha()


SYMBOL_TOKEN_PREFIX = "zq"
"""How a word begins that stands for a whole name: what a section defines is found by it, and by nothing else."""


def symbol_token(symbol: Sequence[str]) -> str:
    """A whole name as one word, however it is spelled: ``ArrayList``, ``array_list``, ``array list``."""
    return SYMBOL_TOKEN_PREFIX + "".join(symbol)


_LANGUAGE_ALIASES = {
    "c++": "cpp", "c#": "csharp", "console": "bash", "golang": "go", "js": "javascript", "jsx": "javascript",
    "py": "python", "pycon": "python", "python3": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "shell": "bash",
    "ts": "typescript", "tsx": "typescript", "yml": "yaml", "zsh": "bash",
}  # fmt: skip


def language_token(language: str) -> str:
    """A language of code as one word, whichever of its names it goes by."""
    language = language.lower()
    return f"{SYMBOL_TOKEN_PREFIX}in{''.join(tokenize(_LANGUAGE_ALIASES.get(language, language)))}"


class Term(NamedTuple):
    """A word to look for, or several in a row. A prefix stands for every word that begins so."""

    words: tuple[str, ...]
    is_prefix: bool = False


class FullTextQuery(NamedTuple):
    """What full text is asked for: every term (or any), or one of the names; and what must not be there."""

    terms: Sequence[Term]
    match_all: bool = True
    excluded_terms: Sequence[Term] = ()
    symbol_tokens: Sequence[str] = ()
    code_only: bool = False  # in code blocks only
    language_token: str | None = None  # that has code in it
