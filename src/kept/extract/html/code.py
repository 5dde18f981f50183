"""Handlers of code blocks and signatures."""

from __future__ import annotations

from textwrap import dedent

from kept.extract.html.generator_rules import ElementRole, role_from_classes
from kept.extract.html.markdown_text import escape_markdown, fenced_code_block, unescape_entities
from kept.extract.html.place_marks import tidy_code_marks
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import (
    CloseHandler,
    HtmlPlace,
    WriterState,
    already_consumed,
    flush,
    skip_content,
    space,
)


def code_wrapper(state: WriterState, tag: Tag) -> CloseHandler:
    language = tag.language()
    if not language:
        return flush
    if state.code_labels:
        state.write_block(f"**{escape_markdown(state.code_labels.popleft())}**")
    outer_language, state.language = state.language, language

    def close(state: WriterState) -> None:
        state.flush()
        state.language = outer_language

    return close


def pre(state: WriterState, tag: Tag) -> CloseHandler:
    if state.heading is not None:
        return space
    state.flush()
    if state.resolve_role(tag) is ElementRole.DROP:
        return skip_content
    text, inner_language = _read_verbatim(state)
    _write_code_block(state, text, tag.language() or inner_language or state.language)
    return already_consumed


def code_block(state: WriterState, tag: Tag) -> CloseHandler:
    text, inner_language = _read_verbatim(state)
    _write_code_block(state, text, inner_language or state.language)
    return already_consumed


def signature(state: WriterState, tag: Tag) -> CloseHandler:
    text, _ = _read_verbatim(state)
    lines = [" ".join(line.split()) for line in text.strip().split("\n")]
    # Doxygen and TypeDoc break lines to fit a box; javadoc breaks them as in source code.
    on_one_line = "memproto" in tag.attributes or "tsd-" in tag.attributes
    _write_code_block(state, (" " if on_one_line else "\n").join(filter(None, lines)), state.language)
    return already_consumed


def _read_verbatim(state: WriterState) -> tuple[str, str]:
    """Return the verbatim text of the element that was just opened and its language (or ""), and move to its end."""
    pieces = [state.text_after]
    last = state.text_after  # the last piece that is no mark and not empty
    language = ""
    has_marks = False
    depth = 1
    breaks_line: list[bool] = []
    while state.next_tag():
        text, tag = state.text_after, state.tag
        if state.is_end_tag:
            depth -= 1
            if not depth:
                verbatim = unescape_entities("".join(pieces))
                return tidy_code_marks(verbatim) if has_marks else verbatim, language
            if breaks_line and breaks_line.pop():
                if last and not last.endswith("\n"):
                    pieces.append("\n")
                    last = "\n"
                text = text.removeprefix("\n")
        elif tag.name == "br":
            pieces.append("\n")
            last = "\n"
        elif not tag.is_void:
            if tag.name == "code" and not language:
                language = tag.language()
            role = role_from_classes(tag.classes) if tag.classes else None
            if role is ElementRole.DROP or role is ElementRole.PERMALINK or tag.name == "button":
                state.skip_element()
                pieces.append(state.text_after)
                last = state.text_after or last
                continue
            if tag.anchors:
                pieces += [state.add_place(HtmlPlace(anchor)) for anchor in tag.anchors]
                has_marks = True
            depth += 1
            breaks_line.append(tag.name in ("div", "tr", "p", "li"))
        pieces.append(text)
        last = text or last
    state.text_after = ""
    return unescape_entities("".join(pieces)), language


def _write_code_block(state: WriterState, text: str, language: str) -> None:
    text = text.replace("\xa0", " ").strip("\n").rstrip()
    if text:
        state.drop_soft_quote()
        state.write_block(fenced_code_block(dedent(text) if text[0] == " " else text, language))
