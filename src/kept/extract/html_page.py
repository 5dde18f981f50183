"""A page while it is written as Markdown: what has been said, and what is open around the place where the walk is.

Words gather in a paragraph; the paragraph is written when a block begins or ends, behind the prefix of all the lists
and quotations around it. Every handler of a tag (html_inline, html_lists, html_cells ...) works on this one value and
answers what is to be done when the tag is closed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from typing import Final, TypeAlias

from kept.extract.html_rules import DROPPED_IDS, IDS_OF_NOTHING, Role
from kept.extract.html_tables import Table
from kept.extract.html_tags import Tag, Walk
from kept.extract.html_words import is_tidy, one_spaced, paragraph_start, unescaped, written

DEEPEST: Final = 30
"""Lists in lists, and tables in tables; what is deeper is written without them, as no person would follow it."""

BREAK: Final = "\0"  # a line break inside a paragraph: no page that gets here has a NUL in it


class Part:
    """A heading and what stands under it, as Markdown, the heading's own line included."""

    __slots__ = ("anchor", "continues", "heading", "level", "start", "text")

    def __init__(self, heading: str, level: int, anchor: str | None, start: int, *, continues: bool = False) -> None:
        self.heading = heading
        self.level = level
        self.anchor = anchor
        self.text = ""
        self.continues = continues  # the section of that heading, taken up again
        self.start = start


class Frame:
    """Something around paragraphs that puts a prefix before their lines: an item of a list, a quotation."""

    __slots__ = ("blocks", "first", "list", "rest", "soft", "used")

    def __init__(self, first: str, rest: str, around: List | None = None, *, soft: bool = False) -> None:
        self.first = first  # before the very first line
        self.rest = rest  # before all others
        self.list = around
        self.used = False
        self.soft = soft  # a <blockquote>: often there only to indent code, and then it is not one
        self.blocks = 0


class List:
    __slots__ = ("around", "arranges", "items", "last", "number", "ordered")

    def __init__(self, *, ordered: bool, number: int, around: Frame | None, arranges: bool = False) -> None:
        self.ordered = ordered
        self.number = number
        self.around = around
        self.arranges = arranges
        self.items = 0
        self.last: Frame | None = None


class Definitions:
    __slots__ = ("depth", "item", "kind", "named", "nested", "owner", "told")

    def __init__(self, *, kind: str, nested: bool, owner: Part, depth: int) -> None:
        self.kind = kind
        self.nested = nested
        self.owner = owner
        self.depth = depth
        self.item: Frame | None = None
        self.named = False  # its terms are headings
        self.told = False  # the last of them was explained


class Heading:
    __slots__ = ("anchor", "code", "inside", "level", "linked", "permalink", "words")

    def __init__(self, level: int, anchor: str | None, *, code: bool) -> None:
        self.level = level
        self.anchor = anchor
        self.inside: str | None = None
        self.permalink: str | None = None
        self.code = code
        self.words: list[str] = []
        self.linked = ("", "")  # the words of its permalink, as words and as Markdown: they may be all it has


def _is_tight(item: Frame) -> bool:
    """Whether an item of a list stands right below what is before it, without a blank line."""
    around = item.list
    if around is None:
        return False
    if around.last is not None:
        return around.last.blocks <= 1
    return around.around is not None and around.around.list is not None and around.around.blocks == 1


class Page(Walk):
    """One page being written: blocks, the paragraph that is gathered, the sections, and what is open around it all."""

    def __init__(self, html: str) -> None:
        super().__init__(html)
        self.tidy = is_tidy(html)
        self.out: list[str] = []  # what is written: blocks and what is between them
        self.words: list[str] = []  # the paragraph that is being gathered
        self.spans: list[tuple[str, int, str]] = []  # what is open in it: kind, where it begins, target
        self.frames: list[Frame] = []
        self.lists: list[List] = []
        self.tables: list[Table] = []
        self.definitions: list[Definitions] = []
        self.parts = [Part("", 0, None, 0)]
        self.section = self.parts[0]  # the part that words belong to now
        self.resumes = False  # they did not belong to it a moment ago
        self.heading: Heading | None = None
        self.id: str | None = None  # the last one that no words have followed
        self.code = 0  # how many <code> are open
        self.language = ""
        self.in_member = False  # of Doxygen's
        self.in_group = False  # of VitePress's
        self.labels: deque[str] = deque()  # of the panels to come, and of the code blocks to come
        self.code_labels: deque[str] = deque()

    def say(self, text: str) -> None:
        if text.isspace():
            if self.words:
                self.words.append(" ")
                if self.heading is not None:
                    self.heading.words.append(" ")
            return
        if "&" in text:
            text = unescaped(text)
        if "\u200b" in text:  # a place where a line may break, and no word
            text = text.replace("\u200b", "")
        if self.heading is not None:
            self.heading.words.append(text)
        self.words.append(text if self.code else written(text))

    def flush(self, mark: str = "") -> None:
        """Writes the paragraph that has been gathered, if there is one."""
        if not self.words:
            return
        text = "".join(self.words)
        self.words.clear()
        self.spans.clear()
        text = one_spaced(text, self.tidy)
        if BREAK in text:
            for piece in re.split(r"\0(?: ?\0)+", text):
                lines = [line for line in map(str.strip, piece.split(BREAK)) if line]
                if lines:
                    self.put(mark + "\\\n".join(lines) + mark)
        elif text:
            self.put(f"{mark}{text.replace(mark, '')}{mark}" if mark else paragraph_start(text))

    def put(self, block: str) -> None:
        """Writes a block behind the prefix of what is around it."""
        self.id = None
        if self.resumes:
            self._resume()
        out = self.out
        if not self.frames:
            if out:
                out.append("\n\n")
            out.append(block)
            return
        first, rest, between = "", "", ""
        tight = new = False
        for frame in self.frames:
            if frame.used:
                first += frame.rest
                between = first
            else:
                if not new:
                    tight, new = _is_tight(frame), True
                first += frame.first
                frame.used = True
                if frame.list is not None:
                    frame.list.items += 1
                    frame.list.last = frame
            rest += frame.rest
        self.frames[-1].blocks += 1
        if out:
            out.append("\n" if tight else f"\n{between.rstrip()}\n")
        if "\n" in block:
            block = block.replace("\n", f"\n{rest}")
            if rest and not rest.isspace():
                block = block.replace(f"\n{rest}\n", f"\n{rest.rstrip()}\n")
            else:
                block = re.sub(r"\n +(?=\n)", "\n", block)
        out.append(first + block)

    def _resume(self) -> None:
        self.resumes = False
        around, last = self.section, self.parts[-1]
        if self.tables:
            return
        if last.continues and (last.heading, last.level, last.anchor) == (around.heading, around.level, around.anchor):
            self.section = last
        elif around is not last:
            part = Part(around.heading, around.level, around.anchor, len(self.out), continues=True)
            self.parts.append(part)
            self.section = part

    def space(self) -> None:
        if self.words:
            self.words.append(" ")

    def role(self, tag: Tag, *, by_id: bool = True) -> Role | None:
        """What its tag says the element is. Its id is remembered for the heading that may follow.

        The id of a heading, or of its section, is made of its words: one called "Footer" is no footer.
        """
        if tag.id is None or tag.role is Role.DROP:
            return tag.role
        self.note(tag.id)
        if by_id and self.id in DROPPED_IDS:
            self.id = None
            return Role.DROP
        return tag.role

    def note(self, anchor: str | None) -> None:
        if anchor and anchor not in IDS_OF_NOTHING:
            if self.heading is not None:
                self.heading.inside = self.heading.inside or anchor
            elif not self.words:
                self.id = anchor

    def line(self) -> Closer:
        """A line of its own, in bold."""
        self.flush()
        return end_line

    def is_quoted(self) -> bool:
        return any(not frame.soft and frame.list is None for frame in self.frames)

    def soften(self) -> None:
        if self.frames and self.frames[-1].soft and not self.frames[-1].used:
            self.frames[-1].first = self.frames[-1].rest = ""

    def framed(self, frame: Frame) -> Closer:
        if len(self.frames) >= DEEPEST:
            return flush
        self.frames.append(frame)

        def close(page: Page) -> None:
            page.flush()
            page.unframe(frame)

        return close

    def unframe(self, frame: Frame) -> None:
        if frame in self.frames:
            del self.frames[self.frames.index(frame) :]


# ── What is to be done at the end of an element ──────────────────────────────────────────────────────────────────────

Closer: TypeAlias = Callable[[Page], None] | None


def leave_out(page: Page) -> None:
    """Stands for: nothing that is in the element is said."""


def done(page: Page) -> None:
    """Stands for: all of it was taken already, up to its end."""


def flush(page: Page) -> None:
    page.flush()


def space(page: Page) -> None:
    page.space()


def end_line(page: Page, between: str = " ") -> None:
    text = "".join(page.words).strip(" \n\t" + BREAK).replace(BREAK, between)
    if text.islower() and page.frames:
        text = text.lstrip()[:1].upper() + text.lstrip()[1:]  # "note", as CSS would have shown it
    page.words[:] = [text]
    page.flush("**")


def one_line(words: list[str]) -> str:
    return one_spaced("".join(words).replace(BREAK, " "))
