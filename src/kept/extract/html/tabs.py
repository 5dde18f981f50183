"""Handlers of tabs. Every panel is written, under its label."""

from __future__ import annotations

from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.markdown_text import escape_markdown, unescape_entities
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import CloseHandler, WriterState, already_consumed, flush, skip_content


def tab_labels(state: WriterState, tag: Tag) -> CloseHandler:
    """Read the labels, one for each panel that follows."""
    labels = state.code_labels if state.in_code_group else state.panel_labels
    labels.clear()
    pieces = [state.text_after]
    open_tags = [tag.name]
    while state.next_tag():
        if state.is_end_tag:
            if open_tags.pop() in ("label", "li", "button", "a") and (label := " ".join("".join(pieces).split())):
                labels.append(unescape_entities(label))
                pieces.clear()
            if not open_tags:
                return already_consumed
        elif not state.tag.is_void:
            open_tags.append(state.tag.name)
        pieces.append(state.text_after)
    state.text_after = ""
    return already_consumed


def code_group(state: WriterState, tag: Tag) -> CloseHandler:
    state.in_code_group = True

    def close(state: WriterState) -> None:
        state.flush()
        state.in_code_group = False
        state.code_labels.clear()

    return close


def tab_panel(state: WriterState, tag: Tag) -> CloseHandler:
    if state.panel_labels:
        state.write_block(f"**{escape_markdown(state.panel_labels.popleft())}**")
    return flush


def label(state: WriterState, tag: Tag) -> CloseHandler:
    role = state.resolve_role(tag)
    if role is ElementRole.TITLE:
        return state.open_bold_line()
    return skip_content if role is ElementRole.DROP else None
