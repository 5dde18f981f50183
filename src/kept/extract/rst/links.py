"""Where references lead: to places of the page itself, and to other pages of its source."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from docutils import nodes

from kept.extract.rst.nodes import Signature, sphinx_id
from kept.extract.rst.page import Page

_STANDARD_PREFIXES: Final = {
    "setting": "setting", "ttag": "templatetag", "tfilter": "templatefilter", "lookup": "fieldlookup",
    "djadmin": "django-admin", "envvar": "envvar", "confval": "confval", "opcode": "opcode", "term": "term",
    "rst:dir": "directive", "rst:role": "role", "token": "grammar-token",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The end of a reference. Without an href it is only text; with a title, that is its text."""

    href: str = ""
    title: str = ""


NO_LINK: Final = Link()


class LinkTargets:
    """Resolves the references of one page."""

    def __init__(self, document: nodes.document, *, extension: str) -> None:
        self._document = document
        self._extension = extension

    def find(self, role: str, target: str, page: Page) -> Link:
        """Return where a reference leads; NO_LINK where that is not known."""
        if role == "doc":
            return self.page(target, "")
        if role in ("ref", "numref", "any", "eq"):
            label = " ".join(target.lower().split())
            id_ = self._document.nameids.get(label)
            return Link(href=f"#{id_}", title=self._title(id_)) if id_ else NO_LINK
        ids = self._document.ids
        for candidate in _object_ids(role, target, page):
            if candidate in ids:
                return Link(href=f"#{candidate}")
        return NO_LINK

    def page(self, target: str, title: str) -> Link:
        """Return the link to a page, which is named without its extension."""
        if "://" in target:
            return Link(href=target, title=title or target)
        if not target or target.startswith("/") or any(mark in target for mark in "*?["):
            return NO_LINK
        path, _, fragment = target.partition("#")
        known = path.endswith((self._extension, ".md")) and self._extension
        href = path if known else f"{path}{self._extension}"
        return Link(href=f"{href}#{fragment}" if fragment else href, title=title)

    def _title(self, id_: str) -> str:
        node = self._document.ids.get(id_)
        title = node.next_node(nodes.title) if isinstance(node, nodes.section) else None
        return " ".join(title.astext().split()) if title is not None else ""


def _object_ids(role: str, target: str, page: Page) -> list[str]:
    """Return the ids that an object of this name may have, the most likely first."""
    target = target.removesuffix("()")
    if role in _STANDARD_PREFIXES:
        return [
            sphinx_id(f"{_STANDARD_PREFIXES[role]}-{target}"),
            sphinx_id(f"std-{_STANDARD_PREFIXES[role]}-{target}"),
        ]
    if role == "option":
        words = target.split()
        return [sphinx_id("-".join(["cmdoption", *filter(None, [page.program]), words[-1]]))] if words else []
    domain = role.partition(":")[0]
    if domain == "c":
        return [sphinx_id(f"c.{target}")]
    if role == "py:mod":
        return [f"module-{sphinx_id(target)}"]
    names = [target.lstrip(".")]
    if page.module:
        names.insert(0, f"{page.module}.{target.lstrip('.')}")
    return [sphinx_id(name) for name in names]


__all__ = ["NO_LINK", "Link", "LinkTargets", "Signature"]
