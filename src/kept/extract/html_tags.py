"""The tags of a page, one after the other.

    Tag, tag_of    a tag that begins an element, taken apart once however often it comes
    Walk           goes from one tag to the next, and never back

They are as a parser writes them: well-formed, and with `<` and `>` escaped in words and values. So a page is taken
apart at its brackets, which is far quicker than any pattern.
"""

from __future__ import annotations

from typing import Final

from kept.extract.html_rules import NAVIGATION, Role, language, role_of
from kept.extract.html_words import unescaped

LARGE: Final = 500_000
"""Characters. A page is taken apart all at once, which is quicker, unless that would take much memory."""

VOID: Final = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip

# How attributes begin, for attribute().
CLASS: Final = ' class="'
HREF: Final = ' href="'
ID: Final = ' id="'
NAME: Final = ' name="'

_TAB_ROLES: Final = (('role="tabpanel"', Role.PANEL), ('role="tablist"', Role.TABS))


def attribute(attributes: str, begins: str) -> str | None:
    """What stands between the quotes of the attribute that begins so."""
    start = attributes.find(begins)
    if start < 0:
        return None
    start += len(begins)
    return unescaped(attributes[start : attributes.find('"', start)])


class Tag:
    """A tag that begins an element, and what it says about it."""

    __slots__ = ("_language", "attributes", "classes", "id", "is_void", "name", "role")

    def __init__(self, text: str) -> None:
        self.name = text.split(None, 1)[0] if text else ""
        self.is_void = self.name in VOID or not self.name[:1].isalnum()  # what ends by itself, and a comment
        self.attributes = attributes = text[len(self.name) :]
        self.classes = ""
        self._language: str | None = None
        self.id: str | None = None
        self.role: Role | None = None  # by its class, mostly; what its id says depends on where it stands
        if attributes:
            self.classes = attribute(attributes, CLASS) or ""
            self.id = attribute(attributes, ID)
            self.role = _role(self.classes, attributes)

    def language(self) -> str:
        """The language of code that it names; "" if it names none."""
        if self._language is None:
            self._language = language(self.classes, self.attributes) if self.attributes else ""
        return self._language


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


_COMMENT: Final = Tag("!")
_SLASH: Final = ord("/")
_LETTERS: Final = ord("A")  # and what comes before them begins no tag


class Walk:
    """A place in a page that moves from tag to tag."""

    def __init__(self, html: str) -> None:
        self.ends = False  # whether the tag at hand ends an element
        self.tag = _COMMENT  # the tag at hand, if it begins one
        self.behind = ""  # the words behind it
        self._html = html
        self._at = html.find("<")  # what lies ahead is taken apart up to here
        self._ahead: list[str] = []  # each tag without its `<`, with the words behind it; the next one is the last

    def step(self) -> bool:
        """Goes to the next tag; False at the end of the page."""
        if not self._ahead and not self._look_ahead():
            return False
        piece = self._ahead.pop()
        first = ord(piece[0]) if piece else 0
        self.ends = first == _SLASH
        end = piece.find(">")
        if end < 0 or (first < _LETTERS and not self.ends):
            self._unusual(piece)
            return True
        self.behind = piece[end + 1 :]
        if not self.ends:
            self.tag = tag_of(piece[:end])
        return True

    def holds_words_only(self) -> bool:
        """Whether the next tag is the end of the element that has just begun. Perhaps not known, and then False."""
        return bool(self._ahead) and self._ahead[-1].startswith("/")

    def skip(self) -> None:
        """Goes to the end of the element that has just begun, or of the page."""
        depth = 1
        while self.step():
            if self.ends:
                depth -= 1
                if not depth:
                    return
            elif not self.tag.is_void:
                depth += 1
        self.behind = ""

    def _look_ahead(self) -> bool:
        start = self._at
        if start < 0:
            return False
        self._at = self._html.find("<", start + LARGE)
        self._ahead = self._html[start + 1 : self._at if self._at >= 0 else len(self._html)].split("<")
        self._ahead.reverse()
        return True

    def _unusual(self, piece: str) -> None:
        """A comment, as which other such things count, and what is behind them is lost; or a name with a `<` in it."""
        if piece.startswith("!--"):
            end = piece.find("-->", 3)
            while end < 0 and (self._ahead or self._look_ahead()):
                piece = self._ahead.pop()
                end = piece.find("-->")
            self.tag, self.behind = _COMMENT, piece[end + 3 :] if end >= 0 else ""
        elif piece.startswith(("!", "?")):
            self.tag, self.behind = _COMMENT, ""
        else:
            pieces = [piece]
            while ">" not in pieces[-1] and (self._ahead or self._look_ahead()):
                pieces.append(self._ahead.pop())
            text, _, self.behind = "<".join(pieces).partition(">")
            if not self.ends:
                self.tag = tag_of(text)
