"""The part of a text that shows why it was found: pure."""

import re
import unicodedata
from collections.abc import Sequence

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
    found = [match.span() for match in _pattern(terms).finditer(_bare(flat)) if match[0]][:MOST_PLACES]
    starts = [start for start, _ in found]
    best = max(starts, key=lambda start: sum(start <= other < start + LONGEST for other in starts), default=0)
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


def _pattern(terms: Sequence[Term]) -> re.Pattern[str]:
    return re.compile("|".join(map(_spelled, terms)), re.IGNORECASE)


def _spelled(term: Term) -> str:
    """The words of a term in a row, in any spelling; the last may have any ending."""
    if any(not word.isascii() and len(word) <= 2 for word in term.words):  # neighbours, as they are written: in one
        return re.escape("".join(word[0] for word in term.words) + term.words[-1][1:])
    *first, last = term.words
    last = stem(last) if len(last) > 4 else last
    between = r"[\W_]{1,3}"
    return rf"(?<![^\W_]){between.join(map(re.escape, [*first, last]))}[^\W_]*"


def _bare(text: str) -> str:
    """The text without accents, letter for letter."""
    return text if text.isascii() else _LETTER.sub(lambda letter: unicodedata.normalize("NFKD", letter[0])[0], text)
