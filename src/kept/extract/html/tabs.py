"""Tabs: every panel is written, under its label."""

from __future__ import annotations

from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.markdown_text import escape_markdown, unescape_entities
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import CloseHandler, WriterState, already_consumed, flush, skip_content


def tab_labels(page: WriterState, tag: Tag) -> CloseHandler:
    """Remembers the labels, one for each panel that follows."""
    labels = page.code_labels if page.in_code_group else page.panel_labels
    labels.clear()
    said = [page.text_after]
    around = [tag.name]
    while page.next_tag():
        if page.is_end_tag:
            if around.pop() in ("label", "li", "button", "a") and (label := " ".join("".join(said).split())):
                labels.append(unescape_entities(label))
                said.clear()
            if not around:
                return already_consumed
        elif not page.tag.is_void:
            around.append(page.tag.name)
        said.append(page.text_after)
    page.text_after = ""
    return already_consumed


def code_group(page: WriterState, tag: Tag) -> CloseHandler:
    page.in_code_group = True

    def close(page: WriterState) -> None:
        page.flush()
        page.in_code_group = False
        page.code_labels.clear()

    return close


def tab_panel(page: WriterState, tag: Tag) -> CloseHandler:
    if page.panel_labels:
        page.write_block(f"**{escape_markdown(page.panel_labels.popleft())}**")
    return flush


def label(page: WriterState, tag: Tag) -> CloseHandler:
    role = page.resolve_role(tag)
    if role is ElementRole.TITLE:
        return page.open_bold_line()
    return skip_content if role is ElementRole.DROP else None
