"""The tags of a page, one after the other.

    Tag, tag_of    a tag that begins an element, taken apart once however often it comes
    Walk           goes from one tag to the next, and never back

They are as a parser writes them: well-formed, and with `<` and `>` escaped in words and values. So a page is taken
apart at its brackets, which is far quicker than any pattern.
"""

from __future__ import annotations

from typing import Final

from kept.extract.html.generator_rules import NAVIGATION_ROLES, ElementRole, code_language, role_from_classes
from kept.extract.html.markdown_text import unescape_entities

CHUNK_LENGTH: Final = 500_000
"""Characters. A page is taken apart all at once, which is quicker, unless that would take much memory."""

VOID_TAGS: Final = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip

# How attributes begin, for attribute().
CLASS_ATTRIBUTE: Final = ' class="'
HREF_ATTRIBUTE: Final = ' href="'
ID_ATTRIBUTE: Final = ' id="'
NAME_ATTRIBUTE: Final = ' name="'

_TAB_ROLES: Final = (('role="tabpanel"', ElementRole.PANEL), ('role="tablist"', ElementRole.TABS))


def attribute_value(attributes: str, begins: str) -> str | None:
    """What stands between the quotes of the attribute that begins so."""
    start = attributes.find(begins)
    if start < 0:
        return None
    start += len(begins)
    return unescape_entities(attributes[start : attributes.find('"', start)])


class Tag:
    """A tag that begins an element, and what it says about it."""

    __slots__ = ("_language", "attributes", "classes", "id", "is_void", "name", "role")

    def __init__(self, text: str) -> None:
        self.name = text.split(None, 1)[0] if text else ""
        self.is_void = self.name in VOID_TAGS or not self.name[:1].isalnum()  # what ends by itself, and a comment
        self.attributes = attributes = text[len(self.name) :]
        self.classes = ""
        self._language: str | None = None
        self.id: str | None = None
        self.role: ElementRole | None = None  # by its class, mostly; what its id says depends on where it stands
        if attributes:
            self.classes = attribute_value(attributes, CLASS_ATTRIBUTE) or ""
            self.id = attribute_value(attributes, ID_ATTRIBUTE)
            self.role = _element_role(self.classes, attributes)

    def language(self) -> str:
        """The language of code that it names; "" if it names none."""
        if self._language is None:
            self._language = code_language(self.classes, self.attributes) if self.attributes else ""
        return self._language


def _element_role(classes: str, attributes: str) -> ElementRole | None:
    role = role_from_classes(classes) if classes else None
    if role is ElementRole.DROP:
        return role
    if "role=" in attributes:
        for said in NAVIGATION_ROLES:
            if said in attributes:
                return ElementRole.DROP
        if ' role="tab' in attributes:
            for said, tab in _TAB_ROLES:
                if said in attributes:
                    return tab
            return role
    return ElementRole.DROP if ' hidden=""' in attributes else role


_tag_cache: Final[dict[str, Tag]] = {}


def parse_tag(text: str) -> Tag:
    """The tag that stands between these brackets. Pages repeat themselves in them, and each other."""
    known = _tag_cache.get(text)
    if known is not None:
        return known
    tag = Tag(text)
    if len(text) < 200:  # what is remembered has an end, in number and in length
        if len(_tag_cache) > 10_000:
            _tag_cache.clear()
        _tag_cache[text] = tag
    return tag


_COMMENT: Final = Tag("!")
_SLASH: Final = ord("/")
_FIRST_LETTER: Final = ord("A")  # and what comes before them begins no tag


class TagCursor:
    """A place in a page that moves from tag to tag."""

    def __init__(self, html: str) -> None:
        self.is_end_tag = False  # whether the tag at hand ends an element
        self.tag = _COMMENT  # the tag at hand, if it begins one
        self.text_after = ""  # the words behind it
        self._html = html
        self._split_until = html.find("<")  # what lies ahead is taken apart up to here
        self._upcoming: list[str] = []  # each tag without its `<`, with the words behind it; the next one is the last

    def next_tag(self) -> bool:
        """Goes to the next tag; False at the end of the page."""
        if not self._upcoming and not self._split_next_chunk():
            return False
        piece = self._upcoming.pop()
        first = ord(piece[0]) if piece else 0
        self.is_end_tag = first == _SLASH
        end = piece.find(">")
        if end < 0 or (first < _FIRST_LETTER and not self.is_end_tag):
            self._parse_unusual(piece)
            return True
        self.text_after = piece[end + 1 :]
        if not self.is_end_tag:
            self.tag = parse_tag(piece[:end])
        return True

    def holds_only_text(self) -> bool:
        """Whether the next tag is the end of the element that has just begun. Perhaps not known, and then False."""
        return bool(self._upcoming) and self._upcoming[-1].startswith("/")

    def skip_element(self) -> None:
        """Goes to the end of the element that has just begun, or of the page."""
        depth = 1
        while self.next_tag():
            if self.is_end_tag:
                depth -= 1
                if not depth:
                    return
            elif not self.tag.is_void:
                depth += 1
        self.text_after = ""

    def _split_next_chunk(self) -> bool:
        start = self._split_until
        if start < 0:
            return False
        self._split_until = self._html.find("<", start + CHUNK_LENGTH)
        self._upcoming = self._html[start + 1 : self._split_until if self._split_until >= 0 else len(self._html)].split(
            "<"
        )
        self._upcoming.reverse()
        return True

    def _parse_unusual(self, piece: str) -> None:
        """A comment, as which other such things count, and what is behind them is lost; or a name with a `<` in it."""
        if piece.startswith("!--"):
            end = piece.find("-->", 3)
            while end < 0 and (self._upcoming or self._split_next_chunk()):
                piece = self._upcoming.pop()
                end = piece.find("-->")
            self.tag, self.text_after = _COMMENT, piece[end + 3 :] if end >= 0 else ""
        elif piece.startswith(("!", "?")):
            self.tag, self.text_after = _COMMENT, ""
        else:
            pieces = [piece]
            while ">" not in pieces[-1] and (self._upcoming or self._split_next_chunk()):
                pieces.append(self._upcoming.pop())
            text, _, self.text_after = "<".join(pieces).partition(">")
            if not self.is_end_tag:
                self.tag = parse_tag(text)
