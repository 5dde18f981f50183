"""Two versions of a text side by side, line by line."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from kept.service.document_diff import diff_lines

CONTEXT_LINES = 3  # lines around what differs
MAX_LINES = 4_000  # that are compared; comparing costs the square of what differs
_MAX_WORD_DIFF_LINE = 2_000  # in which words are compared
_MAX_WORD_DIFF_TOTAL = 100_000  # characters of lines in which words are compared


@dataclass(frozen=True, slots=True)
class DiffSpan:
    """A part of a line, and whether the other side does not have it."""

    text: str
    differs: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffRow:
    """The same place on both sides. No number: nothing is there. ``skipped``: so many equal lines are left out."""

    left: tuple[DiffSpan, ...] = ()
    right: tuple[DiffSpan, ...] = ()
    left_number: int | None = None
    right_number: int | None = None
    skipped: int = 0

    @property
    def differs(self) -> bool:
        return self.left != self.right


def diff_rows(before: str, after: str) -> tuple[list[DiffRow], bool]:
    """The lines of both with what differs, and whether that is all of it."""
    a, b = before.splitlines(), after.splitlines()
    whole = max(len(a), len(b)) <= MAX_LINES
    a, b = a[:MAX_LINES], b[:MAX_LINES]
    return list(_iter_rows(a, b)), whole


def _iter_rows(a: Sequence[str], b: Sequence[str]) -> Iterator[DiffRow]:
    codes = diff_lines(a, b)
    room = _MAX_WORD_DIFF_TOTAL
    for at, (kind, a1, a2, b1, b2) in enumerate(codes):
        if kind == "equal":
            yield from _unchanged_rows(a, a1, a2, b1, first=at == 0, last=at == len(codes) - 1)
        else:
            for offset in range(max(a2 - a1, b2 - b1)):
                left = a1 + offset if a1 + offset < a2 else None
                right = b1 + offset if b1 + offset < b2 else None
                room -= 0 if left is None or right is None else len(a[left]) + len(b[right])
                yield _changed_row(a, b, left, right, by_words=room > 0)


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
    pieces: tuple[tuple[DiffSpan, ...], tuple[DiffSpan, ...]]
    if left is not None and right is not None and by_words:
        pieces = _diff_words(a[left], b[right])
    else:
        pieces = (
            () if left is None else (DiffSpan(a[left], True),),
            () if right is None else (DiffSpan(b[right], True),),
        )
    return DiffRow(
        left=pieces[0],
        right=pieces[1],
        left_number=None if left is None else left + 1,
        right_number=None if right is None else right + 1,
    )


def _diff_words(left: str, right: str) -> tuple[tuple[DiffSpan, ...], tuple[DiffSpan, ...]]:
    """Which words of two lines differ; where hardly any is the same, all of them do."""
    a, b = left.split(" "), right.split(" ")
    matcher = SequenceMatcher(None, a, b)
    if max(len(left), len(right)) > _MAX_WORD_DIFF_LINE or matcher.ratio() < 0.4:
        return (DiffSpan(left, True),), (DiffSpan(right, True),)
    codes = matcher.get_opcodes()
    lefts = [DiffSpan(" ".join(a[a1:a2]), kind != "equal") for kind, a1, a2, _, _ in codes if a2 > a1]
    rights = [DiffSpan(" ".join(b[b1:b2]), kind != "equal") for kind, _, _, b1, b2 in codes if b2 > b1]
    return tuple(lefts), tuple(rights)
