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

from kept.extract import html_cells, html_code, html_definitions, html_headings, html_inline, html_lists, html_tabs
from kept.extract.html_page import Closer, Page, Part, done, flush, leave_out, space
from kept.extract.html_rules import SILENT, Role
from kept.extract.html_tags import Tag

__all__ = ["Part", "Writer"]

Opener: TypeAlias = Callable[[Page, Tag], Closer]


class Writer(Page):
    """One page being written. Made for one call of write()."""

    def write(self) -> list[Part]:
        """The parts of the page in its order. The first has no heading, and often no words."""
        waiting: list[Closer] = []
        # By names of its own: for those of a module, compiled code asks a dictionary each time.
        openers, words, paragraph, nothing, taken = _OPENERS, self.words, flush, leave_out, done
        while self.step():
            if self.ends:
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
                    close = html_inline.other(self, tag)
                else:
                    close = None
                if close is nothing:
                    if not tag.is_void:
                        self.skip()
                elif close is not taken and not tag.is_void:
                    waiting.append(close)
            text = self.behind
            if text:
                if text.isspace() and self.heading is None:
                    if words:
                        words.append(" ")
                else:
                    self.say(text)
        while waiting:
            close = waiting.pop()
            if close is not None:
                close(self)
        self.flush()
        ends = [part.start for part in self.parts[1:]] + [len(self.out)]
        for part, end in zip(self.parts, ends, strict=True):
            part.text = "".join(self.out[part.start : end]).strip("\n")
        return self.parts


# ── Blocks of no particular kind: what their classes say ─────────────────────────────────────────────────────────────


def _drop(page: Page, tag: Tag) -> Closer:
    page.space()
    return leave_out


def _block(page: Page, tag: Tag) -> Closer:
    in_link = bool(page.spans) and page.spans[-1][0] == "a" and tag.name in ("div", "p")  # a card is one link
    if in_link or page.heading is not None:
        page.space()
        return leave_out if page.role(tag) is Role.DROP else space
    page.flush()
    if not tag.attributes:
        return flush
    role = page.role(tag, by_id=tag.name != "section" and 'class="section' not in tag.attributes)
    if role is not None:
        return _ROLES[role](page, tag)
    if tag.name == "div" and 'class="' in tag.attributes:
        if page.in_group and 'class="tabs"' in tag.attributes:
            return html_tabs.labels(page, tag)
        return html_code.around_code(page, tag)
    return flush


def _plain_block(page: Page, tag: Tag) -> Closer:
    return flush


def _title_block(page: Page, tag: Tag) -> Closer:
    return page.line()


def _heading_block(page: Page, tag: Tag) -> Closer:
    return html_headings.open_heading(page, 1, tag)


def _math_block(page: Page, tag: Tag) -> Closer:
    return html_inline.open_math(page, "$$")


def _div(page: Page, tag: Tag) -> Closer:
    """Most blocks; and the cells of a grid, which javadoc makes of boxes."""
    if page.tables and page.tables[-1].grid and tag.classes:
        if tag.classes.startswith("col-") or "table-header" in tag.classes:
            return html_cells.grid_cell(page, page.tables[-1], tag)
        if tag.classes == "caption":
            return html_cells.caption(page, tag)
    return _block(page, tag)


# ── Which tag, and which role, is whose ──────────────────────────────────────────────────────────────────────────────

_ROLES: Final[dict[Role, Opener]] = {
    Role.DROP: _drop,
    Role.PERMALINK: _plain_block,
    Role.QUOTE: html_lists.quote,
    Role.TITLE: _title_block,
    Role.HEADING: _heading_block,
    Role.CODE: html_code.code_block,
    Role.SIGNATURE: html_code.signature,
    Role.GRID: html_cells.grid,
    Role.LAYOUT: _plain_block,
    Role.MATH: _math_block,
    Role.TABS: html_tabs.labels,
    Role.PANEL: html_tabs.panel,
    Role.GROUP: html_tabs.group,
    Role.MEMBER: _plain_block,
    Role.ABOUT: _plain_block,
}

_OPENERS: Final[dict[str, Opener]] = {
    **dict.fromkeys(("p", "section", "article", "aside", "header", "main", "figure", "address", "center", "body",
                     "fieldset", "form", "hgroup", "menu", "html", "dir", "figcaption"), _block),
    "div": _div,
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), html_headings.h),
    **dict.fromkeys(("em", "i", "cite", "dfn"), html_inline.em),
    **dict.fromkeys(("strong", "b"), html_inline.strong),
    **dict.fromkeys(("code", "tt", "kbd", "samp"), html_inline.code),
    **dict.fromkeys(SILENT, _drop),
    **dict.fromkeys(("ul", "ol"), html_lists.ul),
    **dict.fromkeys(("td", "th"), html_cells.cell),
    "a": html_inline.a, "br": html_inline.br, "hr": html_inline.hr, "img": html_inline.img, "math": html_inline.math,
    "sup": html_inline.sup, "sub": html_inline.sub,
    "input": html_inline.checkbox, "pre": html_code.pre, "li": html_lists.li, "blockquote": html_lists.blockquote,
    "details": html_lists.details, "summary": html_lists.summary, "dl": html_definitions.dl, "dt": html_definitions.dt,
    "dd": html_definitions.dd, "table": html_cells.table, "tr": html_cells.tr, "caption": html_cells.caption,
    "label": html_tabs.label,
}  # fmt: skip
