"""The state of a conversion from HTML to Markdown: what has been written, and which elements are open.

Text is collected into a paragraph, which is written when a block begins or ends, behind the prefixes of all the lists
and quotations around it. Every handler of a start tag works on this state and returns the handler of its end tag.
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
from kept.extract.html.place_marks import MARK_START, place_mark, put_marks, split_outer_marks
from kept.extract.html.tables import HtmlTable
from kept.extract.html.tags import Tag, TagCursor

MAX_NESTING: Final = 30
"""Levels of lists in lists and of tables in tables. Deeper ones are written without their markup."""

BLOCK_TAGS: Final = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "col", "colgroup", "dd", "details", "dir",
    "div", "dl", "dt", "fieldset", "figcaption", "figure", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header",
    "hgroup", "hr", "li", "main", "menu", "ol", "p", "pre", "section", "summary", "table", "tbody", "td", "tfoot", "th",
    "thead", "tr", "ul",
})  # fmt: skip

LINE_BREAK_MARK: Final = "\0"  # a line break inside a paragraph; NULs were removed from the page before


class HtmlSection:
    """A heading and the text under it, as Markdown, including the heading's own line."""

    __slots__ = ("anchor", "heading", "is_continuation", "is_term", "level", "marks", "output_start", "text")

    def __init__(
        self,
        heading: str,
        level: int,
        anchor: str | None,
        output_start: int,
        *,
        is_continuation: bool = False,
    ) -> None:
        self.heading = heading
        self.level = level
        self.anchor = anchor
        self.text = ""
        self.marks: list[tuple[int, int]] = []  # the numbers of the places in it, and their positions
        self.is_term = False  # the term of a definition list, or the signature of a documented object
        self.is_continuation = is_continuation  # the section of that heading, resumed after a nested one
        self.output_start = output_start


class ContainerBlock:
    """A list item or a quotation: a block that puts a prefix before the lines of the blocks inside it."""

    __slots__ = ("block_count", "first_prefix", "is_soft_quote", "is_started", "list", "next_prefix")

    def __init__(
        self, first_prefix: str, next_prefix: str, parent_list: ListBlock | None = None, *, is_soft_quote: bool = False
    ) -> None:
        self.first_prefix = first_prefix  # before the first line
        self.next_prefix = next_prefix  # before all others
        self.list = parent_list
        self.is_started = False
        self.is_soft_quote = (
            is_soft_quote  # a <blockquote>; often only there to indent code, and then not written as a quotation
        )
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


class HtmlPlace:
    """An id or name, a term of a definition list, or the end of such a list."""

    __slots__ = ("anchor", "definition_list", "is_end", "shares_description")

    def __init__(
        self,
        anchor: str,
        definition_list: DefinitionList | None = None,
        *,
        is_end: bool = False,
        shares_description: bool = False,
    ) -> None:
        self.anchor = anchor
        self.definition_list = definition_list
        self.is_end = is_end
        self.shares_description = shares_description  # that of the term before


class DefinitionList:
    __slots__ = (
        "classes",
        "depth",
        "has_description",
        "has_heading_terms",
        "has_plain_terms",
        "is_nested",
        "open_item",
        "owner_section",
    )

    def __init__(self, *, classes: str, is_nested: bool, owner_section: HtmlSection, depth: int) -> None:
        self.classes = classes
        self.is_nested = is_nested
        self.owner_section = owner_section
        self.depth = depth
        self.open_item: ContainerBlock | None = None
        self.has_heading_terms = False  # its terms are written as headings
        self.has_plain_terms = False  # others are written as bold lines
        self.has_description = False  # the last term has had a <dd>


class OpenHeading:
    __slots__ = (
        "anchor",
        "inner_anchor",
        "is_code",
        "is_term",
        "level",
        "marks",
        "permalink",
        "permalink_text",
        "words",
        "wrapper_anchor",
    )

    def __init__(
        self, level: int, anchor: str | None, wrapper_anchor: str | None, *, is_code: bool, is_term: bool = False
    ) -> None:
        self.level = level
        self.anchor = anchor
        self.wrapper_anchor = wrapper_anchor  # of an element around it or just before it
        self.inner_anchor: str | None = None
        self.permalink: str | None = None
        self.is_code = is_code
        self.is_term = is_term
        self.words: list[str] = []
        self.marks = ""  # of places inside it
        self.permalink_text = ("", "")  # of its permalink, plain and as Markdown: may be all the text it has


def _is_tight(item: ContainerBlock) -> bool:
    """Return whether no blank line goes between a list item and the block before it."""
    parent_list = item.list
    if parent_list is None:
        return False
    if parent_list.last_item is not None:
        return parent_list.last_item.block_count <= 1
    return (
        parent_list.parent_container is not None
        and parent_list.parent_container.list is not None
        and parent_list.parent_container.block_count == 1
    )


class WriterState(TagCursor):
    """Everything the handlers read and change while one page is converted."""

    def __init__(self, html: str) -> None:
        super().__init__(html)
        self.has_plain_whitespace = has_plain_whitespace(html)
        self.output: list[str] = []  # the blocks written so far and their separators
        self.paragraph: list[str] = []  # the pieces of the current paragraph
        self.spans: list[tuple[str, int, str]] = []  # open spans in it: kind, index of the first piece, link target
        self.containers: list[ContainerBlock] = []
        self.lists: list[ListBlock] = []
        self.tables: list[HtmlTable] = []
        self.definitions: list[DefinitionList] = []
        self.sections = [HtmlSection("", 0, None, 0)]
        self.current_section = self.sections[0]  # the one that text belongs to now
        self.is_resuming_section = False  # the next block continues current_section after another one
        self.heading: OpenHeading | None = None
        self.pending_id: str | None = (
            None  # the last id with no text after it yet: a candidate for the next heading's anchor
        )
        self.places: list[HtmlPlace] = []  # by the numbers of their marks
        self.pending_marks = ""  # of places with no text after them yet
        self.code_depth = 0  # number of open <code>
        self.language = ""
        self.in_member = False  # in a row of Doxygen's member table
        self.in_code_group = False  # in VitePress's code group
        self.panel_labels: deque[str] = deque()  # labels of the next tab panels
        self.code_labels: deque[str] = deque()  # labels of the next code blocks

    def add_text(self, text: str) -> None:
        if text.isspace():
            if self.paragraph:
                self.paragraph.append(" ")
                if self.heading is not None:
                    self.heading.words.append(" ")
            return
        if "&" in text:
            text = unescape_entities(text)
        if "\u200b" in text:  # zero-width space
            text = text.replace("\u200b", "")
        if self.heading is not None:
            self.heading.words.append(text)
        self.paragraph.append(text if self.code_depth else escape_markdown(text))

    def flush(self, mark: str = "") -> None:
        """Write the current paragraph, if there is one."""
        if not self.paragraph:
            return
        text = "".join(self.paragraph)
        self.paragraph.clear()
        self.spans.clear()
        text = collapse_whitespace(text, self.has_plain_whitespace)
        trailing = ""  # they belong to what follows
        if MARK_START in text:
            leading, text, trailing = split_outer_marks(text)
            self.pending_marks += leading
        if LINE_BREAK_MARK in text:
            for piece in re.split(r"\0(?: ?\0)+", text):
                lines = [line for line in map(str.strip, piece.split(LINE_BREAK_MARK)) if line]
                if lines:
                    self.write_block(mark + "\\\n".join(lines) + mark)
        elif text:
            self.write_block(f"{mark}{text.replace(mark, '')}{mark}" if mark else escape_block_start(text))
        self.pending_marks += trailing

    def write_block(self, block: str) -> None:
        """Write a block behind the prefixes of the containers around it."""
        self.pending_id = None
        if self.is_resuming_section:
            self._resume_section()
        if self.pending_marks:
            block, self.pending_marks = put_marks(block, self.pending_marks), ""
        output = self.output
        if not self.containers:
            if output:
                output.append("\n\n")
            output.append(block)
            return
        first, rest, separator = "", "", ""
        is_tight = has_new_container = False
        for container in self.containers:
            if container.is_started:
                first += container.next_prefix
                separator = first
            else:
                if not has_new_container:
                    is_tight, has_new_container = _is_tight(container), True
                first += container.first_prefix
                container.is_started = True
                if container.list is not None:
                    container.list.item_count += 1
                    container.list.last_item = container
            rest += container.next_prefix
        self.containers[-1].block_count += 1
        if output:
            output.append("\n" if is_tight else f"\n{separator.rstrip()}\n")
        if "\n" in block:
            block = block.replace("\n", f"\n{rest}")
            if rest and not rest.isspace():
                block = block.replace(f"\n{rest}\n", f"\n{rest.rstrip()}\n")
            else:
                block = re.sub(r"\n +(?=\n)", "\n", block)
        output.append(first + block)

    def _resume_section(self) -> None:
        self.is_resuming_section = False
        resumed, last = self.current_section, self.sections[-1]
        if self.tables:
            return
        if last.is_continuation and (last.heading, last.level, last.anchor) == (
            resumed.heading,
            resumed.level,
            resumed.anchor,
        ):
            self.current_section = last
        elif resumed is not last:
            section = HtmlSection(
                resumed.heading, resumed.level, resumed.anchor, len(self.output), is_continuation=True
            )
            self.sections.append(section)
            self.current_section = section

    def add_space(self) -> None:
        if self.paragraph:
            self.paragraph.append(" ")

    def resolve_role(self, tag: Tag, *, by_id: bool = True) -> ElementRole | None:
        """Return the role of an element, and remember its id for a heading that may follow.

        Pass by_id=False for headings and their sections: generators derive their ids from the heading's text, so one
        with the id "footer" need not be a footer.
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

    def note_places(self, tag: Tag) -> None:
        """Remember the places that an element is, at the text that follows."""
        marks = "".join([self.add_place(HtmlPlace(anchor)) for anchor in tag.anchors])
        if self.heading is not None:
            self.heading.marks += marks
        elif tag.name in BLOCK_TAGS and not self.spans:
            self.flush()
            self.pending_marks += marks
        elif self.paragraph:
            self.paragraph.append(marks)
        else:
            self.pending_marks += marks

    def add_place(self, place: HtmlPlace) -> str:
        """Return the mark of a new place."""
        self.places.append(place)
        return place_mark(len(self.places) - 1)

    def open_bold_line(self) -> CloseHandler:
        """Start a line of its own, in bold."""
        self.flush()
        return write_bold_line

    def is_in_quote(self) -> bool:
        return any(not container.is_soft_quote and container.list is None for container in self.containers)

    def drop_soft_quote(self) -> None:
        if self.containers and self.containers[-1].is_soft_quote and not self.containers[-1].is_started:
            self.containers[-1].first_prefix = self.containers[-1].next_prefix = ""

    def open_container(self, container: ContainerBlock) -> CloseHandler:
        if len(self.containers) >= MAX_NESTING:
            return flush
        self.containers.append(container)

        def close(state: WriterState) -> None:
            state.flush()
            state.close_container(container)

        return close

    def close_container(self, container: ContainerBlock) -> None:
        if container in self.containers:
            del self.containers[self.containers.index(container) :]


# ── Handlers of end tags ──────────────────────────────────────────────────────────────────────────────────────────────

CloseHandler: TypeAlias = Callable[[WriterState], None] | None


def skip_content(state: WriterState) -> None:
    """A marker, never called: skip the content of the element."""


def already_consumed(state: WriterState) -> None:
    """A marker, never called: the handler of the start tag has read up to the end tag."""


def flush(state: WriterState) -> None:
    state.flush()


def space(state: WriterState) -> None:
    state.add_space()


_LABELS: Final = frozenset({
    "attention", "caution", "danger", "error", "example", "hint", "important", "info", "note", "notes", "see also",
    "success", "tip", "todo", "warning",
})  # fmt: skip


def write_bold_line(state: WriterState, line_separator: str = " ") -> None:
    text = "".join(state.paragraph).strip(" \n\t" + LINE_BREAK_MARK).replace(LINE_BREAK_MARK, line_separator)
    if state.containers and text in _LABELS:
        text = text.capitalize()  # pages capitalize it by CSS; any other word may be a name
    state.paragraph[:] = [text]
    state.flush("**")


def join_on_one_line(words: list[str]) -> str:
    return collapse_whitespace("".join(words).replace(LINE_BREAK_MARK, " "))
