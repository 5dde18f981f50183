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

from kept.extract.html.generator_rules import CONTAINER_IDS, DROPPED_IDS, ElementRole
from kept.extract.html.markdown_text import (
    collapse_whitespace,
    escape_block_start,
    escape_markdown,
    has_plain_whitespace,
    unescape_entities,
)
from kept.extract.html.tables import HtmlTable
from kept.extract.html.tags import Tag, TagCursor

MAX_NESTING: Final = 30
"""Lists in lists, and tables in tables; what is deeper is written without them, as no person would follow it."""

LINE_BREAK_MARK: Final = "\0"  # a line break inside a paragraph: no page that gets here has a NUL in it


class HtmlSection:
    """A heading and what stands under it, as Markdown, the heading's own line included."""

    __slots__ = ("anchor", "heading", "is_continuation", "level", "output_start", "text")

    def __init__(
        self, heading: str, level: int, anchor: str | None, output_start: int, *, is_continuation: bool = False
    ) -> None:
        self.heading = heading
        self.level = level
        self.anchor = anchor
        self.text = ""
        self.is_continuation = is_continuation  # the section of that heading, taken up again
        self.output_start = output_start


class ContainerBlock:
    """Something around paragraphs that puts a prefix before their lines: an item of a list, a quotation."""

    __slots__ = ("block_count", "first_prefix", "is_soft_quote", "is_started", "list", "next_prefix")

    def __init__(self, first: str, rest: str, around: ListBlock | None = None, *, is_soft_quote: bool = False) -> None:
        self.first_prefix = first  # before the very first line
        self.next_prefix = rest  # before all others
        self.list = around
        self.is_started = False
        self.is_soft_quote = is_soft_quote  # a <blockquote>: often there only to indent code, and then it is not one
        self.block_count = 0


class ListBlock:
    __slots__ = ("is_layout", "item_count", "last_item", "next_number", "ordered", "parent_container")

    def __init__(
        self, *, ordered: bool, next_number: int, parent_container: ContainerBlock | None, is_layout: bool = False
    ) -> None:
        self.ordered = ordered
        self.next_number = next_number
        self.parent_container = parent_container
        self.is_layout = is_layout
        self.item_count = 0
        self.last_item: ContainerBlock | None = None


class DefinitionList:
    __slots__ = ("classes", "depth", "has_description", "has_heading_terms", "is_nested", "open_item", "owner_section")

    def __init__(self, *, classes: str, is_nested: bool, owner_section: HtmlSection, depth: int) -> None:
        self.classes = classes
        self.is_nested = is_nested
        self.owner_section = owner_section
        self.depth = depth
        self.open_item: ContainerBlock | None = None
        self.has_heading_terms = False  # its terms are headings
        self.has_description = False  # the last of them was explained


class OpenHeading:
    __slots__ = ("anchor", "inner_anchor", "is_code", "level", "permalink", "permalink_text", "words")

    def __init__(self, level: int, anchor: str | None, *, is_code: bool) -> None:
        self.level = level
        self.anchor = anchor
        self.inner_anchor: str | None = None
        self.permalink: str | None = None
        self.is_code = is_code
        self.words: list[str] = []
        self.permalink_text = ("", "")  # the words of its permalink, as words and as Markdown: they may be all it has


def _is_tight(item: ContainerBlock) -> bool:
    """Whether an item of a list stands right below what is before it, without a blank line."""
    around = item.list
    if around is None:
        return False
    if around.last_item is not None:
        return around.last_item.block_count <= 1
    return (
        around.parent_container is not None
        and around.parent_container.list is not None
        and around.parent_container.block_count == 1
    )


class WriterState(TagCursor):
    """One page being written: blocks, the paragraph that is gathered, the sections, and what is open around it all."""

    def __init__(self, html: str) -> None:
        super().__init__(html)
        self.has_plain_whitespace = has_plain_whitespace(html)
        self.output: list[str] = []  # what is written: blocks and what is between them
        self.paragraph: list[str] = []  # the paragraph that is being gathered
        self.spans: list[tuple[str, int, str]] = []  # what is open in it: kind, where it begins, target
        self.containers: list[ContainerBlock] = []
        self.lists: list[ListBlock] = []
        self.tables: list[HtmlTable] = []
        self.definitions: list[DefinitionList] = []
        self.sections = [HtmlSection("", 0, None, 0)]
        self.current_section = self.sections[0]  # the part that words belong to now
        self.is_resuming_section = False  # they did not belong to it a moment ago
        self.heading: OpenHeading | None = None
        self.pending_id: str | None = None  # the last one that no words have followed
        self.code_depth = 0  # how many <code> are open
        self.language = ""
        self.in_member = False  # of Doxygen's
        self.in_code_group = False  # of VitePress's
        self.panel_labels: deque[str] = deque()  # of the panels to come, and of the code blocks to come
        self.code_labels: deque[str] = deque()

    def add_text(self, text: str) -> None:
        if text.isspace():
            if self.paragraph:
                self.paragraph.append(" ")
                if self.heading is not None:
                    self.heading.words.append(" ")
            return
        if "&" in text:
            text = unescape_entities(text)
        if "\u200b" in text:  # a place where a line may break, and no word
            text = text.replace("\u200b", "")
        if self.heading is not None:
            self.heading.words.append(text)
        self.paragraph.append(text if self.code_depth else escape_markdown(text))

    def flush(self, mark: str = "") -> None:
        """Writes the paragraph that has been gathered, if there is one."""
        if not self.paragraph:
            return
        text = "".join(self.paragraph)
        self.paragraph.clear()
        self.spans.clear()
        text = collapse_whitespace(text, self.has_plain_whitespace)
        if LINE_BREAK_MARK in text:
            for piece in re.split(r"\0(?: ?\0)+", text):
                lines = [line for line in map(str.strip, piece.split(LINE_BREAK_MARK)) if line]
                if lines:
                    self.write_block(mark + "\\\n".join(lines) + mark)
        elif text:
            self.write_block(f"{mark}{text.replace(mark, '')}{mark}" if mark else escape_block_start(text))

    def write_block(self, block: str) -> None:
        """Writes a block behind the prefix of what is around it."""
        self.pending_id = None
        if self.is_resuming_section:
            self._resume_section()
        out = self.output
        if not self.containers:
            if out:
                out.append("\n\n")
            out.append(block)
            return
        first, rest, between = "", "", ""
        tight = new = False
        for frame in self.containers:
            if frame.is_started:
                first += frame.next_prefix
                between = first
            else:
                if not new:
                    tight, new = _is_tight(frame), True
                first += frame.first_prefix
                frame.is_started = True
                if frame.list is not None:
                    frame.list.item_count += 1
                    frame.list.last_item = frame
            rest += frame.next_prefix
        self.containers[-1].block_count += 1
        if out:
            out.append("\n" if tight else f"\n{between.rstrip()}\n")
        if "\n" in block:
            block = block.replace("\n", f"\n{rest}")
            if rest and not rest.isspace():
                block = block.replace(f"\n{rest}\n", f"\n{rest.rstrip()}\n")
            else:
                block = re.sub(r"\n +(?=\n)", "\n", block)
        out.append(first + block)

    def _resume_section(self) -> None:
        self.is_resuming_section = False
        around, last = self.current_section, self.sections[-1]
        if self.tables:
            return
        if last.is_continuation and (last.heading, last.level, last.anchor) == (
            around.heading,
            around.level,
            around.anchor,
        ):
            self.current_section = last
        elif around is not last:
            part = HtmlSection(around.heading, around.level, around.anchor, len(self.output), is_continuation=True)
            self.sections.append(part)
            self.current_section = part

    def add_space(self) -> None:
        if self.paragraph:
            self.paragraph.append(" ")

    def resolve_role(self, tag: Tag, *, by_id: bool = True) -> ElementRole | None:
        """What its tag says the element is. Its id is remembered for the heading that may follow.

        The id of a heading, or of its section, is made of its words: one called "Footer" is no footer.
        """
        if tag.id is None or tag.role is ElementRole.DROP:
            return tag.role
        self.note_anchor(tag.id)
        if by_id and self.pending_id in DROPPED_IDS:
            self.pending_id = None
            return ElementRole.DROP
        return tag.role

    def note_anchor(self, anchor: str | None) -> None:
        if anchor and anchor not in CONTAINER_IDS:
            if self.heading is not None:
                self.heading.inner_anchor = self.heading.inner_anchor or anchor
            elif not self.paragraph:
                self.pending_id = anchor

    def open_bold_line(self) -> CloseHandler:
        """A line of its own, in bold."""
        self.flush()
        return write_bold_line

    def is_in_quote(self) -> bool:
        return any(not frame.is_soft_quote and frame.list is None for frame in self.containers)

    def drop_soft_quote(self) -> None:
        if self.containers and self.containers[-1].is_soft_quote and not self.containers[-1].is_started:
            self.containers[-1].first_prefix = self.containers[-1].next_prefix = ""

    def open_container(self, frame: ContainerBlock) -> CloseHandler:
        if len(self.containers) >= MAX_NESTING:
            return flush
        self.containers.append(frame)

        def close(page: WriterState) -> None:
            page.flush()
            page.close_container(frame)

        return close

    def close_container(self, frame: ContainerBlock) -> None:
        if frame in self.containers:
            del self.containers[self.containers.index(frame) :]


# ── What is to be done at the end of an element ──────────────────────────────────────────────────────────────────────

CloseHandler: TypeAlias = Callable[[WriterState], None] | None


def skip_content(page: WriterState) -> None:
    """Stands for: nothing that is in the element is said."""


def already_consumed(page: WriterState) -> None:
    """Stands for: all of it was taken already, up to its end."""


def flush(page: WriterState) -> None:
    page.flush()


def space(page: WriterState) -> None:
    page.add_space()


def write_bold_line(page: WriterState, between: str = " ") -> None:
    text = "".join(page.paragraph).strip(" \n\t" + LINE_BREAK_MARK).replace(LINE_BREAK_MARK, between)
    if text.islower() and page.containers:
        text = text.lstrip()[:1].upper() + text.lstrip()[1:]  # "note", as CSS would have shown it
    page.paragraph[:] = [text]
    page.flush("**")


def join_on_one_line(words: list[str]) -> str:
    return collapse_whitespace("".join(words).replace(LINE_BREAK_MARK, " "))
