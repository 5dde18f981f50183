"""Code blocks and signatures: their text as it stands, and the language that the page names."""

from __future__ import annotations

from textwrap import dedent

from kept.extract.html_page import VOID, Closer, Page, attribute, done, leave_out
from kept.extract.html_rules import Role, language, role_of
from kept.extract.html_words import fenced, unescaped, written


def around_code(page: Page, attributes: str) -> Closer:
    found = language(attribute(attributes, "class") or "", attributes)
    if not found:
        return page.flush
    if page.code_labels:
        page.put(f"**{written(page.code_labels.popleft())}**")
    before, page.language = page.language, found

    def close() -> None:
        page.flush()
        page.language = before

    return close


def pre(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    classes = attribute(attributes, "class") or ""
    if attributes and page.role(attributes) is Role.DROP:
        return leave_out
    text, inner = _verbatim(page)
    _put(page, text, language(classes, attributes) or inner or page.language)
    return done


def code_block(page: Page, name: str, attributes: str) -> Closer:
    text, inner = _verbatim(page)
    _put(page, text, inner or page.language)
    return done


def signature(page: Page, name: str, attributes: str) -> Closer:
    text, _ = _verbatim(page)
    lines = [" ".join(line.split()) for line in text.strip().split("\n")]
    # Boxes of Doxygen and TypeDoc are cut for their looks; javadoc breaks lines as people do.
    on_one_line = "memproto" in attributes or "tsd-" in attributes
    _put(page, (" " if on_one_line else "\n").join(filter(None, lines)), page.language)
    return done


def _verbatim(page: Page) -> tuple[str, str]:
    """The text up to the end of the element that was just opened, as it stands, and the language it names."""
    said = [page.behind]
    found = ""
    depth, page.behind = 1, ""
    closes: list[bool] = []
    for tag, attributes, text in page.following:
        if tag[:1] == "/":
            depth -= 1
            if not depth:
                page.behind = text
                break
            if closes and closes.pop() and not said[-1].endswith("\n"):
                said.append("\n")
                text = text.removeprefix("\n")
        elif tag == "br":
            said.append("\n")
        elif tag and tag not in VOID:
            role = None
            if 'class="' in attributes:
                classes = attribute(attributes, "class") or ""
                role = role_of(classes)
                if tag == "code" and not found:
                    found = language(classes, attributes)
            elif tag == "code" and not found and attributes:
                found = language("", attributes)
            if role is Role.DROP or role is Role.PERMALINK or tag == "button":
                said.append(page.skip())
                continue
            depth += 1
            closes.append(tag in ("div", "tr", "p", "li"))
        said.append(text)
    return unescaped("".join(said)), found


def _put(page: Page, text: str, name: str) -> None:
    text = text.replace("\xa0", " ").strip("\n").rstrip()
    if text:
        page.soften()
        page.put(fenced(dedent(text) if text[0] == " " else text, name))
