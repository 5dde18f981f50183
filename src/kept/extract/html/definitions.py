"""Definition lists: terms and what they mean.

A name that can be linked to (the signature of a function, a term with an id) is a heading too: it is what people search
for. Words that follow its description belong to the section around it again.
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


def dl(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    role = page.resolve_role(tag)
    if role is ElementRole.DROP:
        return skip_content
    quote = role is ElementRole.ADMONITION
    around = page.definitions[-1] if page.definitions else None
    made = DefinitionList(
        classes=tag.classes,
        is_nested=around is not None and not quote and (around.is_nested or not around.has_heading_terms),
        owner_section=page.current_section,
        depth=around.depth + 1 if around is not None else 1,
    )
    page.definitions.append(made)
    frame = ContainerBlock("> ", "> ") if quote else None
    if frame is not None:
        page.containers.append(frame)

    def close(page: WriterState) -> None:
        page.flush()
        _close_term_item(page, made)
        if frame is not None:
            page.close_container(frame)
        if page.definitions and page.definitions[-1] is made:
            page.definitions.pop()
        if made.has_heading_terms:
            page.current_section, page.is_resuming_section = made.owner_section, True

    return close


def dt(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    around = page.definitions[-1] if page.definitions else None
    if around is None:
        return page.open_bold_line()
    _close_term_item(page, around)
    is_signature = "sig" in tag.attributes
    # A signature ends lists as a heading does. Other terms may be headings only where they do not break one up.
    free = not page.is_in_quote() if is_signature else not page.containers and not around.is_nested
    if tag.id and free and not page.tables:
        around.has_heading_terms, around.has_description = True, False
        code = is_signature or around.classes.split(" ")[0] in _API_OBJECT_CLASSES
        return open_heading(page, min(page.definitions[0].owner_section.level + around.depth, 6), tag, code=code)
    if around.is_nested and len(page.containers) < MAX_NESTING:
        around.open_item = ContainerBlock("- ", "  ", ListBlock(ordered=False, next_number=1, parent_container=None))
        page.containers.append(around.open_item)
    if around.has_heading_terms and around.has_description:  # else it is another form of the term before
        page.current_section, page.is_resuming_section = around.owner_section, True
    if is_signature:
        page.code_depth += 1
        return _close_term_code
    return _close_term_line


def _close_term_line(page: WriterState) -> None:
    write_bold_line(page, ", ")


def _close_term_code(page: WriterState) -> None:
    page.code_depth -= 1
    text = collapse_whitespace("".join(page.paragraph))
    page.paragraph[:] = [code_span(text)] if text else []
    page.flush("**")


def _close_term_item(page: WriterState, around: DefinitionList) -> None:
    if around.open_item is not None:
        page.close_container(around.open_item)
        around.open_item = None


def dd(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    if page.definitions:
        page.definitions[-1].has_description = True
    return flush
