"""Split long Markdown into parts at the least harmful places.

    SectionRules    how long a section may be
    split_text      text -> parts, none longer than the rules allow

The time is linear in the text, whatever the text is.
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
"""Raise it when the same tree and rules give other sections than before."""

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
    """Return the text in parts no longer than the rules allow; a text that fits is one part.

    Cuts fall between blocks: between paragraphs first, then between list items, then inside them. A block that fits is
    never cut. A fenced code block that does not fit is cut between lines, its fence closed and opened again; a table
    between rows, its header repeated; all else between lines, else sentences, else words, else anywhere.
    """
    if len(text) <= rules.max_characters:
        return [text]
    parts: list[str] = []
    blocks = iter_blocks(text)
    near: deque[Block] = deque()  # the blocks from the start of this part up to its maximal length
    start = 0
    while len(text) - start > rules.max_characters:
        while not near or near[-1].start - start <= rules.max_characters:
            block = next(blocks, None)
            if block is None:
                break
            near.append(block)
        if not near:  # only blank lines are left
            break
        cut = _best_cut(near, start, rules)
        if cut:
            parts.append(text[start : near[cut].start])
            start = near[cut].start
        else:
            # A block that does not fit, perhaps after a short text that stays with it.
            cut = _last_in_reach(near, start, rules)
            large = near[cut]
            lead = strip_blank_lines(text[start : large.start])
            parts += _split_block(text[large.start : large.end], large.kind, lead, rules)
            start = large.end
            cut += 1
        for _ in range(cut):
            near.popleft()
    parts.append(text[start:])
    return [stripped for part in parts if (stripped := strip_blank_lines(part))]


def _best_cut(near: deque[Block], start: int, rules: SectionRules) -> int:
    """Return the index of the block that the next part should begin with; 0 if no cut between blocks is possible."""
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
    """Yield the parts of a block that does not fit; the first one begins with the lead."""
    wrapper = _block_wrapper(block, kind)
    available = rules.max_characters - max(len(wrapper.first), len(wrapper.opening)) - len(wrapper.closing)
    if available < rules.max_characters // 2:  # too long to be repeated in each part
        wrapper = _BlockWrapper(body=block)
        available = rules.max_characters
    if lead and available - len(lead) - 2 < rules.target_characters // 4:
        yield lead
        lead = ""
    opening = f"{lead}\n\n{wrapper.first}" if lead else wrapper.first
    limit = available - len(lead) - 2 if lead else available
    start, is_empty = 0, True
    while start < len(wrapper.body):
        end = _find_cut(wrapper.body, start, limit, min(limit, rules.target_characters))
        if piece := wrapper.body[start:end].rstrip():
            yield opening + piece + wrapper.closing
            opening, limit, is_empty = wrapper.opening, available, False
        start = end
    if is_empty:  # only blank lines in it
        yield opening + wrapper.closing


class _BlockWrapper(NamedTuple):
    """The lines around the body of a block, which each of its parts repeats: a fence, or the header of a table."""

    body: str
    first: str = ""  # before the first part
    opening: str = ""  # before the others
    closing: str = ""  # after all


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
    """Return the end of the part that starts here: at most `limit` further, near `target`, preferably after a line."""
    if len(text) - start <= limit:
        return len(text)
    low, middle, high = start + target // 2, start + target, start + limit
    if (at := text.rfind("\n", low, middle)) >= 0 or (at := text.find("\n", middle, high)) >= 0:
        return at + 1
    if (at := max(text.rfind(end, low, middle) + len(end) for end in _SENTENCE_ENDS)) > low:
        return at
    if (at := text.rfind(" ", low, middle)) >= 0 or (at := text.find(" ", middle, high)) >= 0:
        return at + 1
    if (at := max(text.rfind(" ", start, low), text.rfind("\n", start, low))) > start:
        return at + 1
    return middle


_BLANK_LINES: Final = re.compile(r"(?:[ \t]*\n)+")


def strip_blank_lines(text: str) -> str:
    text = text.rstrip()
    if not text or text[0] not in " \t\n":  # as in most texts
        return text
    blank = _BLANK_LINES.match(text)
    return text[blank.end() :] if blank else text
