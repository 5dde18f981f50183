"""The full text index fields of a section, in order of weight; computed in the reader processes.

names       the symbols it defines: its heading, its anchor, its named entries
headings    the page's title and the headings above it
text        its prose, without the targets of links
code        its code blocks

What is written with signs has a token of its own in each field (sign_tokens). Punctuation is replaced by blanks:
PostgreSQL's parser would take it for hosts, files and tags, and is far slower at removing it.
"""

import re
import string
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from kept.model.sign_tokens import find_sign_tokens
from kept.model.tokens import (
    blank_typographic_marks,
    defined_symbols,
    defined_terms,
    fold_text,
    language_token,
    parse_symbol,
    split_camel_case,
    symbol_token,
    tokenize,
)

if TYPE_CHECKING:  # a search does without
    from kept.model.document import Section


class IndexFields(NamedTuple):
    names: str
    headings: str
    text: str
    code: str


def build_index_fields(title: str, sections: "Sequence[Section]") -> "tuple[IndexFields, ...]":
    """Return the fields of each section of a page."""
    return tuple([build_section_fields(title, above, section) for section, above, _ in with_heading_paths(sections)])


def with_heading_paths(sections: "Sequence[Section]") -> "Iterator[tuple[Section, str, str]]":
    """Yield each section with the headings above it, and with the same followed by its own, one a line."""
    paths: list[str] = []
    for section in sections:
        above = "" if section.parent is None else paths[section.parent]
        path = f"{above}\n{section.heading}" if above and section.heading else above or section.heading
        paths.append(path)
        yield section, above, path


def build_section_fields(title: str, above: str, section: "Section") -> IndexFields:
    """Return the fields of a section. ``above`` are the headings above it, one a line."""
    text, code = _split_prose_and_code(blank_typographic_marks(section.text))
    return IndexFields(
        _names_field(title, above, section),
        _headings_field(title, above),
        _words_field(text, is_code=False),
        _words_field(code, is_code=True),
    )


def _words_field(text: str, *, is_code: bool) -> str:
    """Return the words of a text, and behind them the tokens of what is written with signs."""
    signs = find_sign_tokens(text, is_code=is_code)
    words = _to_plain_words(text)
    return f"{words}\n{' '.join(signs)}" if signs else words


@lru_cache(maxsize=16)  # neighbouring sections share them
def _headings_field(title: str, above: str) -> str:
    return _to_plain_words(f"{title}\n{above}")


_PUNCTUATION = string.punctuation.encode()
_PUNCTUATION_TO_BLANK = bytes.maketrans(_PUNCTUATION, b" " * len(_PUNCTUATION))


def _to_plain_words(text: str) -> str:
    if not text:
        return ""
    return (
        fold_text(text)
        .encode("utf-8", "surrogatepass")
        .translate(_PUNCTUATION_TO_BLANK)
        .decode("utf-8", "surrogatepass")
    )


def _names_field(title: str, above: str, section: "Section") -> str:
    """Return the words, and symbol tokens for whole names: ``add``, and with its owner ``ArrayList.add``."""
    heading, anchor = section.heading, section.anchor or ""
    symbol = parse_symbol(heading)
    parts = [heading, anchor]
    if symbol:
        parts.append(symbol_token(symbol))
        if len(symbol) <= 2:
            owners = dict.fromkeys([*map(parse_symbol, above.split("\n")[-3:]), parse_symbol(title)])
            parts += [symbol_token(owner + symbol) for owner in owners if 0 < len(owner) <= 2]
    if not heading.islower():
        parts += split_camel_case(heading)
    if "." in anchor:
        chain = anchor.partition("(")[0].split(".")
        parts += (symbol_token(tokenize(" ".join(chain))), symbol_token(tokenize(" ".join(chain[-2:]))))
    for term in defined_symbols(section.text):
        parts += (*term, symbol_token(term))
    for name in (section.entry, *[name for name, _ in section.entries]):
        if name and name != heading:
            entry = parse_symbol(name)
            parts += (name, symbol_token(entry)) if entry else (name,)
    names = [section.entry, *[name for name, _ in section.entries]]
    parts += find_sign_tokens("\n".join([heading, *defined_terms(section.text), *names]))
    return _to_plain_words("\n".join(parts))


_FENCE = re.compile(r"[ >]*(`{3,}|~{3,})[ ]*([^\s`]*)")


def _split_prose_and_code(text: str) -> tuple[str, str]:
    """Return the prose and the code of a Markdown text, the code with the tokens of its languages."""
    code = ""
    # Searching for one character is far quicker than for three, and most texts have no tilde.
    if "```" in text or ("~" in text and "~~~" in text):
        text, code = _separate_code(text)
    pieces = text.split("](")
    if len(pieces) > 1:
        text = pieces[0] + "".join([_strip_link_target(piece) for piece in pieces[1:]])
    return text, code


def _strip_link_target(text: str) -> str:
    """Return a text without the link target that it begins with, or unchanged if it begins with none."""
    ends = ">)" if text.startswith("<") else ")"
    target, end, behind = text.partition(ends)
    if not end or "\n" in target or (ends == ")" and ("(" in target or " " in target)):
        return f" {text}"
    return f" {behind}"


def _separate_code(text: str) -> tuple[str, str]:
    prose: list[str] = []
    code: list[str] = []
    languages: set[str] = set()
    fence = ""  # of the open block
    for line in text.split("\n"):
        mark = _FENCE.match(line) if "```" in line or ("~" in line and "~~~" in line) else None
        if fence:
            if mark is not None and mark[1].startswith(fence) and not line[mark.end(1) :].strip("`~").strip():
                fence = ""
            else:
                code.append(line)
        elif mark is not None:
            fence = mark[1]
            if mark[2]:
                languages.add(language_token(mark[2]))
        else:
            prose.append(line)
    return "\n".join(prose), "\n".join([*sorted(languages), *code])
