"""Handlers of definition lists.

A term that can be linked to (the signature of a function, a term with an id) becomes a heading: it is what people
search for. Text after the list belongs to the enclosing section again.
"""

from __future__ import annotations

from typing import Final

from kept.extract.html.generator_rules import ElementRole
from kept.extract.html.headings import open_heading
from kept.extract.html.markdown_text import code_span, collapse_whitespace
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import (
    MAX_NESTING,
    CloseHandler,
    ContainerBlock,
    DefinitionList,
    HtmlPlace,
    ListBlock,
    WriterState,
    flush,
    skip_content,
    write_bold_line,
)

_API_OBJECT_CLASSES: Final = frozenset({
    "py", "c", "cpp", "js", "std", "rst", "class", "function", "method", "attribute", "data", "exception",
    "module", "describe", "option", "cmdoption", "envvar",
})  # fmt: skip


def dl(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    role = state.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    is_admonition = role is ElementRole.ADMONITION
    parent = state.definitions[-1] if state.definitions else None
    definition_list = DefinitionList(
        classes=tag.classes,
        is_nested=parent is not None and not is_admonition and (parent.is_nested or not parent.has_heading_terms),
        owner_section=state.current_section,
        depth=parent.depth + 1 if parent is not None else 1,
    )
    state.definitions.append(definition_list)
    quotation = ContainerBlock("> ", "> ") if is_admonition else None
    if quotation is not None:
        state.containers.append(quotation)

    def close(state: WriterState) -> None:
        state.flush()
        _close_term_item(state, definition_list)
        if quotation is not None:
            state.close_container(quotation)
        if state.definitions and state.definitions[-1] is definition_list:
            state.definitions.pop()
        if definition_list.has_plain_terms:
            state.pending_marks += state.add_place(HtmlPlace("", definition_list, is_end=True))
        if definition_list.has_heading_terms:
            state.current_section, state.is_resuming_section = definition_list.owner_section, True

    return close


def dt(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    definition_list = state.definitions[-1] if state.definitions else None
    if definition_list is None:
        return state.open_bold_line()
    _close_term_item(state, definition_list)
    is_signature = "sig" in tag.attributes
    # A signature ends lists as a heading does. Other terms may be headings only where they do not break up a list.
    can_be_heading = not state.is_in_quote() if is_signature else not state.containers and not definition_list.is_nested
    is_object = tag.role is ElementRole.OBJECT
    if (tag.id or is_object) and can_be_heading and not state.tables:
        definition_list.has_heading_terms, definition_list.has_description = True, False
        code = is_signature or is_object or definition_list.classes.split(" ")[0] in _API_OBJECT_CLASSES
        return open_heading(
            state,
            min(state.definitions[0].owner_section.level + definition_list.depth, 6),
            tag,
            code=code,
            is_term=True,
        )
    if definition_list.is_nested and len(state.containers) < MAX_NESTING:
        definition_list.open_item = ContainerBlock(
            "- ", "  ", ListBlock(ordered=False, next_number=1, parent_container=None)
        )
        state.containers.append(definition_list.open_item)
    if definition_list.has_heading_terms and definition_list.has_description:  # else another form of the same term
        state.current_section, state.is_resuming_section = definition_list.owner_section, True
    if not state.tables:
        shares_description = definition_list.has_plain_terms and not definition_list.has_description
        state.pending_marks += state.add_place(
            HtmlPlace(tag.id or "", definition_list, shares_description=shares_description)
        )
        definition_list.has_plain_terms, definition_list.has_description = True, False
    if is_signature:
        state.code_depth += 1
        return _close_term_code
    return _close_term_line


def _close_term_line(state: WriterState) -> None:
    write_bold_line(state, ", ")


def _close_term_code(state: WriterState) -> None:
    state.code_depth -= 1
    text = collapse_whitespace("".join(state.paragraph))
    state.paragraph[:] = [code_span(text)] if text else []
    state.flush("**")


def _close_term_item(state: WriterState, definition_list: DefinitionList) -> None:
    if definition_list.open_item is not None:
        state.close_container(definition_list.open_item)
        definition_list.open_item = None


def dd(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    if state.definitions:
        state.definitions[-1].has_description = True
    return flush
