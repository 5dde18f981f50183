"""What stands inside a paragraph: emphasis, links, code, pictures, formulas."""

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


def inline_element(page: WriterState, tag: Tag) -> CloseHandler:
    """Any element that is no block: a <span>, mostly."""
    role = page.resolve_role(tag)
    if role is None:
        return None
    if role is ElementRole.DROP or role is ElementRole.PERMALINK:
        return skip_content
    if role is ElementRole.MATH:
        return open_math(page, "$")
    if role is ElementRole.TITLE and "filename" in tag.attributes:
        return page.open_bold_line()
    return None


def open_math(page: WriterState, mark: str) -> CloseHandler:
    """Formulas as TeX has them, between dollars; nothing in them is escaped."""
    page.code_depth += 1
    start = len(page.paragraph)

    def close(page: WriterState) -> None:
        page.code_depth -= 1
        text = "".join(page.paragraph[start:]).strip()
        match = _TEX_DELIMITERS.match(text)
        page.paragraph[start:] = [f"{mark}{match[1].strip()}{mark}" if match else text]
        if mark == "$$":
            page.flush()

    return close


# ── Emphasis and links: marks around words ───────────────────────────────────────────────────────────────────────────


def _open_span(page: WriterState, kind: str, close: CloseHandler, target: str = "") -> CloseHandler:
    if page.code_depth:
        return None
    for span in page.spans:
        if span[0] == kind:
            return None
    page.spans.append((kind, len(page.paragraph), target))
    return close


def _close_span(page: WriterState, kind: str) -> None:
    """Puts the marks around what was said since the span began, and none around blanks."""
    while page.spans:
        found, start, target = page.spans.pop()
        if found == kind:
            break
    else:
        return  # a block came between: the paragraph it began in is written already
    text = "".join(page.paragraph[start:])
    core = text.strip()
    if not core:
        page.paragraph[start:] = [" "] if text else []
        return
    before = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.paragraph[start:] = [before, _format_span(page, kind, core, target), behind]


def _format_span(page: WriterState, kind: str, core: str, target: str) -> str:
    if kind == "a":
        if page.heading is not None:
            if target.startswith("#") and core in _PERMALINK_TEXTS:
                page.heading.permalink = target[1:]
                del page.heading.words[-1:]
                return ""
            return core
        return f"[{' '.join(core.replace(LINE_BREAK_MARK, ' ').split())}]({escape_link_target(target)})"
    if kind in ("^", "_"):
        return core if core[0] in "[(" else f"{kind}{core}"
    return f"{kind}{core.strip(LINE_BREAK_MARK)}{kind}"


def _close_em(page: WriterState) -> None:
    _close_span(page, "*")


def _close_strong(page: WriterState) -> None:
    _close_span(page, "**")


def _close_sup(page: WriterState) -> None:
    _close_span(page, "^")


def _close_sub(page: WriterState) -> None:
    _close_span(page, "_")


def _close_a(page: WriterState) -> None:
    _close_span(page, "a")


def em(page: WriterState, tag: Tag) -> CloseHandler:
    if tag.attributes and inline_element(page, tag) is skip_content:
        return skip_content
    return _open_span(page, "*", _close_em)


def strong(page: WriterState, tag: Tag) -> CloseHandler:
    return _open_span(page, "**", _close_strong) if page.heading is None else None


def sup(page: WriterState, tag: Tag) -> CloseHandler:
    return _open_span(page, "^", _close_sup)


def sub(page: WriterState, tag: Tag) -> CloseHandler:
    return _open_span(page, "_", _close_sub)


def a(page: WriterState, tag: Tag) -> CloseHandler:
    if not tag.attributes:
        return None
    href = attribute_value(tag.attributes, HREF_ATTRIBUTE)
    role = page.resolve_role(tag)
    if role is ElementRole.PERMALINK and href and "#" in href:
        return _permalink(page, href)
    if role is ElementRole.DROP or 'class="src' in tag.attributes:  # rustdoc's links to its source
        return skip_content
    if NAME_ATTRIBUTE in tag.attributes:
        page.note_anchor(attribute_value(tag.attributes, NAME_ATTRIBUTE))
    if not href or page.code_depth or href.startswith(_UNSAFE_SCHEMES):
        return None
    text = page.text_after
    if (
        page.spans
        or page.heading is not None
        or not page.holds_only_text()
        or "&" in text
        or not (core := text.strip())
    ):
        return _open_span(page, "a", _close_a, href)
    before = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.paragraph.append(
        f"{before}[{collapse_whitespace(escape_markdown(core), page.has_plain_whitespace)}]"
        f"({escape_link_target(href)}){behind}"
    )
    page.next_tag()
    return already_consumed


def _permalink(page: WriterState, href: str) -> CloseHandler:
    """A mark that says nothing; but VuePress and docsify put all words of a heading into the link to it."""
    heading = page.heading
    if heading is None:
        return skip_content
    if href.startswith("#") and not href.startswith(ROUTE_PREFIXES):
        heading.permalink = href[1:]
    before, said = len(page.paragraph), len(heading.words)

    def close(page: WriterState) -> None:
        words, text = join_on_one_line(heading.words[said:]), join_on_one_line(page.paragraph[before:])
        if words not in _PERMALINK_TEXTS:
            heading.permalink_text = words, text
        del page.paragraph[before:], heading.words[said:]

    return close


# ── Code ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


def code(page: WriterState, tag: Tag) -> CloseHandler:
    page.resolve_role(tag)
    if page.code_depth:
        return None
    if page.heading is None and page.holds_only_text() and "\u200b" not in page.text_after:
        _write_code_span(page, unescape_entities(page.text_after))
        page.next_tag()
        return already_consumed
    page.code_depth += 1
    start = len(page.paragraph)

    def close(page: WriterState) -> None:
        page.code_depth -= 1
        text = "".join(page.paragraph[start:]).replace(LINE_BREAK_MARK, " ")
        del page.paragraph[start:]
        _write_code_span(page, text)

    return close


def _write_code_span(page: WriterState, text: str) -> None:
    core = collapse_whitespace(text, page.has_plain_whitespace)
    if not core:
        if text:
            page.paragraph.append(" ")
        return
    before = page.paragraph[-1] if page.paragraph else ""
    if before.endswith("`") and not before.endswith("``") and "`" not in core:  # two spans that touch are one
        page.paragraph[-1] = f"{before[:-1]}{core}`"
        return
    lead = " " if text[0].isspace() else ""
    behind = " " if text[-1].isspace() else ""
    page.paragraph.append(f"{lead}{code_span(core)}{behind}")


# ── The rest ─────────────────────────────────────────────────────────────────────────────────────────────────────────


def br(page: WriterState, tag: Tag) -> CloseHandler:
    if page.paragraph:
        page.paragraph.append(" " if page.code_depth else LINE_BREAK_MARK)
        if page.heading is not None:
            page.heading.words.append(" ")
    return None


def hr(page: WriterState, tag: Tag) -> CloseHandler:
    page.flush()
    return None


def img(page: WriterState, tag: Tag) -> CloseHandler:
    found = dict(_ATTRIBUTE.findall(tag.attributes))
    alt = " ".join(unescape_entities(found.get("alt", "")).split())
    source = unescape_entities(found.get("src", ""))
    if page.heading is not None or page.code_depth or role_from_classes(found.get("class", "")) is ElementRole.DROP:
        return None
    if source.startswith("data:"):  # megabytes of picture are no words
        source = source.partition(",")[0].partition(";")[0]
    if alt or (source and not source.startswith("data:") and not page.spans):
        page.paragraph.append(f"![{escape_markdown(alt)}]({escape_link_target(source)})")
    return None


def checkbox(page: WriterState, tag: Tag) -> CloseHandler:
    if (
        'type="checkbox"' in tag.attributes
        and page.containers
        and page.containers[-1].list
        and not page.containers[-1].is_started
    ):
        page.paragraph.append("[x] " if ' checked=""' in tag.attributes else "[ ] ")
    return None


def math(page: WriterState, tag: Tag) -> CloseHandler:
    """MathML: as it was written, where the page still says that; else the words in it."""
    said, annotation, inside = [page.text_after], [""], False
    depth = 1
    while depth and page.next_tag():
        if page.is_end_tag:
            depth -= 1
            inside = False
        elif not page.tag.is_void:
            depth += 1
            inside = page.tag.name == "annotation"
        if depth:
            (annotation if inside else said).append(page.text_after)
    if depth:
        page.text_after = ""
    written_as = (
        attribute_value(tag.attributes, ' alttext="')
        or unescape_entities("".join(annotation))
        or unescape_entities(" ".join(said))
    )
    mark = "$$" if 'display="block"' in tag.attributes else "$"
    if text := " ".join(written_as.split()):
        page.paragraph.append(f"{mark}{text}{mark}")
        if page.heading is not None:
            page.heading.words.append(text)
    return already_consumed
