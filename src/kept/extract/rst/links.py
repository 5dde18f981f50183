"""Where references lead: to places of the page itself, and to other pages of its source."""

from __future__ import annotations

import posixpath
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from docutils import nodes

from kept.extract.rst.names import LABEL_ROLES, key_of, object_ids
from kept.extract.rst.page import Page
from kept.model.companions import Companions, PlaceTarget


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """The end of a reference. Without an href it is only text; with a title, that is its text."""

    href: str = ""
    title: str = ""


NO_LINK: Final = Link()


class LinkTargets:
    """Resolves the references of one page: in itself, else by what its source gave with it."""

    def __init__(self, document: nodes.document, url: str, companions: Companions) -> None:
        self._document = document
        self._url = url
        self._companions = companions

    def find(self, role: str, target: str, page: Page) -> Link:
        """Return where a reference leads; NO_LINK where that is not known."""
        if role == "doc":
            return self.page(target, "")
        if role in LABEL_ROLES:
            label = " ".join(target.lower().split())
            id_ = self._document.nameids.get(label)
            if id_:
                return Link(href=f"#{id_}", title=self._title(id_))
            return self._elsewhere(self._companions.targets.get(f"ref:{label}", ()))
        candidates = object_ids(role, target, page)
        for candidate in candidates:
            if candidate in self._document.ids:
                return Link(href=f"#{candidate}")
        for candidate in candidates:
            known = self._companions.targets.get(f"id:{key_of(candidate)}", ())
            if found := [place for place in known if place.anchor == candidate]:
                return self._elsewhere(tuple(found))
        if role == "keyword":
            return self._elsewhere(self._companions.targets.get(f"ref:{target.lower()}", ()), titled=False)
        if target.startswith("."):  # anything that ends so, if there is just one
            known = self._companions.targets.get(f"id:{key_of(candidates[-1])}", ())
            found = [place for place in known if place.anchor.endswith(target)]
            return self._elsewhere(tuple(found)) if len(found) == 1 else NO_LINK
        return NO_LINK

    def page(self, target: str, title: str) -> Link:
        """Return the link to a page, which is named without its extension."""
        if "://" in target:
            return Link(href=target, title=title or target)
        known = self._companions.targets.get(f"doc:{target}", ())
        if known:
            return Link(href=self._relative(known[0]), title=title or known[0].title)
        if not target or target.startswith("/") or any(mark in target for mark in "*?["):
            return NO_LINK
        extension = _extension(self._url)
        path, _, fragment = target.partition("#")
        href = path if path.endswith((extension, ".md")) else f"{path}{extension}"
        return Link(href=f"{href}#{fragment}" if fragment else href, title=title)

    def _elsewhere(self, places: tuple[PlaceTarget, ...], *, titled: bool = True) -> Link:
        if not places:
            return NO_LINK
        return Link(href=self._relative(places[0]), title=places[0].title if titled else "")

    def _relative(self, place: PlaceTarget) -> str:
        """Return the link from this page to a place, as short as a page would write it."""
        here, there = urlsplit(self._url), urlsplit(place.url)
        fragment = f"#{place.anchor}" if place.anchor else ""
        if place.url == self._url:
            return fragment
        if (here.scheme, here.netloc) != (there.scheme, there.netloc):
            return f"{place.url}{fragment}"
        return posixpath.relpath(there.path, posixpath.dirname(here.path)) + fragment

    def _title(self, id_: str) -> str:
        node = self._document.ids.get(id_)
        title = node.next_node(nodes.title) if isinstance(node, nodes.section) else None
        return " ".join(title.astext().split()) if title is not None else ""


def _extension(url: str) -> str:
    """Return the extension of the page's file, which the pages that it names without one share."""
    name = url.partition("?")[0].rpartition("/")[2]
    stem, dot, extension = name.rpartition(".")
    return f".{extension}" if dot and stem else ".rst"
