"""Definition lists: terms and what they mean.

A name that can be linked to (the signature of a function, a term with an id) is a heading too: it is what people search
for. Words that follow its description belong to the section around it again.
"""

from __future__ import annotations

from kept.extract.html_headings import open_heading
from kept.extract.html_page import DEEPEST, Closer, Definitions, Frame, List, Page, attribute, leave_out
from kept.extract.html_rules import Role
from kept.extract.html_words import code_span

_DESCRIBED = frozenset({
    "py", "c", "cpp", "js", "std", "rst", "class", "function", "method", "attribute", "data", "exception",
    "module", "describe", "option", "cmdoption", "envvar",
})  # fmt: skip


def dl(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    classes = attribute(attributes, "class") or ""
    role = page.role(attributes) if attributes else None
    if role is Role.DROP:
        return leave_out
    quote = role is Role.QUOTE
    around = page.definitions[-1] if page.definitions else None
    made = Definitions(
        kind=classes,
        nested=around is not None and not quote and (around.nested or not around.named),
        owner=page.section,
        depth=around.depth + 1 if around is not None else 1,
    )
    page.definitions.append(made)
    frame = Frame("> ", "> ")
    if quote:
        page.frames.append(frame)

    def close() -> None:
        page.flush()
        _end_term(page, made)
        if quote:
            page.unframe(frame)
        if page.definitions and page.definitions[-1] is made:
            page.definitions.pop()
        if made.named:
            page.section, page.resumes = made.owner, True

    return close


def dt(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    around = page.definitions[-1] if page.definitions else None
    if around is None:
        return page.line()
    _end_term(page, around)
    anchor = attribute(attributes, "id")
    # A signature ends lists as a heading does. Other terms may be headings only where they do not break one up.
    free = not page.is_quoted() if "sig" in attributes else not page.frames and not around.nested
    if anchor and free and not page.tables:
        around.named, around.told = True, False
        code = "sig" in attributes or around.kind.split(" ")[0] in _DESCRIBED
        return open_heading(page, min(page.definitions[0].owner.level + around.depth, 6), attributes, code=code)
    if around.nested and len(page.frames) < DEEPEST:
        around.item = Frame("- ", "  ", List(False, 1, None))
        page.frames.append(around.item)
    if around.named and around.told:  # else it is another form of the term before
        page.section, page.resumes = around.owner, True
    if "sig" in attributes:
        return _whole_code(page)
    return page.line(", ")


def _whole_code(page: Page) -> Closer:
    page.code += 1

    def close() -> None:
        page.code -= 1
        text = " ".join("".join(page.words).split())
        page.words[:] = [code_span(text)] if text else []
        page.flush("**")

    return close


def _end_term(page: Page, around: Definitions) -> None:
    if around.item is not None:
        page.unframe(around.item)
        around.item = None


def dd(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    if page.definitions:
        page.definitions[-1].told = True
    return page.flush
