"""The part of a text that shows why it was found: pure."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from kept.model.tokens import Term
from kept.search.rank import stem

MAX_SNIPPET_CHARACTERS = 240
MAX_MATCHES = 40

_HEADING_LINE = re.compile(r"\A#{1,6} [^\n]*\n?")
_ACCENTED_LETTER = re.compile("[\u00c0-\u1eff]")
_GAP = re.compile(r"[\W_]{1,3}")
_WORD_ENDING = re.compile(r"[^\W_]*")
_CODE_BLOCK = re.compile(r"^[ >]*```[^\n]*\n(.*?)^[ >]*```", re.DOTALL | re.MULTILINE)


def extract_code(text: str) -> str:
    """The code blocks of a text; all of it, if it has none."""
    return "\n".join(_CODE_BLOCK.findall(text)) or text


def make_snippet(text: str, terms: Sequence[Term]) -> str:
    """The part of a text, without its heading, where most of the terms stand together; they are marked."""
    body = _HEADING_LINE.sub("", text).replace("**", "")
    flat = " ".join((body.strip() or text).split())
    found = _find_matches(_fold_case_and_accents(flat), terms)[:MAX_MATCHES]
    starts = [start for start, _ in found]
    _, best = max(
        ((bisect_left(starts, start + MAX_SNIPPET_CHARACTERS) - at, start) for at, start in enumerate(starts)),
        key=lambda pair: pair[0],
        default=(0, 0),
    )
    start = max(0, flat.rfind(" ", 0, max(0, best - MAX_SNIPPET_CHARACTERS // 6)) + 1)
    end = (
        len(flat)
        if start + MAX_SNIPPET_CHARACTERS >= len(flat)
        else flat.rfind(" ", start, start + MAX_SNIPPET_CHARACTERS)
    )
    end = end if end > start else start + MAX_SNIPPET_CHARACTERS
    shown, at = [], start
    for first, last in found:
        if at <= first and last <= end:
            shown += [flat[at:first], f"**{flat[first:last]}**"]
            at = last
    shown.append(flat[at:end])
    return f"{'… ' if start else ''}{''.join(shown)}{' …' if end < len(flat) else ''}"


def _find_matches(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Where the terms stand, in order; of two that begin together, the longer. None lies within another."""
    found = [place for term in terms for place in islice(_find_term(text, term), MAX_MATCHES)]
    apart: list[tuple[int, int]] = []
    for place in sorted(found, key=lambda place: (place[0], -place[1])):
        if not apart or place[0] >= apart[-1][1]:
            apart.append(place)
    return apart


def _find_term(text: str, term: Term) -> Iterator[tuple[int, int]]:
    """Where its words stand in a row, in any spelling; the last may have any ending."""
    neighbours = any(not word.isascii() and len(word) <= 2 for word in term.words)
    if neighbours:  # as they are written: in one
        first, rest = "".join(word[0] for word in term.words) + term.words[-1][1:], []
    else:
        last = term.words[-1]
        first, *rest = *term.words[:-1], stem(last) if len(last) > 4 else last
    start = text.find(first)
    while start >= 0:
        end = start + len(first)
        if neighbours or (not text[start - 1 : start].isalnum() and (end := _match_remaining_words(text, end, rest))):
            yield start, end
        start = text.find(first, start + 1)


def _match_remaining_words(text: str, at: int, rest: Sequence[str]) -> int:
    """Where the rest of a term ends that goes on here, a sign or three between its words; 0 if it does not."""
    for word in rest:
        gap = _GAP.match(text, at)
        if gap is None or not text.startswith(word, gap.end()):
            return 0
        at = gap.end() + len(word)
    ending = _WORD_ENDING.match(text, at)
    return ending.end() if ending else at


def _fold_case_and_accents(text: str) -> str:
    """The text in lower case and without accents, letter for letter."""
    if not text.isascii():
        text = _ACCENTED_LETTER.sub(lambda letter: unicodedata.normalize("NFKD", letter[0])[0], text)
    lower = text.lower()
    return lower if len(lower) == len(text) else text
