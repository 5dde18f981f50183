"""The part of a text that shows why it was found: pure."""

import re
import unicodedata
from bisect import bisect_left
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from kept.model.words import Term
from kept.search.rank import stem

LONGEST = 240
MOST_PLACES = 40

_HEADING_LINE = re.compile(r"\A#{1,6} [^\n]*\n?")
_LETTER = re.compile("[\u00c0-\u1eff]")
_BLOCK = re.compile(r"^[ >]*```[^\n]*\n(.*?)^[ >]*```", re.DOTALL | re.MULTILINE)


def code_in(text: str) -> str:
    """The code blocks of a text; all of it, if it has none."""
    return "\n".join(_BLOCK.findall(text)) or text


def snippet(text: str, terms: Sequence[Term]) -> str:
    """The part of a text, without its heading, where most of the terms stand together; they are marked."""
    body = _HEADING_LINE.sub("", text).replace("**", "")
    flat = " ".join((body.strip() or text).split())
    found = [match.span() for match in islice(_pattern(tuple(terms)).finditer(_bare(flat)), MOST_PLACES) if match[0]]
    starts = [start for start, _ in found]
    _, best = max(
        ((bisect_left(starts, start + LONGEST) - at, start) for at, start in enumerate(starts)),
        key=lambda pair: pair[0],
        default=(0, 0),
    )
    start = max(0, flat.rfind(" ", 0, max(0, best - LONGEST // 6)) + 1)
    end = len(flat) if start + LONGEST >= len(flat) else flat.rfind(" ", start, start + LONGEST)
    end = end if end > start else start + LONGEST
    shown, at = [], start
    for first, last in found:
        if at <= first and last <= end:
            shown += [flat[at:first], f"**{flat[first:last]}**"]
            at = last
    shown.append(flat[at:end])
    return f"{'… ' if start else ''}{''.join(shown)}{' …' if end < len(flat) else ''}"


@lru_cache(maxsize=64)
def _pattern(terms: tuple[Term, ...]) -> re.Pattern[str]:
    return re.compile("|".join(map(_spelled, terms)))


def _spelled(term: Term) -> str:
    """The words of a term in a row, in any spelling; the last may have any ending."""
    if any(not word.isascii() and len(word) <= 2 for word in term.words):  # neighbours, as they are written: in one
        return re.escape("".join(word[0] for word in term.words) + term.words[-1][1:])
    *first, last = term.words
    last = stem(last) if len(last) > 4 else last
    begin, *rest = map(re.escape, [*first, last])
    # What stands before it is looked at last: a pattern that begins with a letter is found many times as fast.
    return "".join([begin, rf"(?<![^\W_]{begin})", *(r"[\W_]{1,3}" + word for word in rest), r"[^\W_]*"])


def _bare(text: str) -> str:
    """The text in lower case and without accents, letter for letter."""
    if not text.isascii():
        text = _LETTER.sub(lambda letter: unicodedata.normalize("NFKD", letter[0])[0], text)
    lower = text.lower()
    return lower if len(lower) == len(text) else text
