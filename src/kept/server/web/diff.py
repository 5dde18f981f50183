"""Compares two versions of a text line by line, for two columns side by side."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from kept.service.document_diff import diff_lines

CONTEXT_LINES = 3  # unchanged lines around each change
MAX_LINES = 4_000  # the cost grows with the square of the lines that differ
_MAX_WORD_DIFF_LINE = 2_000  # characters; longer lines are not compared word by word
_MAX_WORD_DIFF_TOTAL = 100_000  # characters of all lines that are compared word by word


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A part of a line, and whether it differs from the other side."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """A row of both columns. A number is None where one side has no line; ``skipped`` counts equal lines left out."""

    left: tuple[DiffSpan, ...] = ()
    right: tuple[DiffSpan, ...] = ()
    left_number: int | None = None
    right_number: int | None = None
    skipped: int = 0

    @property
    def differs(self) -> bool:
        return self.left != self.right


def diff_rows(before: str, after: str) -> tuple[list[DiffRow], bool]:
    """Return the rows, and whether both texts were compared completely."""
    a, b = before.splitlines(), after.splitlines()
    is_complete = max(len(a), len(b)) <= MAX_LINES
    a, b = a[:MAX_LINES], b[:MAX_LINES]
    return list(_iter_rows(a, b)), is_complete


def _iter_rows(a: Sequence[str], b: Sequence[str]) -> Iterator[DiffRow]:
    codes = diff_lines(a, b)
    budget = _MAX_WORD_DIFF_TOTAL
    for index, (kind, a1, a2, b1, b2) in enumerate(codes):
        if kind == "equal":
            yield from _unchanged_rows(a, a1, a2, b1, first=index == 0, last=index == len(codes) - 1)
        else:
            for offset in range(max(a2 - a1, b2 - b1)):
                left = a1 + offset if a1 + offset < a2 else None
                right = b1 + offset if b1 + offset < b2 else None
                budget -= 0 if left is None or right is None else len(a[left]) + len(b[right])
                yield _changed_row(a, b, left, right, by_words=budget > 0)


def _unchanged_rows(a: Sequence[str], a1: int, a2: int, b1: int, *, first: bool, last: bool) -> Iterator[DiffRow]:
    head, tail = (0 if first else CONTEXT_LINES), (0 if last else CONTEXT_LINES)
    hidden = range(a1 + head, a2 - tail)
    for number in range(a1, a2):
        if len(hidden) > 1 and number in hidden:
            if number == hidden.start:
                yield DiffRow(skipped=len(hidden))
            continue
        same = (DiffSpan(a[number]),)
        yield DiffRow(left=same, right=same, left_number=number + 1, right_number=number - a1 + b1 + 1)


def _changed_row(a: Sequence[str], b: Sequence[str], left: int | None, right: int | None, *, by_words: bool) -> DiffRow:
    sides: tuple[tuple[DiffSpan, ...], tuple[DiffSpan, ...]]
    if left is not None and right is not None and by_words:
        sides = _diff_words(a[left], b[right])
    else:
        sides = (
            () if left is None else (DiffSpan(a[left], True),),
            () if right is None else (DiffSpan(b[right], True),),
        )
    return DiffRow(
        left=sides[0],
        right=sides[1],
        left_number=None if left is None else left + 1,
        right_number=None if right is None else right + 1,
    )


def _diff_words(left: str, right: str) -> tuple[tuple[DiffSpan, ...], tuple[DiffSpan, ...]]:
    """Mark the words that differ; lines with hardly a word in common differ as a whole."""
    a, b = left.split(" "), right.split(" ")
    matcher = SequenceMatcher(None, a, b)
    if max(len(left), len(right)) > _MAX_WORD_DIFF_LINE or matcher.ratio() < 0.4:
        return (DiffSpan(left, True),), (DiffSpan(right, True),)
    codes = matcher.get_opcodes()
    lefts = [DiffSpan(" ".join(a[a1:a2]), kind != "equal") for kind, a1, a2, _, _ in codes if a2 > a1]
    rights = [DiffSpan(" ".join(b[b1:b2]), kind != "equal") for kind, _, _, b1, b2 in codes if b2 > b1]
    return tuple(lefts), tuple(rights)
