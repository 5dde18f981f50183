"""Handlers of headings. Each one begins a section with the anchor that the page gives it.

A heading inside lists and tables ends them: they only arrange the page.
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
    space,
)
from kept.extract.sections import MAX_HEADING_LENGTH


def open_heading(
    state: WriterState, level: int, tag: Tag, *, code: bool = False, is_term: bool = False
) -> CloseHandler:
    if state.heading is not None:  # nested headings: only the outer one counts
        return None
    heading = state.heading = OpenHeading(level, tag.id, state.pending_id, is_code=code, is_term=is_term)
    if code:
        state.code_depth += 1

    def close(state: WriterState) -> None:
        state.heading = None
        if code:
            state.code_depth -= 1
        _write_heading(state, heading)

    return close


def open_object(state: WriterState, tag: Tag) -> CloseHandler:
    """Open the signature of a documented object: a heading below the one it stands under."""
    if state.heading is not None:
        state.add_space()
        return space
    state.flush()
    if state.tables or state.is_in_quote():
        return state.open_bold_line()
    owner = next((section for section in reversed(state.sections) if not section.is_term), state.sections[0])
    level = owner.level + (2 if "kept-inner" in tag.classes else 1)
    return open_heading(state, min(level, 6), tag, code=True, is_term=True)


def h(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    if state.resolve_role(tag, by_id=False) is ElementRole.DROP:
        return skip_content
    if state.is_in_quote() and (tag.id is None or not state.containers[-1].is_started):
        return state.open_bold_line()  # the title of a note
    return open_heading(state, int(tag.name[1]), tag)


def _write_heading(state: WriterState, heading: OpenHeading) -> None:
    words, text = join_on_one_line(heading.words), join_on_one_line(state.paragraph)
    state.paragraph.clear()
    state.spans.clear()
    if not words:
        words, text = heading.permalink_text
    if not words:
        state.pending_marks += heading.marks
        return
    text = code_span(words) if heading.is_code else text
    marks, state.pending_marks = state.pending_marks + heading.marks, ""  # not for the cells that are written now
    _close_containers(state)
    state.pending_marks = marks
    state.is_resuming_section = False
    anchor = heading.permalink or heading.anchor or heading.inner_anchor or heading.wrapper_anchor
    section = HtmlSection(words[:MAX_HEADING_LENGTH], heading.level, anchor, len(state.output))
    section.is_term = heading.is_term
    state.sections.append(section)
    state.current_section = section
    state.write_block("#" * heading.level + " " + text)


def _close_containers(state: WriterState) -> None:
    """End the lists and tables around a heading, which are there for layout only."""
    if state.tables:
        unwrap_tables(state)
    for list_ in state.lists:
        list_.is_layout = True
    state.containers.clear()
