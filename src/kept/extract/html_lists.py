"""Lists, quotations, and what opens and folds."""

from __future__ import annotations

from kept.extract import html_code, html_tabs
from kept.extract.html_page import Closer, Frame, List, Page, flush, leave_out
from kept.extract.html_rules import Role
from kept.extract.html_tags import Tag, attribute


def ul(page: Page, tag: Tag) -> Closer:
    page.flush()
    role = page.role(tag)
    if role is Role.DROP:
        return leave_out
    if role is Role.TABS:
        return html_tabs.labels(page, tag)
    page.soften()
    number = attribute(tag.attributes, ' start="') or "1"
    made = List(
        ordered=tag.name == "ol",
        number=int(number) if number.isdecimal() and len(number) < 10 else 1,
        around=page.frames[-1] if page.frames else None,
        arranges=role is Role.LAYOUT,
    )
    page.lists.append(made)

    def close(page: Page) -> None:
        page.flush()
        if page.lists and page.lists[-1] is made:
            page.lists.pop()

    return close


def li(page: Page, tag: Tag) -> Closer:
    page.flush()
    role = page.role(tag)
    if role is Role.DROP:
        return leave_out
    if role is Role.SIGNATURE:
        return html_code.signature(page, tag)
    around = page.lists[-1] if page.lists else None
    if around is None or around.arranges:
        return flush
    mark = f"{around.number}. " if around.ordered else "- "
    around.number += 1
    frame = Frame(mark, " " * len(mark), around)
    return page.framed(frame)


def quote(page: Page, tag: Tag) -> Closer:
    return page.framed(Frame("> ", "> "))


def blockquote(page: Page, tag: Tag) -> Closer:
    page.flush()
    if page.role(tag) is Role.DROP:
        return leave_out
    return page.framed(Frame("> ", "> ", soft=True))


def details(page: Page, tag: Tag) -> Closer:
    page.flush()
    role = page.role(tag)
    if role is Role.DROP:
        return leave_out
    return quote(page, tag) if role is Role.QUOTE else flush


def summary(page: Page, tag: Tag) -> Closer:
    if page.role(tag) is Role.DROP:
        return leave_out
    return page.line()
