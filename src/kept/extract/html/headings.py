"""Headings: each one begins a section, under the anchor that the page gives it.

A heading ends whatever lists and tables are open around it: they were there to arrange the page.
"""

from __future__ import annotations

from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.markdown_text import code_span
from kept.extract.html.table_cells import unwrap_tables
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import (
    CloseHandler,
    HtmlSection,
    OpenHeading,
    WriterState,
    join_on_one_line,
    skip_content,
)
from kept.extract.sections import MAX_HEADING_LENGTH


def open_heading(page: WriterState, level: int, tag: Tag, *, code: bool = False) -> CloseHandler:
    if page.heading is not None:  # a heading in a heading: one of them will do
        return None
    heading = page.heading = OpenHeading(level, tag.id or page.pending_id, is_code=code)
    if code:
        page.code_depth += 1

    def close(page: WriterState) -> None:
        page.heading = None
        if code:
            page.code_depth -= 1
        _write_heading(page, heading)

    return close


def h(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    if page.resolve_role(tag, by_id=False) is ElementRole.DROP:
        return skip_content
    if page.is_in_quote():
        return page.open_bold_line()
    return open_heading(page, int(tag.name[1]), tag)


def _write_heading(page: WriterState, heading: OpenHeading) -> None:
    words, text = join_on_one_line(heading.words), join_on_one_line(page.paragraph)
    page.paragraph.clear()
    page.spans.clear()
    if not words:
        words, text = heading.permalink_text
    if not words:
        return
    text = code_span(words) if heading.is_code else text
    _close_containers(page)
    page.is_resuming_section = False
    anchor = heading.permalink or heading.anchor or heading.inner_anchor
    part = HtmlSection(words[:MAX_HEADING_LENGTH], heading.level, anchor, len(page.output))
    page.sections.append(part)
    page.current_section = part
    page.write_block("#" * heading.level + " " + text)


def _close_containers(page: WriterState) -> None:
    """The lists and tables around this place turn out to be there for the page's looks: they end here."""
    if page.tables:
        unwrap_tables(page)
    for around in page.lists:
        around.is_layout = True
    page.containers.clear()
