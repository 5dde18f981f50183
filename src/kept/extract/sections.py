"""A page becomes a tree of sections, and the tree becomes rows: numbered, none too long, behind one hash.

    SectionData            a node of the tree, as the readers build it
    tree_of                nests what a reader found, in the order of the page, by heading level
    flatten_section_tree   numbers the nodes and splits the long ones
    split                  one long text -> parts, cut where a reader would pause
    content_of             title, markdown and tree -> Content

A section's text is the page's own Markdown, its heading line included: the sections of a page, one after the other,
say everything that the page says. Everything here takes time in proportion to the text, whatever the text is.
"""

from __future__ import annotations

import hashlib
import re
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from enum import Enum, IntEnum, auto
from typing import NamedTuple

from kept.errors import WrongCall
from kept.model.document import SECTIONS_PER_CONTENT, Content, Section

SECTIONING_VERSION = 1
"""Raised when the same tree and rules give other sections than before."""

LONGEST_HEADING = 300
"""Characters. Every part of a split section repeats its heading, so a heading of a megabyte must not be one."""


_LEAST_TARGET = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionRules:
    """How long a section may be, in characters. A longer one is split into parts of about the target."""

    max_characters: int = 4_000
    target_characters: int = 2_000

    def __post_init__(self) -> None:
        if not _LEAST_TARGET <= self.target_characters <= self.max_characters:
            raise WrongCall(
                f"Expected {_LEAST_TARGET} <= target <= max for the characters of a section, "
                f"found target {self.target_characters} and max {self.max_characters}."
            )

    def __str__(self) -> str:
        return f"sectioning {SECTIONING_VERSION} max {self.max_characters} target {self.target_characters}"


DEFAULT_RULES = SectionRules()


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionData:
    """A heading, what stands under it, and the headings below it. The root stands for what comes before any heading."""

    heading: str = ""  # plain words, no markup
    level: int = 0
    anchor: str | None = None
    content: str = ""  # Markdown, heading line included
    children: list[SectionData] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What a reader found in the bytes of one page."""

    title: str
    markdown: str
    tree: SectionData
    hrefs: list[str] = field(default_factory=list)  # as the page has them, in its order
    base: str | None = None  # what they are relative to, where the page says so itself: its <base>


@dataclass(frozen=True, slots=True, kw_only=True)
class Unreadable:
    """These bytes cannot be made into words, and why."""

    reason: str


# ── The tree, and the hash over it ───────────────────────────────────────────────────────────────────────────────────


def tree_of(nodes: Iterable[SectionData], before: str = "") -> SectionData:
    """The root over the nodes: each one goes below the nearest node before it that has a smaller level."""
    root = SectionData(content=before)
    above = [root]
    for node in nodes:
        while len(above) > 1 and above[-1].level >= node.level:
            above.pop()
        above[-1].children.append(node)
        above.append(node)
    return root


def content_of(title: str, markdown: str, tree: SectionData, rules: SectionRules) -> Content:
    """The content, its sections, and the hash that stands for all of it and for the rules that made it."""
    # So many headings that their numbers could run out is no outline any more: such a page is split as one text.
    if _count(tree) + 2 * len(markdown) // rules.target_characters >= SECTIONS_PER_CONTENT:
        tree = SectionData(content=markdown)
    sections = flatten_section_tree(tree, rules)
    return Content(hash=_hash(title, markdown, sections, rules), title=title, markdown=markdown, sections=sections)


def _count(tree: SectionData) -> int:
    count = 0
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node.children
    return count


def _hash(title: str, markdown: str, sections: tuple[Section, ...], rules: SectionRules) -> str:
    # Each field is preceded by its length, so that no two contents can run together into the same bytes. The sections
    # follow from the rest as long as the readers stay the same; they are covered so that a reader which learns to see
    # more headings makes a new content instead of finding the old one.
    fields = ["kept content 1", str(rules), title, markdown]
    for section in sections:
        anchor = "" if section.anchor is None else f"#{section.anchor}"
        fields += (f"{section.parent} {section.level}", section.heading, anchor, section.text)
    encoded = [field.encode("utf-8", "surrogatepass") for field in fields]
    return hashlib.sha256(b"".join([b"%d:%b" % (len(field), field) for field in encoded])).hexdigest()


# ── Flattening ───────────────────────────────────────────────────────────────────────────────────────────────────────


def flatten_section_tree(root: SectionData, rules: SectionRules) -> tuple[Section, ...]:
    """The sections of the tree in pre-order, numbered from 0; none longer than the rules allow.

    A node without words of its own is dropped if nothing is below it, and so is an empty root: the first headings
    have no parent. The parts of a split node share its heading, level, anchor and parent, and what is below the node
    is below its first part.
    """
    sections: list[Section] = []
    waiting: list[tuple[SectionData, int | None]] = [(root, None)]
    while waiting:
        node, parent = waiting.pop()
        first = len(sections)
        text = _without_blank_ends(node.content)
        if text or (node.children and node is not root):
            heading = node.heading[:LONGEST_HEADING]
            for part in split(text, rules):
                sections.append(
                    Section(
                        position=len(sections),
                        parent=parent,
                        level=node.level,
                        heading=heading,
                        anchor=node.anchor,
                        text=part,
                    )
                )
        below = None if node is root else first
        waiting += [(child, below) for child in reversed(node.children)]
    return tuple(sections)


_BLANK_LINES = re.compile(r"(?:[ \t]*\n)+")


def _without_blank_ends(text: str) -> str:
    text = text.rstrip()
    blank = _BLANK_LINES.match(text)
    return text[blank.end() :] if blank else text


# ── Splitting ────────────────────────────────────────────────────────────────────────────────────────────────────────


def split(text: str, rules: SectionRules) -> list[str]:
    """The text in parts no longer than the rules allow; a text that fits is one part.

    Cuts fall between blocks: paragraphs first, then list items, then what is inside them. A block that fits is never
    cut. Of one that does not, a fenced code block is cut between lines and its fence closed and opened again; a table
    between rows, its header repeated; all else between lines, sentences, words, and only then anywhere.
    """
    if len(text) <= rules.max_characters:
        return [text]
    parts: list[str] = []
    blocks = _blocks(text)
    near: deque[_Block] = deque()  # the blocks from the start of this part on, as far as it may reach
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
            lead = _without_blank_ends(text[start : large.start])
            parts += _broken(text[large.start : large.end], large.kind, lead, rules)
            start = large.end
            cut += 1
        for _ in range(cut):
            near.popleft()
    parts.append(text[start:])
    return [whole for part in parts if (whole := _without_blank_ends(part))]


def _best_cut(near: deque[_Block], start: int, rules: SectionRules) -> int:
    """Which block the next part had best begin with; 0 when the first parts would be too long or too short for that."""
    least = rules.target_characters // 2
    best = 0
    best_score = (len(_Pause), 0)
    for index, block in enumerate(near):
        reach = block.start - start
        if least <= reach <= rules.max_characters:
            score = (block.pause, abs(reach - rules.target_characters))
            if score < best_score:
                best, best_score = index, score
    if best:
        return best
    last = _last_in_reach(near, start, rules)
    fits = near[last].end - near[last].start <= rules.max_characters
    return last if fits else 0


def _last_in_reach(near: deque[_Block], start: int, rules: SectionRules) -> int:
    last = len(near) - 1
    return last - 1 if last and near[last].start - start > rules.max_characters else last


def _broken(block: str, kind: _Kind, lead: str, rules: SectionRules) -> Iterator[str]:
    """The parts of a block that does not fit; the first of them begins with the lead."""
    frame = _frame(block, kind)
    room = rules.max_characters - max(len(frame.first), len(frame.opening)) - len(frame.closing)
    if room < rules.max_characters // 2:  # a frame that large is no frame
        frame = _Frame(body=block)
        room = rules.max_characters
    if lead and room - len(lead) - 2 < rules.target_characters // 4:
        yield lead
        lead = ""
    before = f"{lead}\n\n{frame.first}" if lead else frame.first
    limit = room - len(lead) - 2 if lead else room
    start, empty = 0, True
    while start < len(frame.body):
        end = _where_to_cut(frame.body, start, limit, min(limit, rules.target_characters))
        if piece := frame.body[start:end].rstrip():
            yield before + piece + frame.closing
            before, limit, empty = frame.opening, room, False
        start = end
    if empty:  # nothing in it but blank lines
        yield before + frame.closing


class _Frame(NamedTuple):
    """What the first part of a block begins with, what the others begin with, what all end with, and the rest of it."""

    body: str
    first: str = ""
    opening: str = ""
    closing: str = ""


def _frame(block: str, kind: _Kind) -> _Frame:
    first, _, rest = block.partition("\n")
    if kind is _Kind.TABLE:
        rule, _, rows = rest.partition("\n")
        header = f"{first}\n{rule}\n"
        return _Frame(body=rows, first=header, opening=header)
    line = _Line(first)
    fence = _FENCE_OPENS.match(line.words) if kind is _Kind.FENCE else None
    if not fence:
        return _Frame(body=block)
    code, _, last = rest.rpartition("\n")
    closing = last.rstrip()
    margin = line.quote + " " * line.column
    if not _closes(_Line(last).words, fence[1] or fence[2]):
        code, closing = rest, margin + (fence[1] or fence[2])
    return _Frame(body=code, first=f"{first}\n", opening=f"{margin}{line.words}\n", closing=f"\n{closing}")


_SENTENCE_ENDS = (". ", "? ", "! ", ".\t", "。", "？", "！")


def _where_to_cut(text: str, start: int, limit: int, target: int) -> int:
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


# ── Blocks ───────────────────────────────────────────────────────────────────────────────────────────────────────────
#
# Near enough to CommonMark to know where not to cut, and much cheaper than parsing it: where the two disagree, a part
# ends in an odd place, and nothing is lost.


class _Kind(Enum):
    TEXT = auto()
    FENCE = auto()
    TABLE = auto()


class _Pause(IntEnum):
    """What a cut before a block would part; the smallest in reach wins."""

    BLOCKS = 0
    ITEMS = 1
    INNER = 2  # paragraphs of one list item or quotation
    HEADING = 3  # a heading from what stands under it


class _Block(NamedTuple):
    start: int
    end: int
    pause: _Pause
    kind: _Kind


_QUOTE = re.compile(r"(?: {0,3}> ?)++")
_ONE_QUOTE = re.compile(r" {0,3}> ?")
_ITEM = re.compile(r"(?:[-*+]|([0-9]{1,9})[.)])(?:[ \t]{1,4}(?![ \t])|[ \t]|$)")
_FENCE_OPENS = re.compile(r"(`{3,})[^`]*$|(~{3,})")
_HEADING = re.compile(r"#{1,6}(?:[ \t]|$)")
_UNDERLINE = re.compile(r"(?:=+|-+)[ \t]*$")
_TABLE_RULE = re.compile(r"[|:\- \t]*-[|:\- \t]*$")
_DEEPEST = 20  # list markers on one line


class _Line:
    """One line, taken apart: quotation marks, indentation in columns, list markers, words."""

    __slots__ = ("column", "indent", "interrupts", "items", "quote", "words")

    def __init__(self, line: str) -> None:
        quote = _QUOTE.match(line)
        self.quote = quote[0] if quote else ""
        body = line[len(self.quote) :]
        self.words = body.lstrip(" \t")
        margin = body[: len(body) - len(self.words)]
        self.indent = self.column = len(margin.expandtabs(4))
        self.items: list[int] = []  # the column where the words of each item begin
        self.interrupts = True  # only a list that begins with 1 can begin in the middle of a paragraph
        while len(self.items) < _DEEPEST and (item := _ITEM.match(self.words)):
            self.interrupts &= item[1] in (None, "1")
            self.words = self.words[item.end() :]
            self.column += len(item[0].expandtabs(4))
            self.items.append(self.column)


def _lines(text: str) -> Iterator[tuple[int, int]]:
    start = 0
    while (end := text.find("\n", start)) >= 0:
        yield start, end
        start = end + 1
    yield start, len(text)


def _blocks(text: str) -> Iterator[_Block]:
    """The blocks of a text in their order; between them there are only blank lines."""
    start = end = 0
    pause, kind = _Pause.BLOCKS, _Kind.TEXT
    items: list[int] = []  # the list items around this line, by the column where their words begin
    quotes = 0  # the quotations around it
    listing = False  # the last block outside all of them was a list item
    apart = True  # nothing joins this line to the one before
    code = False  # the block is indented code, which may have blank lines inside
    heading = False  # the block is a heading
    until: _Fence | str | None = None  # what ends the block, when blank lines do not

    for at, upto in _lines(text):
        if until is not None:
            raw = text[at:upto]
            inside, closes = until.meets(raw) if isinstance(until, _Fence) else (True, until in raw.lower())
            if inside:
                end = upto
            if closes:
                until, apart = None, True
            if inside:
                continue

        if not apart and kind is _Kind.TEXT and text[at : at + 1].isalpha() and text.find("|", at, upto) < 0:
            end = upto  # the paragraph goes on, as on most lines
            continue

        line = _Line(text[at:upto])
        marks = line.quote.count(">")
        if not line.words and not line.items:
            apart = True
            quotes = min(marks, quotes)
            continue

        joined = 0 < marks == quotes
        if marks > quotes or (apart and marks < quotes):
            items.clear()
            apart = True
        if apart:
            quotes = marks

        in_list = bool(items)
        if apart or line.items:
            while items and line.indent < items[-1]:
                items.pop()
        deeper = line.indent - (items[-1] if items else 0)
        is_item = bool(line.items) and deeper < 4 and (apart or in_list or line.interrupts)
        if apart and deeper >= 4 and code and joined == bool(marks):
            end = upto
            apart = False
            continue

        fence = _FENCE_OPENS.match(line.words) if deeper < 4 or listing else None
        titled = deeper < 4 and not line.items and _HEADING.match(line.words) is not None
        table = kind is not _Kind.TABLE and "|" in line.words and _is_table_rule(text, upto)
        boxed = line.words[:4].lower() == "<pre"
        if apart or is_item or fence or titled or table or boxed:
            if end:
                yield _Block(start, end, pause, kind)
            start = at
            if heading:
                pause = _Pause.HEADING
            elif items or joined:
                pause = _Pause.INNER
            else:
                pause = _Pause.ITEMS if is_item and listing else _Pause.BLOCKS
                listing = is_item
            kind = _Kind.FENCE if fence else _Kind.TABLE if table else _Kind.TEXT
            code = apart and deeper >= 4
            heading = titled
            if is_item:
                items += line.items
            if fence:
                until = _Fence(mark=fence[1] or fence[2], quotes=marks, column=items[-1] if items else 0)
            elif boxed and "</pre" not in line.words.lower():
                until = "</pre"
        elif kind is _Kind.TEXT and _UNDERLINE.match(line.words):
            heading = True
        end = upto
        apart = heading
    if end:
        yield _Block(start, end, pause, kind)


def _is_table_rule(text: str, end_of_line: int) -> bool:
    """Whether the line after this one is what makes a table of it: |---|---|"""
    stop = text.find("\n", end_of_line + 1)
    following = text[end_of_line + 1 : stop if stop >= 0 else len(text)]
    return following[:1] in " \t|:->" and _TABLE_RULE.match(_Line(following).words) is not None


class _Fence(NamedTuple):
    mark: str
    quotes: int
    column: int  # of the words of the list item around it

    def meets(self, line: str) -> tuple[bool, bool]:
        """Whether this line is still part of the code block, and whether the block ends here."""
        at = 0
        for _ in range(self.quotes):
            quote = _ONE_QUOTE.match(line, at)
            if not quote:
                return False, True
            at = quote.end()
        words = line[at:].lstrip(" \t")
        indent = len(line[at : len(line) - len(words)].expandtabs(4))
        if words and indent < self.column:
            return False, True
        return True, _closes(words, self.mark)


def _closes(words: str, mark: str) -> bool:
    words = words.rstrip()
    return len(words) >= len(mark) and not words.strip(mark[0])
