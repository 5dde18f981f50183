"""Tabs: every panel is written, under its label."""

from __future__ import annotations

from kept.extract.html_page import Closer, Page, done, flush, leave_out
from kept.extract.html_rules import Role
from kept.extract.html_tags import Tag
from kept.extract.html_words import unescaped, written


def labels(page: Page, tag: Tag) -> Closer:
    """Remembers the labels, one for each panel that follows."""
    labels = page.code_labels if page.in_group else page.labels
    labels.clear()
    said = [page.behind]
    around = [tag.name]
    while page.step():
        if page.ends:
            if around.pop() in ("label", "li", "button", "a") and (label := " ".join("".join(said).split())):
                labels.append(unescaped(label))
                said.clear()
            if not around:
                return done
        elif not page.tag.is_void:
            around.append(page.tag.name)
        said.append(page.behind)
    page.behind = ""
    return done


def group(page: Page, tag: Tag) -> Closer:
    page.in_group = True

    def close(page: Page) -> None:
        page.flush()
        page.in_group = False
        page.code_labels.clear()

    return close


def panel(page: Page, tag: Tag) -> Closer:
    if page.labels:
        page.put(f"**{written(page.labels.popleft())}**")
    return flush


def label(page: Page, tag: Tag) -> Closer:
    role = page.role(tag)
    if role is Role.TITLE:
        return page.line()
    return leave_out if role is Role.DROP else None
