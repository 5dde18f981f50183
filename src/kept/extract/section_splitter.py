"""One long text becomes parts, cut where a reader would pause.

    SectionRules    how long a section may be
    split           one text -> parts, none longer than the rules allow

It takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple

from kept.errors import InvalidInput
from kept.extract.markdown.blocks import (
    FENCE_START,
    Block,
    BlockKind,
    MarkdownLine,
    SplitCost,
    closes_fence,
    iter_blocks,
)

SECTIONING_VERSION: Final = 1
"""Raised when the same tree and rules give other sections than before."""

_MIN_TARGET: Final = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionRules:
    """How long a section may be, in characters. A longer one is split into parts of about the target."""

    max_characters: int = 4_000
    target_characters: int = 2_000

    def __post_init__(self) -> None:
        if not _MIN_TARGET <= self.target_characters <= self.max_characters:
            raise InvalidInput(
                f"Expected {_MIN_TARGET} <= target <= max for the characters of a section, "
                f"found target {self.target_characters} and max {self.max_characters}."
            )

    def __str__(self) -> str:
        return f"sectioning {SECTIONING_VERSION} max {self.max_characters} target {self.target_characters}"


DEFAULT_SECTION_RULES: Final = SectionRules()


def split_text(text: str, rules: SectionRules) -> list[str]:
    """The text in parts no longer than the rules allow; a text that fits is one part.

    Cuts fall between blocks: paragraphs first, then list items, then what is inside them. A block that fits is never
    cut. Of one that does not, a fenced code block is cut between lines and its fence closed and opened again; a table
    between rows, its header repeated; all else between lines, sentences, words, and only then anywhere.
    """
    if len(text) <= rules.max_characters:
        return [text]
    parts: list[str] = []
    blocks = iter_blocks(text)
    near: deque[Block] = deque()  # the blocks from the start of this part on, as far as it may reach
    start = 0
    while len(text) - start > rules.max_characters:
        while not near or near[-1].start - start <= rules.max_characters:
            block = next(blocks, None)
            if block is None:
                break
            near.append(block)
        if not near:  # nothing is left but blank lines
            break
        cut = _best_cut(near, start, rules)
        if cut:
            parts.append(text[start : near[cut].start])
            start = near[cut].start
        else:
            # A block that does not fit, perhaps after a little text that has to go with it.
            cut = _last_in_reach(near, start, rules)
            large = near[cut]
            lead = strip_blank_lines(text[start : large.start])
            parts += _split_block(text[large.start : large.end], large.kind, lead, rules)
            start = large.end
            cut += 1
        for _ in range(cut):
            near.popleft()
    parts.append(text[start:])
    return [whole for part in parts if (whole := strip_blank_lines(part))]


def _best_cut(near: deque[Block], start: int, rules: SectionRules) -> int:
    """Which block the next part had best begin with; 0 when the first parts would be too long or too short for that."""
    least = rules.target_characters // 2
    best = 0
    best_score = (len(SplitCost), 0)
    for index, block in enumerate(near):
        reach = block.start - start
        if least <= reach <= rules.max_characters:
            score = (block.split_cost, abs(reach - rules.target_characters))
            if score < best_score:
                best, best_score = index, score
    if best:
        return best
    last = _last_in_reach(near, start, rules)
    fits = near[last].end - near[last].start <= rules.max_characters
    return last if fits else 0


def _last_in_reach(near: deque[Block], start: int, rules: SectionRules) -> int:
    last = len(near) - 1
    return last - 1 if last and near[last].start - start > rules.max_characters else last


def _split_block(block: str, kind: BlockKind, lead: str, rules: SectionRules) -> Iterator[str]:
    """The parts of a block that does not fit; the first of them begins with the lead."""
    frame = _block_wrapper(block, kind)
    room = rules.max_characters - max(len(frame.first), len(frame.opening)) - len(frame.closing)
    if room < rules.max_characters // 2:  # a frame that large is no frame
        frame = _BlockWrapper(body=block)
        room = rules.max_characters
    if lead and room - len(lead) - 2 < rules.target_characters // 4:
        yield lead
        lead = ""
    before = f"{lead}\n\n{frame.first}" if lead else frame.first
    limit = room - len(lead) - 2 if lead else room
    start, empty = 0, True
    while start < len(frame.body):
        end = _find_cut(frame.body, start, limit, min(limit, rules.target_characters))
        if piece := frame.body[start:end].rstrip():
            yield before + piece + frame.closing
            before, limit, empty = frame.opening, room, False
        start = end
    if empty:  # nothing in it but blank lines
        yield before + frame.closing


class _BlockWrapper(NamedTuple):
    """What the first part of a block begins with, what the others begin with, what all end with, and the rest of it."""

    body: str
    first: str = ""
    opening: str = ""
    closing: str = ""


def _block_wrapper(block: str, kind: BlockKind) -> _BlockWrapper:
    first, _, rest = block.partition("\n")
    if kind is BlockKind.TABLE:
        rule, _, rows = rest.partition("\n")
        header = f"{first}\n{rule}\n"
        return _BlockWrapper(body=rows, first=header, opening=header)
    line = MarkdownLine(first)
    fence = FENCE_START.match(line.text) if kind is BlockKind.FENCE else None
    if not fence:
        return _BlockWrapper(body=block)
    code, _, last = rest.rpartition("\n")
    closing = last.rstrip()
    margin = line.quote + " " * line.column
    if not closes_fence(MarkdownLine(last).text, fence[1] or fence[2]):
        code, closing = rest, margin + (fence[1] or fence[2])
    return _BlockWrapper(body=code, first=f"{first}\n", opening=f"{margin}{line.text}\n", closing=f"\n{closing}")


_SENTENCE_ENDS: Final = (". ", "? ", "! ", ".\t", "。", "？", "！")


def _find_cut(text: str, start: int, limit: int, target: int) -> int:
    """Where the part that starts here ends: at most `limit` further, at about `target`, best of all after a line."""
    if len(text) - start <= limit:
        return len(text)
    low, wish, high = start + target // 2, start + target, start + limit
    if (at := text.rfind("\n", low, wish)) >= 0 or (at := text.find("\n", wish, high)) >= 0:
        return at + 1
    if (at := max(text.rfind(end, low, wish) + len(end) for end in _SENTENCE_ENDS)) > low:
        return at
    if (at := text.rfind(" ", low, wish)) >= 0 or (at := text.find(" ", wish, high)) >= 0:
        return at + 1
    if (at := max(text.rfind(" ", start, low), text.rfind("\n", start, low))) > start:
        return at + 1
    return wish


_BLANK_LINES: Final = re.compile(r"(?:[ \t]*\n)+")


def strip_blank_lines(text: str) -> str:
    text = text.rstrip()
    if not text or text[0] not in " \t\n":  # as most begin
        return text
    blank = _BLANK_LINES.match(text)
    return text[blank.end() :] if blank else text
