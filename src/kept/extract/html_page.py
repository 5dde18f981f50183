"""A page while it is written as Markdown: what has been said, and what is open around the place where the walk is.

Words gather in a paragraph; the paragraph is written when a block begins or ends, behind the prefix of all the lists
and quotations around it. Every handler of a tag (html_inline, html_lists, html_cells ...) works on this one value and
answers what is to be done when the tag is closed.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

from kept.extract.html_rules import DROPPED_IDS, IDS_OF_NOTHING, NAVIGATION, Role, role_of
from kept.extract.html_tables import Table
from kept.extract.html_words import paragraph_start, unescaped, written

DEEPEST = 30
"""Lists in lists, and tables in tables; what is deeper is written without them, as no person would follow it."""

# A whole element with nothing but words in it (name, attributes, words), or a tag (name or /name, attributes); and the
# words behind it.
Token: TypeAlias = tuple[str, str, str, str, str, str]
Closer: TypeAlias = Callable[[], None] | None  # what is to be done at the end of an element


VOID = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip
BREAK = "\0"  # a line break inside a paragraph: no page that gets here has a NUL in it
_ID = re.compile(r' id="[^"]*"')
_TAB_ROLES = (('role="tabpanel"', Role.PANEL), ('role="tablist"', Role.TABS))


@dataclass(slots=True)
class Part:
    """A heading and what stands under it, as Markdown, the heading's own line included."""

    heading: str = ""
    level: int = 0
    anchor: str | None = None
    text: str = ""
    continues: bool = False  # the section of that heading, taken up again
    start: int = 0


@dataclass(slots=True, eq=False)
class Frame:
    """Something around paragraphs that puts a prefix before their lines: an item of a list, a quotation."""

    first: str  # before the very first line
    rest: str  # before all others
    list: List | None = None
    used: bool = False
    soft: bool = False  # a <blockquote>: often there only to indent code, and then it is not one
    blocks: int = 0


@dataclass(slots=True, eq=False)
class List:
    ordered: bool
    number: int
    around: Frame | None
    arranges: bool = False
    items: int = 0
    last: Frame | None = None


@dataclass(slots=True, eq=False)
class Definitions:
    kind: str
    nested: bool
    owner: Part
    depth: int
    item: Frame | None = None
    named: bool = False  # its terms are headings
    told: bool = False  # the last of them was explained


@dataclass(slots=True)
class Heading:
    level: int
    anchor: str | None
    inside: str | None = None
    permalink: str | None = None
    code: bool = False
    words: list[str] = field(default_factory=list)
    linked: tuple[str, str] = ("", "")  # the words of its permalink, as words and as Markdown: they may be all it has


def leave_out() -> None:
    """Stands, among what is to be done at the end of an element, for: nothing that is in it is said."""


def done() -> None:
    """Likewise for: all of it was taken already, up to its end."""


def one_line(words: list[str]) -> str:
    return " ".join("".join(words).replace(BREAK, " ").split())


def attribute(attributes: str, name: str) -> str | None:
    start = attributes.find(f' {name}="')
    if start < 0:
        return None
    start += len(name) + 3
    return unescaped(attributes[start : attributes.find('"', start)])


@lru_cache(10_000)
def _role(attributes: str) -> Role | None:
    """What attributes say; pages repeat themselves in them."""
    role = role_of(attribute(attributes, "class") or "")
    if role is Role.DROP or any(said in attributes for said in NAVIGATION):
        return Role.DROP
    if ' role="tab' in attributes:
        return next((tab for said, tab in _TAB_ROLES if said in attributes), role)
    return Role.DROP if ' hidden=""' in attributes else role


def _is_tight(item: Frame) -> bool:
    """Whether an item of a list stands right below what is before it, without a blank line."""
    around = item.list
    if around is None:
        return False
    if around.last is not None:
        return around.last.blocks <= 1
    return around.around is not None and around.around.list is not None and around.around.blocks == 1


class Page:
    """One page being written: blocks, the paragraph that is gathered, the sections, and what is open around it all."""

    def __init__(self) -> None:
        self.out: list[str] = []  # what is written: blocks and what is between them
        self.words: list[str] = []  # the paragraph that is being gathered
        self.spans: list[tuple[str, int, str]] = []  # what is open in it: kind, where it begins, target
        self.frames: list[Frame] = []
        self.lists: list[List] = []
        self.tables: list[Table] = []
        self.definitions: list[Definitions] = []
        self.parts = [Part()]
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
        self.tokens: Iterator[Token] = iter(())
        self.following = self._following()  # each tag to come, with the words behind it
        self.behind = ""  # the words behind the tag at hand

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
        text = " ".join(text.split())
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
            part = Part(around.heading, around.level, around.anchor, continues=True, start=len(self.out))
            self.parts.append(part)
            self.section = part

    def space(self) -> None:
        if self.words:
            self.words.append(" ")

    def _following(self) -> Iterator[tuple[str, str, str]]:
        for whole, its, inside, name, attributes, text in self.tokens:
            if whole:
                yield whole, its, inside
                yield f"/{whole}", "", text
            else:
                yield name, attributes, text

    def skip(self) -> str:
        """Goes to the end of the element that was just opened; the words behind it."""
        depth = 1
        for name, _, text in self.following:
            if name[:1] == "/":
                depth -= 1
                if not depth:
                    return text
            elif name and name not in VOID:
                depth += 1
        return ""

    def role(self, attributes: str, *, by_id: bool = True) -> Role | None:
        """What the attributes say the element is. Its id is remembered for the heading that may follow.

        The id of a heading, or of its section, is made of its words: one called "Footer" is no footer.
        """
        if ' id="' not in attributes:
            return _role(attributes)
        role = _role(_ID.sub("", attributes))
        if role is Role.DROP:
            return role
        self.note(attribute(attributes, "id"))
        if by_id and self.id in DROPPED_IDS:
            self.id = None
            return Role.DROP
        return role

    def note(self, anchor: str | None) -> None:
        if anchor and anchor not in IDS_OF_NOTHING:
            if self.heading is not None:
                self.heading.inside = self.heading.inside or anchor
            elif not self.words:
                self.id = anchor

    def line(self, between: str = " ") -> Closer:
        """A line of its own, in bold."""
        self.flush()

        def close() -> None:
            self.words[:] = ["".join(self.words).strip(" \n\t" + BREAK).replace(BREAK, between)]
            if self.words and (text := "".join(self.words)).islower() and self.frames:
                self.words[:] = [text.lstrip()[:1].upper() + text.lstrip()[1:]]  # "note", as CSS would have shown it
            self.flush("**")

        return close

    def is_quoted(self) -> bool:
        return any(not frame.soft and frame.list is None for frame in self.frames)

    def soften(self) -> None:
        if self.frames and self.frames[-1].soft and not self.frames[-1].used:
            self.frames[-1].first = self.frames[-1].rest = ""

    def framed(self, frame: Frame) -> Closer:
        if len(self.frames) >= DEEPEST:
            return self.flush
        self.frames.append(frame)

        def close() -> None:
            self.flush()
            self.unframe(frame)

        return close

    def unframe(self, frame: Frame) -> None:
        if frame in self.frames:
            del self.frames[self.frames.index(frame) :]
