"""Headings: each one begins a section, under the anchor that the page gives it.

A heading ends whatever lists and tables are open around it: they were there to arrange the page.
"""

from __future__ import annotations

from kept.extract.html_cells import dissolve
from kept.extract.html_page import Closer, Heading, Page, Part, leave_out, one_line
from kept.extract.html_rules import Role
from kept.extract.html_tags import Tag
from kept.extract.html_words import code_span
from kept.extract.sections import LONGEST_HEADING


def open_heading(page: Page, level: int, tag: Tag, *, code: bool = False) -> Closer:
    if page.heading is not None:  # a heading in a heading: one of them will do
        return None
    heading = page.heading = Heading(level, tag.id or page.id, code=code)
    if code:
        page.code += 1

    def close(page: Page) -> None:
        page.heading = None
        if code:
            page.code -= 1
        _write(page, heading)

    return close


def h(page: Page, tag: Tag) -> Closer:
    page.flush()
    if page.role(tag, by_id=False) is Role.DROP:
        return leave_out
    if page.is_quoted():
        return page.line()
    return open_heading(page, int(tag.name[1]), tag)


def _write(page: Page, heading: Heading) -> None:
    words, text = one_line(heading.words), one_line(page.words)
    page.words.clear()
    page.spans.clear()
    if not words:
        words, text = heading.linked
    if not words:
        return
    text = code_span(words) if heading.code else text
    _arrange(page)
    page.resumes = False
    anchor = heading.permalink or heading.anchor or heading.inside
    part = Part(words[:LONGEST_HEADING], heading.level, anchor, len(page.out))
    page.parts.append(part)
    page.section = part
    page.put("#" * heading.level + " " + text)


def _arrange(page: Page) -> None:
    """The lists and tables around this place turn out to be there for the page's looks: they end here."""
    if page.tables:
        dissolve(page)
    for around in page.lists:
        around.arranges = True
    page.frames.clear()
