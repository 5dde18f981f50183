"""Lists, quotations, and what opens and folds."""

from __future__ import annotations

from kept.extract import html_code, html_tabs
from kept.extract.html_page import Closer, Frame, List, Page, attribute, leave_out
from kept.extract.html_rules import Role


def ul(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    role = page.role(attributes) if attributes else None
    if role is Role.DROP:
        return leave_out
    if role is Role.TABS:
        return html_tabs.labels(page, name, attributes)
    page.soften()
    number = attribute(attributes, "start") or "1"
    made = List(
        ordered=name == "ol",
        number=int(number) if number.isdecimal() and len(number) < 10 else 1,
        around=page.frames[-1] if page.frames else None,
        arranges=role is Role.LAYOUT,
    )
    page.lists.append(made)

    def close() -> None:
        page.flush()
        if page.lists and page.lists[-1] is made:
            page.lists.pop()

    return close


def li(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    if attributes:
        role = page.role(attributes)
        if role is Role.DROP:
            return leave_out
        if role is Role.SIGNATURE:
            return html_code.signature(page, name, attributes)
    around = page.lists[-1] if page.lists else None
    if around is None or around.arranges:
        return page.flush
    mark = f"{around.number}. " if around.ordered else "- "
    around.number += 1
    frame = Frame(mark, " " * len(mark), around)
    return page.framed(frame)


def quote(page: Page, name: str, attributes: str) -> Closer:
    return page.framed(Frame("> ", "> "))


def blockquote(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    if attributes and page.role(attributes) is Role.DROP:
        return leave_out
    return page.framed(Frame("> ", "> ", soft=True))


def details(page: Page, name: str, attributes: str) -> Closer:
    page.flush()
    role = page.role(attributes) if attributes else None
    if role is Role.DROP:
        return leave_out
    return quote(page, name, attributes) if role is Role.QUOTE else page.flush


def summary(page: Page, name: str, attributes: str) -> Closer:
    if attributes and page.role(attributes) is Role.DROP:
        return leave_out
    return page.line()
