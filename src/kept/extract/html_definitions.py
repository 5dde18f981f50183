"""Definition lists: terms and what they mean.

A name that can be linked to (the signature of a function, a term with an id) is a heading too: it is what people search
for. Words that follow its description belong to the section around it again.
"""

from __future__ import annotations

from typing import Final

from kept.extract.html_headings import open_heading
from kept.extract.html_page import DEEPEST, Closer, Definitions, Frame, List, Page, end_line, flush, leave_out
from kept.extract.html_rules import Role
from kept.extract.html_tags import Tag
from kept.extract.html_words import code_span, one_spaced

_DESCRIBED: Final = frozenset({
    "py", "c", "cpp", "js", "std", "rst", "class", "function", "method", "attribute", "data", "exception",
    "module", "describe", "option", "cmdoption", "envvar",
})  # fmt: skip


def dl(page: Page, tag: Tag) -> Closer:
    page.flush()
    role = page.role(tag)
    if role is Role.DROP:
        return leave_out
    quote = role is Role.QUOTE
    around = page.definitions[-1] if page.definitions else None
    made = Definitions(
        kind=tag.classes,
        nested=around is not None and not quote and (around.nested or not around.named),
        owner=page.section,
        depth=around.depth + 1 if around is not None else 1,
    )
    page.definitions.append(made)
    frame = Frame("> ", "> ") if quote else None
    if frame is not None:
        page.frames.append(frame)

    def close(page: Page) -> None:
        page.flush()
        _end_term(page, made)
        if frame is not None:
            page.unframe(frame)
        if page.definitions and page.definitions[-1] is made:
            page.definitions.pop()
        if made.named:
            page.section, page.resumes = made.owner, True

    return close


def dt(page: Page, tag: Tag) -> Closer:
    page.flush()
    around = page.definitions[-1] if page.definitions else None
    if around is None:
        return page.line()
    _end_term(page, around)
    is_signature = "sig" in tag.attributes
    # A signature ends lists as a heading does. Other terms may be headings only where they do not break one up.
    free = not page.is_quoted() if is_signature else not page.frames and not around.nested
    if tag.id and free and not page.tables:
        around.named, around.told = True, False
        code = is_signature or around.kind.split(" ")[0] in _DESCRIBED
        return open_heading(page, min(page.definitions[0].owner.level + around.depth, 6), tag, code=code)
    if around.nested and len(page.frames) < DEEPEST:
        around.item = Frame("- ", "  ", List(ordered=False, number=1, around=None))
        page.frames.append(around.item)
    if around.named and around.told:  # else it is another form of the term before
        page.section, page.resumes = around.owner, True
    if is_signature:
        page.code += 1
        return _end_code
    return _end_line


def _end_line(page: Page) -> None:
    end_line(page, ", ")


def _end_code(page: Page) -> None:
    page.code -= 1
    text = one_spaced("".join(page.words))
    page.words[:] = [code_span(text)] if text else []
    page.flush("**")


def _end_term(page: Page, around: Definitions) -> None:
    if around.item is not None:
        page.unframe(around.item)
        around.item = None


def dd(page: Page, tag: Tag) -> Closer:
    page.flush()
    if page.definitions:
        page.definitions[-1].told = True
    return flush
