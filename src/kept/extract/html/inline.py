"""Handlers of inline elements: emphasis, links, code, images, formulas."""

from __future__ import annotations

import re
from typing import Final

from kept.extract.html.generator_rules import ROUTE_PREFIXES, ElementRole, role_from_classes
from kept.extract.html.markdown_text import (
    code_span,
    collapse_whitespace,
    escape_link_target,
    escape_markdown,
    unescape_entities,
)
from kept.extract.html.place_marks import MARK_START, split_leading_marks
from kept.extract.html.tags import HREF_ATTRIBUTE, NAME_ATTRIBUTE, Tag, attribute_value
from kept.extract.html.writer_state import (
    LINE_BREAK_MARK,
    CloseHandler,
    WriterState,
    already_consumed,
    join_on_one_line,
    skip_content,
)

_PERMALINK_TEXTS: Final = frozenset(
    {"", "¶", "#", "§", "🔗", "link", "Link", "Anchor", "anchor", "permalink", "Permalink"}
)
_TEX_DELIMITERS: Final = re.compile(r"^\\[(\[](.*)\\[)\]]$", re.DOTALL)
_UNSAFE_SCHEMES: Final = ("javascript:", "data:")
_ATTRIBUTE: Final = re.compile(r' ([a-zA-Z:-]+)="([^"]*)"')


def inline_element(state: WriterState, tag: Tag) -> CloseHandler:
    """Open an element that is no block and has no handler of its own: mostly a <span>."""
    role = state.resolve_role(tag)
    if role is None:
        return None
    if role is ElementRole.DROP or role is ElementRole.PERMALINK:
        return skip_content
    if role is ElementRole.MATH:
        return open_math(state, "$")
    if role is ElementRole.SEPARATOR and state.heading is not None:
        return _separate(state)
    if role is ElementRole.TITLE and "filename" in tag.attributes:
        return state.open_bold_line()
    return None


def _separate(state: WriterState) -> CloseHandler:
    start = len(state.paragraph)

    def close(state: WriterState) -> None:
        state.add_text(" " if len(state.paragraph) > start else ".")

    return close


def open_math(state: WriterState, mark: str) -> CloseHandler:
    """Open a formula in TeX, which is written between dollars and not escaped."""
    state.code_depth += 1
    start = len(state.paragraph)

    def close(state: WriterState) -> None:
        state.code_depth -= 1
        text = "".join(state.paragraph[start:]).strip()
        match = _TEX_DELIMITERS.match(text)
        state.paragraph[start:] = [f"{mark}{match[1].strip()}{mark}" if match else text]
        if mark == "$$":
            state.flush()

    return close


# ── Emphasis and links ────────────────────────────────────────────────────────────────────────────────────────────────


def _open_span(state: WriterState, kind: str, close: CloseHandler, target: str = "") -> CloseHandler:
    if state.code_depth:
        return None
    for span in state.spans:
        if span[0] == kind:
            return None
    state.spans.append((kind, len(state.paragraph), target))
    return close


def _close_span(state: WriterState, kind: str) -> None:
    """Put marks around the text since the span began, but not around leading and trailing whitespace."""
    while state.spans:
        open_kind, start, target = state.spans.pop()
        if open_kind == kind:
            break
    else:
        return  # a block was opened inside the span, and its paragraph is already written
    text = "".join(state.paragraph[start:])
    words = text.strip()
    if not words:
        state.paragraph[start:] = [" "] if text else []
        return
    if words.startswith(MARK_START):  # the marks go before the emphasis or link, or are all there is
        marks, words = split_leading_marks(words)
        words = words.lstrip()
        if not words:
            state.paragraph[start:] = [marks]
            return
        state.paragraph.insert(start, marks)
        start += 1
    space_before = " " if text[0].isspace() else ""
    space_after = " " if text[-1].isspace() else ""
    state.paragraph[start:] = [space_before, _format_span(state, kind, words, target), space_after]


def _format_span(state: WriterState, kind: str, words: str, target: str) -> str:
    if kind == "a":
        if state.heading is not None:
            if target.startswith("#") and words in _PERMALINK_TEXTS:
                state.heading.permalink = target[1:]
                del state.heading.words[-1:]
                return ""
            return words
        return f"[{' '.join(words.replace(LINE_BREAK_MARK, ' ').split())}]({escape_link_target(target)})"
    if kind in ("^", "_"):
        return words if words[0] in "[(" else f"{kind}{words}"
    return f"{kind}{words.strip(LINE_BREAK_MARK)}{kind}"


def _close_em(state: WriterState) -> None:
    _close_span(state, "*")


def _close_strong(state: WriterState) -> None:
    _close_span(state, "**")


def _close_sup(state: WriterState) -> None:
    _close_span(state, "^")


def _close_sub(state: WriterState) -> None:
    _close_span(state, "_")


def _close_a(state: WriterState) -> None:
    _close_span(state, "a")


def em(state: WriterState, tag: Tag) -> CloseHandler:
    if tag.attributes and inline_element(state, tag) is skip_content:
        return skip_content
    return _open_span(state, "*", _close_em)


def strong(state: WriterState, tag: Tag) -> CloseHandler:
    return _open_span(state, "**", _close_strong) if state.heading is None else None


def sup(state: WriterState, tag: Tag) -> CloseHandler:
    return _open_span(state, "^", _close_sup)


def sub(state: WriterState, tag: Tag) -> CloseHandler:
    return _open_span(state, "_", _close_sub)


def a(state: WriterState, tag: Tag) -> CloseHandler:
    if not tag.attributes:
        return None
    href = attribute_value(tag.attributes, HREF_ATTRIBUTE)
    role = state.resolve_role(tag)
    if role is ElementRole.PERMALINK and href and "#" in href:
        return _permalink(state, href)
    if role is ElementRole.DROP or 'class="src' in tag.attributes:  # rustdoc's links to its source
        return skip_content
    if NAME_ATTRIBUTE in tag.attributes:
        state.note_anchor(attribute_value(tag.attributes, NAME_ATTRIBUTE))
    if not href or state.code_depth or href.startswith(_UNSAFE_SCHEMES):
        return None
    text = state.text_after
    if (
        state.spans
        or state.heading is not None
        or not state.holds_only_text()
        or "&" in text
        or not (words := text.strip())
    ):
        return _open_span(state, "a", _close_a, href)
    space_before = " " if text[0].isspace() else ""
    space_after = " " if text[-1].isspace() else ""
    state.paragraph.append(
        f"{space_before}[{collapse_whitespace(escape_markdown(words), state.has_plain_whitespace)}]"
        f"({escape_link_target(href)}){space_after}"
    )
    state.next_tag()
    return already_consumed


def _permalink(state: WriterState, href: str) -> CloseHandler:
    """Open a permalink, whose text is dropped unless it is all the text of its heading, as in VuePress and docsify."""
    heading = state.heading
    if heading is None:
        return skip_content
    if href.startswith("#") and not href.startswith(ROUTE_PREFIXES):
        heading.permalink = href[1:]
    paragraph_start, words_start = len(state.paragraph), len(heading.words)

    def close(state: WriterState) -> None:
        words, text = join_on_one_line(heading.words[words_start:]), join_on_one_line(state.paragraph[paragraph_start:])
        if words not in _PERMALINK_TEXTS:
            heading.permalink_text = words, text
        del state.paragraph[paragraph_start:], heading.words[words_start:]

    return close


# ── Code ──────────────────────────────────────────────────────────────────────────────────────────────────────────────


def code(state: WriterState, tag: Tag) -> CloseHandler:
    state.resolve_role(tag)
    if state.code_depth:
        return None
    if state.heading is None and state.holds_only_text() and "\u200b" not in state.text_after:
        _write_code_span(state, unescape_entities(state.text_after))
        state.next_tag()
        return already_consumed
    state.code_depth += 1
    start = len(state.paragraph)

    def close(state: WriterState) -> None:
        state.code_depth -= 1
        text = "".join(state.paragraph[start:]).replace(LINE_BREAK_MARK, " ")
        del state.paragraph[start:]
        _write_code_span(state, text)

    return close


def _write_code_span(state: WriterState, text: str) -> None:
    words = collapse_whitespace(text, state.has_plain_whitespace)
    if not words:
        if text:
            state.paragraph.append(" ")
        return
    previous = state.paragraph[-1] if state.paragraph else ""
    if previous.startswith(MARK_START) and len(state.paragraph) > 1 and state.paragraph[-2].endswith("`"):
        text, words = previous + text, previous + words  # a place between adjacent code spans
        state.paragraph.pop()
        previous = state.paragraph[-1]
    if previous.endswith("`") and not previous.endswith("``") and "`" not in words:  # join adjacent code spans
        state.paragraph[-1] = f"{previous[:-1]}{words}`"
        return
    space_before = " " if text[0].isspace() else ""
    space_after = " " if text[-1].isspace() else ""
    state.paragraph.append(f"{space_before}{code_span(words)}{space_after}")


# ── Breaks, images, checkboxes, formulas ──────────────────────────────────────────────────────────────────────────────


def br(state: WriterState, tag: Tag) -> CloseHandler:
    if state.paragraph:
        state.paragraph.append(" " if state.code_depth else LINE_BREAK_MARK)
        if state.heading is not None:
            state.heading.words.append(" ")
    return None


def hr(state: WriterState, tag: Tag) -> CloseHandler:
    state.flush()
    return None


def img(state: WriterState, tag: Tag) -> CloseHandler:
    attributes = dict(_ATTRIBUTE.findall(tag.attributes))
    alt = " ".join(unescape_entities(attributes.get("alt", "")).split())
    source = unescape_entities(attributes.get("src", ""))
    if (
        state.heading is not None
        or state.code_depth
        or role_from_classes(attributes.get("class", "")) is ElementRole.DROP
    ):
        return None
    if source.startswith("data:"):  # keep only the type of an embedded image
        source = source.partition(",")[0].partition(";")[0]
    if alt or (source and not source.startswith("data:") and not state.spans):
        state.paragraph.append(f"![{escape_markdown(alt)}]({escape_link_target(source)})")
    return None


def checkbox(state: WriterState, tag: Tag) -> CloseHandler:
    if (
        'type="checkbox"' in tag.attributes
        and state.containers
        and state.containers[-1].list
        and not state.containers[-1].is_started
    ):
        state.paragraph.append("[x] " if ' checked=""' in tag.attributes else "[ ] ")
    return None


def math(state: WriterState, tag: Tag) -> CloseHandler:
    """Write MathML as its TeX source if the page has that, else as its text, and move to its end."""
    pieces, annotation, in_annotation = [state.text_after], [""], False
    depth = 1
    while depth and state.next_tag():
        if state.is_end_tag:
            depth -= 1
            in_annotation = False
        elif not state.tag.is_void:
            depth += 1
            in_annotation = state.tag.name == "annotation"
        if depth:
            (annotation if in_annotation else pieces).append(state.text_after)
    if depth:
        state.text_after = ""
    source = (
        attribute_value(tag.attributes, ' alttext="')
        or unescape_entities("".join(annotation))
        or unescape_entities(" ".join(pieces))
    )
    mark = "$$" if 'display="block"' in tag.attributes else "$"
    if text := " ".join(source.split()):
        state.paragraph.append(f"{mark}{text}{mark}")
        if state.heading is not None:
            state.heading.words.append(text)
    return already_consumed
