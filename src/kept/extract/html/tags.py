"""A cursor over the tags of a page.

    Tag, parse_tag    a start tag; equal ones are parsed once
    TagCursor         moves from one tag to the next, and never back

The HTML comes from a serializer: it is well-formed, and `<` and `>` are escaped in text and attributes. So a page can
be split at its brackets, which is far faster than any pattern.
"""

from __future__ import annotations

from typing import Final

from kept.extract.html.generator_rules import NAVIGATION_ROLES, ElementRole, code_language, role_from_classes
from kept.extract.html.markdown_text import unescape_entities

CHUNK_LENGTH: Final = 500_000
"""Characters that are split at once. Splitting a whole page is faster, but a large one would take too much memory."""

VOID_TAGS: Final = frozenset({
    "area", "base", "basefont", "bgsound", "br", "col", "embed", "frame", "hr", "img", "input", "keygen",
    "link", "meta", "param", "source", "track", "wbr",
})  # fmt: skip

# Prefixes of attributes, for attribute_value().
CLASS_ATTRIBUTE: Final = ' class="'
HREF_ATTRIBUTE: Final = ' href="'
ID_ATTRIBUTE: Final = ' id="'
NAME_ATTRIBUTE: Final = ' name="'

_TAB_ROLES: Final = (('role="tabpanel"', ElementRole.PANEL), ('role="tablist"', ElementRole.TABS))


def attribute_value(attributes: str, prefix: str) -> str | None:
    """Return the value of the attribute with this prefix, or None."""
    start = attributes.find(prefix)
    if start < 0:
        return None
    start += len(prefix)
    return unescape_entities(attributes[start : attributes.find('"', start)])


class Tag:
    """A start tag and its attributes."""

    __slots__ = ("_language", "anchors", "attributes", "classes", "id", "is_void", "name", "role")

    def __init__(self, text: str) -> None:
        self.name = text.split(None, 1)[0] if text else ""
        self.is_void = self.name in VOID_TAGS or not self.name[:1].isalnum()  # the latter for comments
        self.attributes = attributes = text[len(self.name) :]
        self.classes = ""
        self._language: str | None = None
        self.id: str | None = None
        self.anchors: list[str] = []  # its id, and the name of an <a>
        self.role: ElementRole | None = None  # by its class, mostly; WriterState.resolve_role adds its id
        if attributes:
            self.classes = attribute_value(attributes, CLASS_ATTRIBUTE) or ""
            self.id = attribute_value(attributes, ID_ATTRIBUTE)
            self.role = _element_role(self.classes, attributes)
            if self.id:
                self.anchors.append(self.id)
            if self.name == "a" and NAME_ATTRIBUTE in attributes:
                name = attribute_value(attributes, NAME_ATTRIBUTE)
                if name and name != self.id:
                    self.anchors.append(name)

    def language(self) -> str:
        """Return the language of code that it declares; "" if none."""
        if self._language is None:
            self._language = code_language(self.classes, self.attributes) if self.attributes else ""
        return self._language


def _element_role(classes: str, attributes: str) -> ElementRole | None:
    role = role_from_classes(classes) if classes else None
    if role is ElementRole.DROP:
        return role
    if "role=" in attributes:
        for navigation_role in NAVIGATION_ROLES:
            if navigation_role in attributes:
                return ElementRole.DROP
        if ' role="tab' in attributes:
            for attribute, tab_role in _TAB_ROLES:
                if attribute in attributes:
                    return tab_role
            return role
    return ElementRole.DROP if ' hidden=""' in attributes else role


_tag_cache: Final[dict[str, Tag]] = {}


def parse_tag(text: str) -> Tag:
    """Return the start tag with this text between its brackets. Cached: pages repeat their tags."""
    cached = _tag_cache.get(text)
    if cached is not None:
        return cached
    tag = Tag(text)
    if len(text) < 200:  # the cache is bounded, in number and in length
        if len(_tag_cache) > 10_000:
            _tag_cache.clear()
        _tag_cache[text] = tag
    return tag


_COMMENT: Final = Tag("!")
_SLASH: Final = ord("/")
_FIRST_LETTER: Final = ord("A")  # a tag begins with no character below


class TagCursor:
    """A position in a page that moves from tag to tag."""

    def __init__(self, html: str) -> None:
        self.is_end_tag = False  # whether the current tag is an end tag
        self.tag = _COMMENT  # the last start tag
        self.text_after = ""  # the text between the current tag and the next
        self._html = html
        self._split_until = html.find("<")  # offset of the first tag that is not in _upcoming
        self._upcoming: list[str] = []  # tags without `<`, each with the text behind it, in reverse order

    def next_tag(self) -> bool:
        """Move to the next tag. Returns False at the end of the page."""
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
        """Return whether the next tag ends the element that has just begun; False if unknown (end of a chunk)."""
        return bool(self._upcoming) and self._upcoming[-1].startswith("/")

    def skip_element(self) -> None:
        """Move to the end of the element that has just begun, or of the page."""
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
        """Handle a comment, a declaration (whose text behind it is lost), or a tag with a `<` in its name."""
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
