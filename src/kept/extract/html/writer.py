"""Writes a piece of HTML as Markdown, in one walk over its tags, and notes where its sections begin.

    Writer.write    well-formed HTML, as a parser writes it -> its parts: one before any heading, then one a heading

The walk takes one tag after the other and never looks back, so it takes time in proportion to the page, however that is
nested (html_tags). Every tag that is opened puts on a stack what is to be done when it is closed. What is written so
far, and what is open, is the Page (html_page); what a tag does to it is said by idea: html_inline, html_headings,
html_code, html_lists, html_definitions, html_cells, html_tabs. The tables at the end of this file say which is whose.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from kept.extract.html import code, definitions, headings, inline, lists, table_cells, tabs
from kept.extract.html.generator_rules import IGNORED_TAGS, ElementRole
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
    """One page being written. Made for one call of write()."""

    def write_sections(self) -> list[HtmlSection]:
        """The parts of the page in its order. The first has no heading, and often no words."""
        waiting: list[CloseHandler] = []
        # By names of its own: for those of a module, compiled code asks a dictionary each time.
        openers, words, paragraph, nothing, taken = (
            _OPEN_HANDLERS_BY_TAG,
            self.paragraph,
            flush,
            skip_content,
            already_consumed,
        )
        while self.next_tag():
            if self.is_end_tag:
                close = waiting.pop() if waiting else None
                if close is paragraph:
                    if words:
                        self.flush()
                elif close is not None:
                    close(self)
            else:
                tag = self.tag
                opener = openers.get(tag.name)
                if opener is not None:
                    close = opener(self, tag)
                elif tag.attributes and not tag.is_void:
                    close = inline.inline_element(self, tag)
                else:
                    close = None
                if close is nothing:
                    if not tag.is_void:
                        self.skip_element()
                elif close is not taken and not tag.is_void:
                    waiting.append(close)
            text = self.text_after
            if text:
                if text.isspace() and self.heading is None:
                    if words:
                        words.append(" ")
                else:
                    self.add_text(text)
        while waiting:
            close = waiting.pop()
            if close is not None:
                close(self)
        self.flush()
        ends = [part.output_start for part in self.sections[1:]] + [len(self.output)]
        for part, end in zip(self.sections, ends, strict=True):
            part.text = "".join(self.output[part.output_start : end]).strip("\n")
        return self.sections


# ── Blocks of no particular kind: what their classes say ─────────────────────────────────────────────────────────────


def _drop(page: WriterState, tag: Tag) -> CloseHandler:
    page.add_space()
    return skip_content


def _block(page: WriterState, tag: Tag) -> CloseHandler:
    in_link = bool(page.spans) and page.spans[-1][0] == "a" and tag.name in ("div", "p")  # a card is one link
    if in_link or page.heading is not None:
        page.add_space()
        return skip_content if page.resolve_role(tag) is ElementRole.DROP else space
    page.flush()
    if not tag.attributes:
        return flush
    role = page.resolve_role(tag, by_id=tag.name != "section" and 'class="section' not in tag.attributes)
    if role is not None:
        return _OPEN_HANDLERS_BY_ROLE[role](page, tag)
    if tag.name == "div" and 'class="' in tag.attributes:
        if page.in_code_group and 'class="tabs"' in tag.attributes:
            return tabs.tab_labels(page, tag)
        return code.code_wrapper(page, tag)
    return flush


def _plain_block(page: WriterState, tag: Tag) -> CloseHandler:
    return flush


def _title_block(page: WriterState, tag: Tag) -> CloseHandler:
    return page.open_bold_line()


def _heading_block(page: WriterState, tag: Tag) -> CloseHandler:
    return headings.open_heading(page, 1, tag)


def _math_block(page: WriterState, tag: Tag) -> CloseHandler:
    return inline.open_math(page, "$$")


def _div(page: WriterState, tag: Tag) -> CloseHandler:
    """Most blocks; and the cells of a grid, which javadoc makes of boxes."""
    if page.tables and page.tables[-1].is_grid and tag.classes:
        if tag.classes.startswith("col-") or "table-header" in tag.classes:
            return table_cells.grid_cell(page, page.tables[-1], tag)
        if tag.classes == "caption":
            return table_cells.caption(page, tag)
    return _block(page, tag)


# ── Which tag, and which role, is whose ──────────────────────────────────────────────────────────────────────────────

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
    "dd": definitions.dd, "table": table_cells.table, "tr": table_cells.tr, "caption": table_cells.caption,
    "label": tabs.label,
}  # fmt: skip
