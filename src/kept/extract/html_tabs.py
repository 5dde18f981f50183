"""Tabs: every panel is written, under its label."""

from __future__ import annotations

from kept.extract.html_page import VOID, Closer, Page, done, leave_out
from kept.extract.html_rules import Role
from kept.extract.html_words import unescaped, written


def labels(page: Page, name: str, attributes: str) -> Closer:
    """Remembers the labels, one for each panel that follows."""
    labels = page.code_labels if page.in_group else page.labels
    labels.clear()
    said = [page.behind]
    depth, page.behind = 1, ""
    for tag, _, text in page.following:
        if tag[:1] == "/":
            depth -= 1
            if tag in ("/label", "/li", "/button", "/a") and (label := " ".join("".join(said).split())):
                labels.append(unescaped(label))
                said.clear()
            if not depth:
                page.behind = text
                break
        elif tag and tag not in VOID:
            depth += 1
        said.append(text)
    return done


def group(page: Page, name: str, attributes: str) -> Closer:
    page.in_group = True

    def close() -> None:
        page.flush()
        page.in_group = False
        page.code_labels.clear()

    return close


def panel(page: Page, name: str, attributes: str) -> Closer:
    if page.labels:
        page.put(f"**{written(page.labels.popleft())}**")
    return page.flush


def label(page: Page, name: str, attributes: str) -> Closer:
    role = page.role(attributes) if attributes else None
    if role is Role.TITLE:
        return page.line()
    return leave_out if role is Role.DROP else None
