"""Lists, quotations, and what opens and folds."""

from __future__ import annotations

from kept.extract.html import code, tabs
from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.tags import Tag, attribute_value
from kept.extract.html.writer_state import CloseHandler, ContainerBlock, ListBlock, WriterState, flush, skip_content


def ul(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    role = page.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    if role is ElementRole.TABS:
        return tabs.tab_labels(page, tag)
    page.drop_soft_quote()
    number = attribute_value(tag.attributes, ' start="') or "1"
    made = ListBlock(
        ordered=tag.name == "ol",
        next_number=int(number) if number.isdecimal() and len(number) < 10 else 1,
        parent_container=page.containers[-1] if page.containers else None,
        is_layout=role is ElementRole.LAYOUT,
    )
    page.lists.append(made)

    def close(page: WriterState) -> None:
        page.flush()
        if page.lists and page.lists[-1] is made:
            page.lists.pop()

    return close


def li(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    role = page.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    if role is ElementRole.SIGNATURE:
        return code.signature(page, tag)
    around = page.lists[-1] if page.lists else None
    if around is None or around.is_layout:
        return flush
    mark = f"{around.next_number}. " if around.ordered else "- "
    around.next_number += 1
    frame = ContainerBlock(mark, " " * len(mark), around)
    return page.open_container(frame)


def quote(page: WriterState, tag: Tag) -> CloseHandler:
    return page.open_container(ContainerBlock("> ", "> "))


def blockquote(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    if page.resolve_role(tag) is ElementRole.DROP:
        return skip_content
    return page.open_container(ContainerBlock("> ", "> ", is_soft_quote=True))


def details(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    role = page.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    return quote(page, tag) if role is ElementRole.ADMONITION else flush


def summary(page: WriterState, tag: Tag) -> CloseHandler:
    if page.resolve_role(tag) is ElementRole.DROP:
        return skip_content
    return page.open_bold_line()
