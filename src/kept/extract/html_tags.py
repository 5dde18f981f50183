"""The tags of a page, as a parser writes them: well-formed, and with `<` and `>` escaped wherever they mean no tag.

Tag, tag_of    a tag that begins an element, taken apart once however often it comes
Walk           goes from one tag to the next, and never back
"""

from __future__ import annotations

from typing import Final

from kept.extract.html_rules import NAVIGATION, Role, role_of
from kept.extract.html_words import unescaped

LARGE: Final = 500_000
"""Characters. A page is taken apart all at once, which is quicker, unless that would take much memory."""

VOID: Final = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip

# How attributes begin, for attribute().
CLASS, HREF, ID, NAME = ' class="', ' href="', ' id="', ' name="'

_TAB_ROLES: Final = (('role="tabpanel"', Role.PANEL), ('role="tablist"', Role.TABS))


def attribute(attributes: str, begins: str) -> str | None:
    start = attributes.find(begins)
    if start < 0:
        return None
    start += len(begins)
    return unescaped(attributes[start : attributes.find('"', start)])


class Tag:
    """A tag that begins an element, and what it says about it."""

    __slots__ = ("attributes", "classes", "id", "is_void", "name", "role")

    def __init__(self, text: str) -> None:
        self.name = text.split(None, 1)[0] if text else ""
        self.is_void = self.name in VOID or not self.name[:1].isalnum()  # what ends by itself, and a comment
        self.attributes = attributes = text[len(self.name) :]
        self.classes = ""
        self.id: str | None = None
        self.role: Role | None = None  # by its class, mostly; what its id says depends on where it stands
        if attributes:
            self.classes = attribute(attributes, CLASS) or ""
            self.id = attribute(attributes, ID)
            self.role = _role(self.classes, attributes)


def _role(classes: str, attributes: str) -> Role | None:
    role = role_of(classes) if classes else None
    if role is Role.DROP:
        return role
    if "role=" in attributes:
        for said in NAVIGATION:
            if said in attributes:
                return Role.DROP
        if ' role="tab' in attributes:
            for said, tab in _TAB_ROLES:
                if said in attributes:
                    return tab
            return role
    return Role.DROP if ' hidden=""' in attributes else role


_known: Final[dict[str, Tag]] = {}


def tag_of(text: str) -> Tag:
    """The tag that stands between these brackets. Pages repeat themselves in them, and each other."""
    known = _known.get(text)
    if known is not None:
        return known
    tag = Tag(text)
    if len(text) < 200:  # what is remembered has an end, in number and in length
        if len(_known) > 10_000:
            _known.clear()
        _known[text] = tag
    return tag


class Walk:
    """A place in a page that moves from tag to tag."""

    def __init__(self, html: str) -> None:
        self.behind = ""  # the words behind the tag at hand
        self._html = html
        self._at = html.find("<")  # what lies ahead is taken apart up to here
        self._ahead: list[str] = []  # each tag without its `<`, with the words behind it; the next one is the last

    def step(self) -> str | None:
        """The next tag, without its brackets; None at the end of the page. A comment is a tag called "!"."""
        if not self._ahead and not self._look_ahead():
            return None
        piece = self._ahead.pop()
        tag, end, self.behind = piece.partition(">")
        if not end or (tag < "A" and not tag.startswith("/")):
            return self._unusual(piece)
        return tag

    def holds_words_only(self) -> bool:
        """Whether the next tag is the end of the element that has just begun. Perhaps not known, and then False."""
        return bool(self._ahead) and self._ahead[-1].startswith("/")

    def skip(self) -> str:
        """Goes to the end of the element that has just begun; the words behind it."""
        depth = 1
        while (tag := self.step()) is not None:
            if tag.startswith("/"):
                depth -= 1
                if not depth:
                    return self.behind
            elif not tag_of(tag).is_void:
                depth += 1
        return ""

    def _look_ahead(self) -> bool:
        start = self._at
        if start < 0:
            return False
        self._at = self._html.find("<", start + LARGE)
        self._ahead = self._html[start + 1 : self._at if self._at >= 0 else len(self._html)].split("<")
        self._ahead.reverse()
        return True

    def _unusual(self, piece: str) -> str | None:
        """A comment, as which other such things count, and what is behind them is lost; or a name with a `<` in it."""
        if piece.startswith("!--"):
            end = piece.find("-->", 3)
            while end < 0 and (self._ahead or self._look_ahead()):
                piece = self._ahead.pop()
                end = piece.find("-->")
            self.behind = piece[end + 3 :] if end >= 0 else ""
            return "!"
        if piece.startswith(("!", "?")):
            self.behind = ""
            return "!"
        pieces = [piece]
        while ">" not in pieces[-1] and (self._ahead or self._look_ahead()):
            pieces.append(self._ahead.pop())
        tag, _, self.behind = "<".join(pieces).partition(">")
        return tag
