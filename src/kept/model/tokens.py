"""The tokenizer of full text, the same for stored text and queries on every database.

A token is a run of letters and digits, in lower case, without accents. An identifier becomes its parts
(``wait_for``: wait for). Chinese, Japanese and Korean text becomes overlapping pairs of characters.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

_WORD = re.compile(r"[^\W_]+")
_ACCENTS = "[\u0300-\u036f]+"  # compiled on first use: most texts are ASCII
_CJK = "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]+"


_TYPOGRAPHIC_MARKS = "\xa0’“”—–…‘"  # the only non-ASCII characters of most texts


def blank_typographic_marks(text: str) -> str:
    """Return the text with blanks for typographic marks. Most texts are ASCII then, which is quick to process."""
    for mark in _TYPOGRAPHIC_MARKS:
        if text.isascii():
            return text
        text = text.replace(mark, " ")
    return text


def fold_text(text: str) -> str:
    """Return the text without accents, and with CJK runs split into pairs."""
    text = blank_typographic_marks(text)
    if text.isascii():
        return text
    return "\n".join([line if line.isascii() else _fold_line(line) for line in text.split("\n")])


def _fold_line(text: str) -> str:
    plain = unicodedata.normalize("NFC", re.sub(_ACCENTS, "", unicodedata.normalize("NFKD", text)))
    return re.sub(_CJK, lambda run: f" {' '.join(bigrams(run[0]))} ", plain)


def bigrams(run: str) -> list[str]:
    """Return the overlapping pairs of a run of characters; a single character stays alone."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def tokenize(text: str) -> list[str]:
    return _WORD.findall(fold_text(text).lower())


_SYMBOL_KINDS = frozenset({
    "abstract", "annotation", "async", "attribute", "class", "classmethod", "command", "constant", "coroutine", "enum",
    "exception", "final", "function", "interface", "method", "module", "package", "property", "record", "setting",
    "static", "staticmethod", "struct", "trait", "type",
})  # fmt: skip
_SIGNATURE_START = re.compile(r"[(<\[={]")
_NUMBERING = re.compile(
    r"^(?:\(\d+\)|(?:Chapter|Appendix) \w+\.|\d+(?:\.\d+)*\.?)\s+(?=\D)"
)  # (5) SQLITE_BUSY, 14.8 Globbing
_MAX_SYMBOL_WORDS = 6


@lru_cache(maxsize=4096)  # headings repeat: above others, on page after page
def parse_symbol(heading: str) -> tuple[str, ...]:
    """Return the words of the symbol that a heading names (``class QuerySet(model=None)``: queryset), or none."""
    heading = _NUMBERING.sub("", heading)
    before = _SIGNATURE_START.split(heading, maxsplit=1)[0]
    found = tokenize(heading if before.endswith(".") else before) or tokenize(heading)
    while len(found) > 1 and found[0] in _SYMBOL_KINDS:
        del found[0]
    return tuple(found) if len(found) <= _MAX_SYMBOL_WORDS else ()


_MAX_TERM_LENGTH = 81


def defined_symbols(text: str) -> Iterator[tuple[str, ...]]:
    """Yield the symbols that definition lists in a Markdown text define: lines of their own, in bold."""
    for term in defined_terms(text):
        found = parse_symbol(term)
        if found:
            yield found


def defined_terms(text: str) -> Iterator[str]:
    """Yield what a Markdown text defines: lines of their own, or items, in bold; the code that a row begins with."""
    if "\n**" in text or text.startswith("**") or "\n- **" in text:
        for line in text.replace("\n- **", "\n**").split("\n"):
            if line.startswith("**"):
                line = line.rstrip(" \\")
                defined = line[2:-2]
                # A label such as "Returns:" defines nothing.
                if line.endswith("**") and 2 <= len(defined) <= _MAX_TERM_LENGTH and not defined.endswith(":"):
                    yield defined
    if "\n| `" in text:
        for row in text.split("\n| `")[1:]:
            defined, end, _ = row[:_MAX_TERM_LENGTH].partition("`")
            if end:
                yield defined


_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=4096)
def split_camel_case(text: str) -> tuple[str, ...]:
    """Return the parts of the words that are written likeThis, LikeThis or HTMLLike."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if not (word.islower() or word.isupper() or _is_capitalised(word)):
            parts = _CAMEL_PART.findall(word)
            if len(parts) > 1:
                found += parts
    return tuple(found)


def _is_capitalised(word: str) -> bool:
    """Whether only the first letter is a capital: a quick test that spares most words the regular expression."""
    return word[1:].islower() and word.isascii() and word.isalpha()


SYMBOL_TOKEN_PREFIX = "zq"
"""Marks a token for a whole name, so that it matches only sections that define the name."""


def symbol_token(symbol: Sequence[str]) -> str:
    """Return one token for a whole name, however it is written: ``ArrayList``, ``array_list``, ``array list``."""
    return SYMBOL_TOKEN_PREFIX + "".join(symbol)


_LANGUAGE_ALIASES = {
    "c++": "cpp", "c#": "csharp", "console": "bash", "golang": "go", "js": "javascript", "jsx": "javascript",
    "py": "python", "pycon": "python", "python3": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "shell": "bash",
    "ts": "typescript", "tsx": "typescript", "yml": "yaml", "zsh": "bash",
}  # fmt: skip


def language_token(language: str) -> str:
    """Return the token of a programming language, the same for all its aliases."""
    language = language.lower()
    return f"{SYMBOL_TOKEN_PREFIX}in{''.join(tokenize(_LANGUAGE_ALIASES.get(language, language)))}"


class Term(NamedTuple):
    """A word to search for, or several in a row. The last word of a prefix term matches every word that begins so.

    A flag, an operator or a name with signs has tokens too, of which one suffices in place of the words. It may have no
    words: ``-a`` is no article.
    """

    words: tuple[str, ...]
    is_prefix: bool = False
    tokens: tuple[str, ...] = ()
    text: str = ""  # as it was typed, if it has signs


class FullTextQuery(NamedTuple):
    """A query of the full text index: all terms (or any), or one of the symbols, and none of the excluded terms."""

    terms: Sequence[Term]
    match_all: bool = True
    excluded_terms: Sequence[Term] = ()
    symbol_tokens: Sequence[str] = ()
    code_only: bool = False  # in code blocks only
    language_token: str | None = None  # only sections with code in this language
