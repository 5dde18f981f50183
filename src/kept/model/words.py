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


_BETWEEN_WORDS = "\xa0’“”—–…‘"  # what most texts have that are not quite ASCII


def unmarked(text: str) -> str:
    """The text with blanks for typographic marks. What is ASCII then is quick to deal with."""
    for mark in _BETWEEN_WORDS:
        if text.isascii():
            return text
        text = text.replace(mark, " ")
    return text


def folded(text: str) -> str:
    """The text without accents, and with spaces between the words that are written without."""
    text = unmarked(text)
    if text.isascii():
        return text
    return "\n".join([line if line.isascii() else _folded(line) for line in text.split("\n")])


def _folded(text: str) -> str:
    plain = unicodedata.normalize("NFC", re.sub(_ACCENTS, "", unicodedata.normalize("NFKD", text)))
    return re.sub(_CJK, lambda run: f" {' '.join(pairs(run[0]))} ", plain)


def pairs(run: str) -> list[str]:
    """Neighbours in a run of characters; one that is alone stays alone."""
    return [run[at : at + 2] for at in range(max(1, len(run) - 1))]


def words(text: str) -> list[str]:
    return _WORD.findall(folded(text).lower())


_KINDS = frozenset({
    "abstract", "annotation", "async", "attribute", "class", "classmethod", "command", "constant", "coroutine", "enum",
    "exception", "final", "function", "interface", "method", "module", "package", "property", "record", "setting",
    "static", "staticmethod", "struct", "trait", "type",
})  # fmt: skip
_SIGNATURE = re.compile(r"[(<\[={]")
_LONGEST_NAME = 6  # words


@lru_cache(maxsize=4096)  # headings come again and again: above others, on page after page
def name(heading: str) -> tuple[str, ...]:
    """What a heading names: ``class QuerySet(model=None)`` is about queryset. A sentence names nothing: no words."""
    before = _SIGNATURE.split(heading, maxsplit=1)[0]
    found = words(heading if before.endswith(".") else before) or words(heading)
    while len(found) > 1 and found[0] in _KINDS:
        del found[0]
    return tuple(found) if len(found) <= _LONGEST_NAME else ()


_LONGEST_TERM = 81  # characters


def defined(text: str) -> Iterator[tuple[str, ...]]:
    """The names that a definition list in this Markdown explains: lines of their own, in bold."""
    if "\n**" in text or text.startswith("**"):
        for term in f"\n{text}".split("\n**")[1:]:
            end = term.find("\n")
            line = (term[:end] if end >= 0 else term).rstrip(" \\")
            explained = line[:-2]
            # "Returns:" explains nothing.
            if line.endswith("**") and 2 <= len(explained) <= _LONGEST_TERM and not explained.endswith(":"):
                found = name(explained)
                if found:
                    yield found


_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")


@lru_cache(maxsize=4096)
def camel_parts(text: str) -> tuple[str, ...]:
    """The parts of the words that are spelled likeThis, LikeThis or HTMLLike."""
    found: list[str] = []
    for word in _WORD.findall(text):
        if not (word.islower() or word.isupper() or _is_capitalised(word)):
            parts = _CAMEL.findall(word)
            if len(parts) > 1:
                found += parts
    return tuple(found)


def _is_capitalised(word: str) -> bool:
    """Whether this is one part, as most words with a capital are: asked quicker than by a pattern."""
    return word[1:].islower() and word.isascii() and word.isalpha()


DEFINES = "zq"
"""How a word begins that stands for a whole name: what a section defines is found by it, and by nothing else."""


def name_word(name: Sequence[str]) -> str:
    """A whole name as one word, however it is spelled: ``ArrayList``, ``array_list``, ``array list``."""
    return DEFINES + "".join(name)


_LANGUAGES = {
    "c++": "cpp", "c#": "csharp", "console": "bash", "golang": "go", "js": "javascript", "jsx": "javascript",
    "py": "python", "pycon": "python", "python3": "python", "rb": "ruby", "rs": "rust", "sh": "bash", "shell": "bash",
    "ts": "typescript", "tsx": "typescript", "yml": "yaml", "zsh": "bash",
}  # fmt: skip


def language_word(language: str) -> str:
    """A language of code as one word, whichever of its names it goes by."""
    language = language.lower()
    return f"{DEFINES}in{''.join(words(_LANGUAGES.get(language, language)))}"


class Term(NamedTuple):
    """A word to look for, or several in a row. A prefix stands for every word that begins so."""

    words: tuple[str, ...]
    prefix: bool = False


class Wanted(NamedTuple):
    """What full text is asked for: every term (or any), or one of the names; and what must not be there."""

    terms: Sequence[Term]
    every: bool = True
    without: Sequence[Term] = ()
    names: Sequence[str] = ()
    code: bool = False  # in code blocks only
    language: str | None = None  # that has code in it
