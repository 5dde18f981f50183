"""Convert well-formed HTML to Markdown sections in one pass over its tags.

The pass never goes back, so its time is linear in the length of the page, however deeply that is nested. The handler
of a start tag returns a handler that is pushed on a stack and called at the matching end tag. Handlers share one
`WriterState`; they live in inline, headings, code, lists, definitions, table_cells and tabs. The tables at the end of
this module map tags and roles to handlers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kept.extract.html import code, definitions, headings, inline, lists, table_cells, tabs
from kept.extract.html.generator_rules import IGNORED_TAGS, ElementRole
from kept.extract.html.place_marks import MARK_START, take_place_marks
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import (
    CloseHandler,
    HtmlSection,
    WriterState,
    already_consumed,
    flush,
    skip_content,
    space,
)

__all__ = ["HtmlMarkdownWriter", "HtmlSection"]

OpenHandler: TypeAlias = Callable[[WriterState, Tag], CloseHandler]


class HtmlMarkdownWriter(WriterState):
    """Converts one page. Create one for each call of write_sections()."""

    def write_sections(self) -> list[HtmlSection]:
        """Return the sections in page order. The first one has no heading, and often no text."""
        close_handlers: list[CloseHandler] = []
        # Bound to locals: compiled code looks up a module's names in a dictionary each time.
        open_handlers, paragraph = _OPEN_HANDLERS_BY_TAG, self.paragraph
        flush_, skip, consumed = flush, skip_content, already_consumed
        while self.next_tag():
            if self.is_end_tag:
                close = close_handlers.pop() if close_handlers else None
                if close is flush_:
                    if paragraph:
                        self.flush()
                elif close is not None:
                    close(self)
            else:
                tag = self.tag
                if tag.anchors:
                    self.note_places(tag)
                open_handler = open_handlers.get(tag.name)
                if open_handler is not None:
                    close = open_handler(self, tag)
                elif tag.attributes and not tag.is_void:
                    close = inline.inline_element(self, tag)
                else:
                    close = None
                if close is skip:
                    if not tag.is_void:
                        self.skip_element()
                elif close is not consumed and not tag.is_void:
                    close_handlers.append(close)
            text = self.text_after
            if text:
                if text.isspace() and self.heading is None:
                    if paragraph:
                        paragraph.append(" ")
                else:
                    self.add_text(text)
        while close_handlers:
            close = close_handlers.pop()
            if close is not None:
                close(self)
        self.flush()
        if self.pending_marks:
            self.output.append(self.pending_marks)
        ends = [section.output_start for section in self.sections[1:]] + [len(self.output)]
        for section, end in zip(self.sections, ends, strict=True):
            text = "".join(self.output[section.output_start : end]).strip("\n")
            if MARK_START in text:
                text, section.marks = take_place_marks(text)
            section.text = text
        return self.sections


# ── Generic blocks: their classes decide ──────────────────────────────────────────────────────────────────────────────


def _drop(state: WriterState, tag: Tag) -> CloseHandler:
    state.add_space()
    return skip_content


def _block(state: WriterState, tag: Tag) -> CloseHandler:
    in_link = bool(state.spans) and state.spans[-1][0] == "a" and tag.name in ("div", "p")  # a card is one link
    if in_link or state.heading is not None:
        state.add_space()
        return skip_content if state.resolve_role(tag) is ElementRole.DROP else space
    state.flush()
    if not tag.attributes:
        return flush
    role = state.resolve_role(tag, by_id=tag.name != "section" and 'class="section' not in tag.attributes)
    if role is not None:
        return _OPEN_HANDLERS_BY_ROLE[role](state, tag)
    if tag.name == "div" and 'class="' in tag.attributes:
        if state.in_code_group and 'class="tabs"' in tag.attributes:
            return tabs.tab_labels(state, tag)
        return code.code_wrapper(state, tag)
    return flush


def _plain_block(state: WriterState, tag: Tag) -> CloseHandler:
    return flush


def _title_block(state: WriterState, tag: Tag) -> CloseHandler:
    return state.open_bold_line()


def _heading_block(state: WriterState, tag: Tag) -> CloseHandler:
    return headings.open_heading(state, 1, tag)


def _math_block(state: WriterState, tag: Tag) -> CloseHandler:
    return inline.open_math(state, "$$")


def _div(state: WriterState, tag: Tag) -> CloseHandler:
    """Open a block, or a cell of a grid that javadoc builds out of <div>."""
    if state.tables and state.tables[-1].is_grid and tag.classes:
        if tag.classes.startswith("col-") or "table-header" in tag.classes:
            return table_cells.grid_cell(state, state.tables[-1], tag)
        if tag.classes == "caption":
            return table_cells.caption(state, tag)
    return _block(state, tag)


def _table(state: WriterState, tag: Tag) -> CloseHandler:
    """Open a table, which some generators make of code and of signatures."""
    if tag.role is ElementRole.CODE or (
        tag.role is ElementRole.OBJECT and not state.tables and not state.is_in_quote()
    ):
        return _block(state, tag)
    return table_cells.table(state, tag)


# ── Handlers by role and by tag ───────────────────────────────────────────────────────────────────────────────────────

_OPEN_HANDLERS_BY_ROLE: Final[dict[ElementRole, OpenHandler]] = {
    ElementRole.DROP: _drop,
    ElementRole.PERMALINK: _plain_block,
    ElementRole.ADMONITION: lists.quote,
    ElementRole.TITLE: _title_block,
    ElementRole.HEADING: _heading_block,
    ElementRole.CODE: code.code_block,
    ElementRole.SIGNATURE: code.signature,
    ElementRole.GRID: table_cells.grid,
    ElementRole.LAYOUT: _plain_block,
    ElementRole.MATH: _math_block,
    ElementRole.TABS: tabs.tab_labels,
    ElementRole.PANEL: tabs.tab_panel,
    ElementRole.CODE_GROUP: tabs.code_group,
    ElementRole.MEMBER: _plain_block,
    ElementRole.OBJECT: headings.open_object,
    ElementRole.SEPARATOR: _plain_block,
    ElementRole.MEMBER_DESCRIPTION: _plain_block,
}

_OPEN_HANDLERS_BY_TAG: Final[dict[str, OpenHandler]] = {
    **dict.fromkeys(("p", "section", "article", "aside", "header", "main", "figure", "address", "center", "body",
                     "fieldset", "form", "hgroup", "menu", "html", "dir", "figcaption"), _block),
    "div": _div,
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), headings.h),
    **dict.fromkeys(("em", "i", "cite", "dfn"), inline.em),
    **dict.fromkeys(("strong", "b"), inline.strong),
    **dict.fromkeys(("code", "tt", "kbd", "samp"), inline.code),
    **dict.fromkeys(IGNORED_TAGS, _drop),
    **dict.fromkeys(("ul", "ol"), lists.ul),
    **dict.fromkeys(("td", "th"), table_cells.cell),
    "a": inline.a, "br": inline.br, "hr": inline.hr, "img": inline.img, "math": inline.math,
    "sup": inline.sup, "sub": inline.sub,
    "input": inline.checkbox, "pre": code.pre, "li": lists.li, "blockquote": lists.blockquote,
    "details": lists.details, "summary": lists.summary, "dl": definitions.dl, "dt": definitions.dt,
    "dd": definitions.dd, "table": _table, "tr": table_cells.tr, "caption": table_cells.caption,
    "label": tabs.label,
}  # fmt: skip
