"""Code blocks and signatures: their text as it stands, and the language that the page names."""

from __future__ import annotations

from textwrap import dedent

from kept.extract.html.generator_rules import ElementRole, role_from_classes
from kept.extract.html.markdown_text import escape_markdown, fenced_code_block, unescape_entities
from kept.extract.html.tags import Tag
from kept.extract.html.writer_state import CloseHandler, WriterState, already_consumed, flush, skip_content


def code_wrapper(page: WriterState, tag: Tag) -> CloseHandler:
    found = tag.language()
    if not found:
        return flush
    if page.code_labels:
        page.write_block(f"**{escape_markdown(page.code_labels.popleft())}**")
    before, page.language = page.language, found

    def close(page: WriterState) -> None:
        page.flush()
        page.language = before

    return close


def pre(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    if page.resolve_role(tag) is ElementRole.DROP:
        return skip_content
    text, inner = _read_verbatim(page)
    _write_code_block(page, text, tag.language() or inner or page.language)
    return already_consumed


def code_block(page: WriterState, tag: Tag) -> CloseHandler:
    text, inner = _read_verbatim(page)
    _write_code_block(page, text, inner or page.language)
    return already_consumed


def signature(page: WriterState, tag: Tag) -> CloseHandler:
    text, _ = _read_verbatim(page)
    lines = [" ".join(line.split()) for line in text.strip().split("\n")]
    # Boxes of Doxygen and TypeDoc are cut for their looks; javadoc breaks lines as people do.
    on_one_line = "memproto" in tag.attributes or "tsd-" in tag.attributes
    _write_code_block(page, (" " if on_one_line else "\n").join(filter(None, lines)), page.language)
    return already_consumed


def _read_verbatim(page: WriterState) -> tuple[str, str]:
    """The text up to the end of the element that was just opened, as it stands, and the language it names."""
    said = [page.text_after]
    found = ""
    depth = 1
    closes: list[bool] = []
    while page.next_tag():
        text, tag = page.text_after, page.tag
        if page.is_end_tag:
            depth -= 1
            if not depth:
                return unescape_entities("".join(said)), found
            if closes and closes.pop() and not said[-1].endswith("\n"):
                said.append("\n")
                text = text.removeprefix("\n")
        elif tag.name == "br":
            said.append("\n")
        elif not tag.is_void:
            if tag.name == "code" and not found:
                found = tag.language()
            role = role_from_classes(tag.classes) if tag.classes else None
            if role is ElementRole.DROP or role is ElementRole.PERMALINK or tag.name == "button":
                page.skip_element()
                said.append(page.text_after)
                continue
            depth += 1
            closes.append(tag.name in ("div", "tr", "p", "li"))
        said.append(text)
    page.text_after = ""
    return unescape_entities("".join(said)), found


def _write_code_block(page: WriterState, text: str, name: str) -> None:
    text = text.replace("\xa0", " ").strip("\n").rstrip()
    if text:
        page.drop_soft_quote()
        page.write_block(fenced_code_block(dedent(text) if text[0] == " " else text, name))
