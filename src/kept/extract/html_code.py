"""Code blocks and signatures: their text as it stands, and the language that the page names."""

from __future__ import annotations

from textwrap import dedent

from kept.extract.html_page import Closer, Page, done, flush, leave_out
from kept.extract.html_rules import Role, role_of
from kept.extract.html_tags import Tag
from kept.extract.html_words import fenced, unescaped, written


def around_code(page: Page, tag: Tag) -> Closer:
    found = tag.language()
    if not found:
        return flush
    if page.code_labels:
        page.put(f"**{written(page.code_labels.popleft())}**")
    before, page.language = page.language, found

    def close(page: Page) -> None:
        page.flush()
        page.language = before

    return close


def pre(page: Page, tag: Tag) -> Closer:
    page.flush()
    if page.role(tag) is Role.DROP:
        return leave_out
    text, inner = _verbatim(page)
    _put(page, text, tag.language() or inner or page.language)
    return done


def code_block(page: Page, tag: Tag) -> Closer:
    text, inner = _verbatim(page)
    _put(page, text, inner or page.language)
    return done


def signature(page: Page, tag: Tag) -> Closer:
    text, _ = _verbatim(page)
    lines = [" ".join(line.split()) for line in text.strip().split("\n")]
    # Boxes of Doxygen and TypeDoc are cut for their looks; javadoc breaks lines as people do.
    on_one_line = "memproto" in tag.attributes or "tsd-" in tag.attributes
    _put(page, (" " if on_one_line else "\n").join(filter(None, lines)), page.language)
    return done


def _verbatim(page: Page) -> tuple[str, str]:
    """The text up to the end of the element that was just opened, as it stands, and the language it names."""
    said = [page.behind]
    found = ""
    depth = 1
    closes: list[bool] = []
    while page.step():
        text, tag = page.behind, page.tag
        if page.ends:
            depth -= 1
            if not depth:
                return unescaped("".join(said)), found
            if closes and closes.pop() and not said[-1].endswith("\n"):
                said.append("\n")
                text = text.removeprefix("\n")
        elif tag.name == "br":
            said.append("\n")
        elif not tag.is_void:
            if tag.name == "code" and not found:
                found = tag.language()
            role = role_of(tag.classes) if tag.classes else None
            if role is Role.DROP or role is Role.PERMALINK or tag.name == "button":
                page.skip()
                said.append(page.behind)
                continue
            depth += 1
            closes.append(tag.name in ("div", "tr", "p", "li"))
        said.append(text)
    page.behind = ""
    return unescaped("".join(said)), found


def _put(page: Page, text: str, name: str) -> None:
    text = text.replace("\xa0", " ").strip("\n").rstrip()
    if text:
        page.soften()
        page.put(fenced(dedent(text) if text[0] == " " else text, name))
