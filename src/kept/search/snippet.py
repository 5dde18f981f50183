"""Cuts the snippet of a hit: the part of its text where the query's terms occur."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import islice

from kept.model.tokens import Term
from kept.search.stems import stem

MAX_SNIPPET_CHARACTERS = 240
MAX_MATCHES = 40

_HEADING_LINE = re.compile(r"\A#{1,6} [^\n]*\n?")
_ACCENTED_LETTER = re.compile("[\u00c0-\u1eff]")
_GAP = re.compile(r"[\W_]{1,3}")
_WORD_ENDING = re.compile(r"[^\W_]*")
_CODE_BLOCK = re.compile(r"^[ >]*```[^\n]*\n(.*?)^[ >]*```", re.DOTALL | re.MULTILINE)


def extract_code(text: str) -> str:
    """Return the code blocks of a text, or all of it if it has none."""
    return "\n".join(_CODE_BLOCK.findall(text)) or text


def make_snippet(text: str, terms: Sequence[Term]) -> str:
    """Return the part of a text, without its heading, with the most matches; they are set in bold."""
    body = _HEADING_LINE.sub("", text).replace("**", "")
    flat = " ".join((body.strip() or text).split())
    matches = _find_matches(_fold_case_and_accents(flat), terms)[:MAX_MATCHES]
    starts = [start for start, _ in matches]
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
    parts, at = [], start
    for first, last in matches:
        if at <= first and last <= end:
            parts += [flat[at:first], f"**{flat[first:last]}**"]
            at = last
    parts.append(flat[at:end])
    return f"{'… ' if start else ''}{''.join(parts)}{' …' if end < len(flat) else ''}"


def _find_matches(text: str, terms: Sequence[Term]) -> list[tuple[int, int]]:
    """Return the spans of the terms, in order and without overlaps; of two that start together, the longer."""
    spans = [span for term in terms for span in islice(_find_term(text, term), MAX_MATCHES)]
    disjoint: list[tuple[int, int]] = []
    for span in sorted(spans, key=lambda span: (span[0], -span[1])):
        if not disjoint or span[0] >= disjoint[-1][1]:
            disjoint.append(span)
    return disjoint


def _find_term(text: str, term: Term) -> Iterator[tuple[int, int]]:
    """Yield the spans where the words of a term follow each other; the last may have any ending."""
    if term.text:
        sign, start = term.text.lower(), -1
        while (start := text.find(sign, start + 1)) >= 0:
            yield start, start + len(sign)
    if not term.words:
        return
    is_cjk = any(not word.isascii() and len(word) <= 2 for word in term.words)
    if is_cjk:  # overlapping pairs of characters, which are written as one run
        first, rest = "".join(word[0] for word in term.words) + term.words[-1][1:], []
    else:
        last = term.words[-1]
        first, *rest = *term.words[:-1], stem(last) if len(last) > 4 else last
    start = text.find(first)
    while start >= 0:
        end = start + len(first)
        if is_cjk or (not text[start - 1 : start].isalnum() and (end := _match_remaining_words(text, end, rest))):
            yield start, end
        start = text.find(first, start + 1)


def _match_remaining_words(text: str, at: int, rest: Sequence[str]) -> int:
    """Return where the rest of a term ends, with one to three separators between words; 0 if it does not follow."""
    for word in rest:
        gap = _GAP.match(text, at)
        if gap is None or not text.startswith(word, gap.end()):
            return 0
        at = gap.end() + len(word)
    ending = _WORD_ENDING.match(text, at)
    return ending.end() if ending else at


def _fold_case_and_accents(text: str) -> str:
    """Return the text in lower case and without accents, with the same length."""
    if not text.isascii():
        text = _ACCENTED_LETTER.sub(lambda letter: unicodedata.normalize("NFKD", letter[0])[0], text)
    lower = text.lower()
    return lower if len(lower) == len(text) else text
