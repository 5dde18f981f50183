"""Writes a piece of HTML as Markdown, in one walk over its tags, and notes where its sections begin.

    Writer.write    well-formed HTML, as a parser writes it -> its parts: one before any heading, then one a heading

The walk takes one tag after the other and never looks back, so it takes time in proportion to the page, however that is
nested. Every tag that is opened puts on a stack what is to be done when it is closed. What is written so far, and what
is open, is the Page; what a tag does to it is said by idea: html_inline, html_headings, html_code, html_lists,
html_definitions, html_cells, html_tabs. The tables at the end of this file say which tag is whose.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import TypeAlias, cast

from kept.extract import html_cells, html_code, html_definitions, html_headings, html_inline, html_lists, html_tabs
from kept.extract.html_page import VOID, Closer, Page, Part, Token, attribute, done, leave_out
from kept.extract.html_rules import SILENT, Role

__all__ = ["Part", "Writer"]

Opener: TypeAlias = Callable[[Page, str, str], Closer]

LARGE = 500_000
"""Characters. The tags of a page are found all at once, which is quicker, unless that would take much memory."""

_ATTRIBUTES = r'([^>"]*+(?:"[^"]*+"[^>"]*+)*+)'
_TOKENS = re.compile(
    rf"<(?:(code|a|span|tt|kbd|samp)\b{_ATTRIBUTES}>([^<]*+)</\1|(/?[a-zA-Z][^\s/>]*+){_ATTRIBUTES}|!--(?s:.*?)--)>([^<]*+)"
)


def _one_by_one(html: str) -> Iterator[Token]:
    for found in _TOKENS.finditer(html):
        yield cast(Token, found.groups(""))


class Writer(Page):
    """One page being written. Made for one call of write()."""

    def write(self, html: str) -> list[Part]:
        """The parts of the page in its order. The first has no heading, and often no words."""
        tokens = self.tokens = iter(_TOKENS.findall(html)) if len(html) < LARGE else _one_by_one(html)
        waiting: list[Closer] = []
        openers, whole_ones, words = _OPENERS, _WHOLE, self.words
        for whole, its, inside, name, attributes, text in tokens:
            if whole:
                whole_ones[whole](self, its, inside)
            elif name[:1] == "/":
                close = waiting.pop() if waiting else None
                if close is not None:
                    close()
            elif name:
                self.behind = text
                opener = openers.get(name)
                if opener is not None:
                    close = opener(self, name, attributes)
                elif attributes and name not in VOID:
                    close = html_inline.other(self, name, attributes)
                else:
                    close = None
                if close is leave_out:
                    text = self.skip() if name not in VOID else text
                elif close is done:
                    text = self.behind
                elif name not in VOID:
                    waiting.append(close)
            if text:
                if text.isspace() and self.heading is None:
                    if words:
                        words.append(" ")
                else:
                    self.say(text)
        while waiting:
            close = waiting.pop()
            if close is not None:
                close()
        self.flush()
        ends = [part.start for part in self.parts[1:]] + [len(self.out)]
        for part, end in zip(self.parts, ends, strict=True):
            part.text = "".join(self.out[part.start : end]).strip("\n")
        return self.parts


# ── Blocks of no particular kind: what their classes say ─────────────────────────────────────────────────────────────


def _drop(page: Page, name: str, attributes: str) -> Closer:
    page.space()
    return leave_out


def _block(page: Page, name: str, attributes: str) -> Closer:
    in_link = bool(page.spans) and page.spans[-1][0] == "a" and name in ("div", "p")  # a card is one link
    if in_link or page.heading is not None:
        page.space()
        return leave_out if attributes and page.role(attributes) is Role.DROP else page.space
    page.flush()
    if not attributes:
        return page.flush
    role = page.role(attributes, by_id=name != "section" and 'class="section' not in attributes)
    if role is None:
        if 'class="' in attributes and name == "div":
            if page.in_group and 'class="tabs"' in attributes:
                return html_tabs.labels(page, name, attributes)
            return html_code.around_code(page, attributes)
        return page.flush
    return _ROLES[role](page, name, attributes)


def _plain_block(page: Page, name: str, attributes: str) -> Closer:
    return page.flush


def _title_block(page: Page, name: str, attributes: str) -> Closer:
    return page.line()


def _heading_block(page: Page, name: str, attributes: str) -> Closer:
    return html_headings.open_heading(page, 1, attributes)


def _math_block(page: Page, name: str, attributes: str) -> Closer:
    return html_inline.open_math(page, "$$")


def _div(page: Page, name: str, attributes: str) -> Closer:
    """Most blocks; and the cells of a grid, which javadoc makes of boxes."""
    if page.tables and page.tables[-1].grid and 'class="' in attributes:
        classes = attribute(attributes, "class") or ""
        if classes.startswith("col-") or "table-header" in classes:
            return html_cells.grid_cell(page, page.tables[-1], classes, attributes)
        if classes == "caption":
            return html_cells.caption(page, name, attributes)
    return _block(page, name, attributes)


# ── Which tag, and which role, is whose ──────────────────────────────────────────────────────────────────────────────

_ROLES: dict[Role, Opener] = {
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

_WHOLE: dict[str, Callable[[Page, str, str], None]] = {
    **dict.fromkeys(("code", "tt", "kbd", "samp"), html_inline.whole_code),
    "a": html_inline.whole_a,
    "span": html_inline.whole_span,
}

_OPENERS: dict[str, Opener] = {
    **dict.fromkeys(("p", "section", "article", "aside", "header", "main", "figure", "address", "center", "body",
                     "fieldset", "form", "hgroup", "menu", "html", "dir", "figcaption"), _block),
    "div": _div,
    **dict.fromkeys(("h1", "h2", "h3", "h4", "h5", "h6"), html_headings.h),
    **dict.fromkeys(("em", "i", "cite", "dfn"), html_inline.em),
    **dict.fromkeys(("strong", "b"), html_inline.strong),
    **dict.fromkeys(("code", "tt", "kbd", "samp"), html_inline.code),
    **dict.fromkeys(("sup", "sub"), html_inline.sup),
    **dict.fromkeys(SILENT, _drop),
    **dict.fromkeys(("ul", "ol"), html_lists.ul),
    **dict.fromkeys(("td", "th"), html_cells.cell),
    "a": html_inline.a, "br": html_inline.br, "hr": html_inline.hr, "img": html_inline.img, "math": html_inline.math,
    "input": html_inline.checkbox, "pre": html_code.pre, "li": html_lists.li, "blockquote": html_lists.blockquote,
    "details": html_lists.details, "summary": html_lists.summary, "dl": html_definitions.dl, "dt": html_definitions.dt,
    "dd": html_definitions.dd, "table": html_cells.table, "tr": html_cells.tr, "caption": html_cells.caption,
    "label": html_tabs.label,
}  # fmt: skip
