"""Handlers of lists, quotations and <details>."""

from __future__ import annotations

from kept.extract.html import code, tabs
from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.tags import Tag, attribute_value
from kept.extract.html.writer_state import CloseHandler, ContainerBlock, ListBlock, WriterState, flush, skip_content


def ul(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    role = state.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    if role is ElementRole.TABS:
        return tabs.tab_labels(state, tag)
    state.drop_soft_quote()
    number = attribute_value(tag.attributes, ' start="') or "1"
    list_ = ListBlock(
        ordered=tag.name == "ol",
        next_number=int(number) if number.isdecimal() and len(number) < 10 else 1,
        parent_container=state.containers[-1] if state.containers else None,
        is_layout=role is ElementRole.LAYOUT,
    )
    state.lists.append(list_)

    def close(state: WriterState) -> None:
        state.flush()
        if state.lists and state.lists[-1] is list_:
            state.lists.pop()

    return close


def li(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    role = state.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    if role is ElementRole.SIGNATURE:
        return code.signature(state, tag)
    list_ = state.lists[-1] if state.lists else None
    if list_ is None or list_.is_layout:
        return flush
    mark = f"{list_.next_number}. " if list_.ordered else "- "
    list_.next_number += 1
    item = ContainerBlock(mark, " " * len(mark), list_)
    return state.open_container(item)


def quote(state: WriterState, tag: Tag) -> CloseHandler:
    return state.open_container(ContainerBlock("> ", "> "))


def blockquote(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    if state.resolve_role(tag) is ElementRole.DROP:
        return skip_content
    return state.open_container(ContainerBlock("> ", "> ", is_soft_quote=True))


def details(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    role = state.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    return quote(state, tag) if role is ElementRole.ADMONITION else flush


def summary(state: WriterState, tag: Tag) -> CloseHandler:
    if state.resolve_role(tag) is ElementRole.DROP:
        return skip_content
    return state.open_bold_line()
