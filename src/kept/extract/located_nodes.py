"""The nodes of a page's heading tree with their positions: places, and pieces cut at named entries.

    locate_nodes    the nodes of a tree, in pre-order, with their places and pieces
    place_nodes     all places of a page

Only a long section is cut, at those of its entries that are long enough to stand alone: an entry is then found with its
own text, and a page of short ones is not shredded.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import Final, NamedTuple

from kept.extract.named_entries import NamedText, find_entries, find_tables
from kept.extract.section_nodes import SectionNode
from kept.extract.section_splitter import SectionRules, strip_blank_lines
from kept.model.document import NamedEntry, Place

MIN_ENTRY_LENGTH: Final = 200
"""Characters. A shorter entry stays in its section, which holds its name."""

_MIN_REST_LENGTH: Final = 60  # characters; less between two entries stays with the one before


class SectionPiece(NamedTuple):
    """A part of a node's text that becomes a section, or several if it is too long."""

    text: str
    entry: str  # its names, if it is a named entry
    entries: tuple[NamedEntry, ...]  # the names in it


class LocatedNode:
    """A node, where its own text is in the page's Markdown, and the entries in it."""

    __slots__ = ("end", "entries", "node", "parent", "pieces", "places", "start", "subtree_end")

    def __init__(self, node: SectionNode, parent: int | None, start: int, end: int) -> None:
        self.node = node
        self.parent = parent  # the index of its parent
        self.start = start  # -1 if unknown
        self.end = end
        self.subtree_end = end
        self.places: list[Place] = []
        self.entries: list[NamedText] = []  # positions in its own text
        self.pieces: list[SectionPiece] = []


def locate_nodes(
    root: SectionNode, markdown: str, places: Sequence[Place], rules: SectionRules, *, with_entries: bool = True
) -> list[LocatedNode]:
    """Return the nodes of a tree in pre-order. Nodes that are not in the Markdown, in its order, have no position."""
    nodes: list[LocatedNode] = []
    texts: list[str] = []
    stack: list[tuple[SectionNode, int | None]] = [(root, None)]
    cursor = 0
    while stack:
        node, parent = stack.pop()
        text = strip_blank_lines(node.content)
        start = markdown.find(text, cursor) if cursor >= 0 else -1
        cursor = start + len(text) if start >= 0 else -1
        stack += [(child, len(nodes)) for child in reversed(node.children)]
        nodes.append(LocatedNode(node, parent, start, cursor))
        texts.append(text)
    for located in reversed(nodes):
        if located.parent is not None:
            above = nodes[located.parent]
            above.subtree_end = max(above.subtree_end, located.subtree_end)
    _assign_places(nodes, places)
    for located, text in zip(nodes, texts, strict=True):
        inner = [
            place._replace(start=place.start - located.start, end=max(0, place.end - located.start))
            for place in located.places
            if place.start > located.start or place.name
        ]
        if with_entries and (inner or "\n|" in text or text.startswith("|")):
            located.entries = find_entries(text, inner)
        if text:
            located.pieces = _cut(text, located.entries, rules)
    return nodes


def _assign_places(nodes: Sequence[LocatedNode], places: Sequence[Place]) -> None:
    """Give each place to the last node that begins at it or before it."""
    if not places:
        return
    known = [node for node in nodes if node.start >= 0]
    starts = [node.start for node in known]
    for place in places:
        number = bisect_right(starts, place.start) - 1
        if number >= 0:
            known[number].places.append(place)


def _cut(text: str, entries: Sequence[NamedText], rules: SectionRules) -> list[SectionPiece]:
    if len(text) <= rules.target_characters or not any(map(_stands_alone, entries)):
        return [SectionPiece(text, "", tuple([name for entry in entries for name in entry.names]))]
    cutter = _Cutter(text)
    for entry in entries:
        if _stands_alone(entry):
            cutter.cut(entry)
        else:
            cutter.names += entry.names
    cutter.add_rest(len(text))
    return cutter.pieces


def _stands_alone(entry: NamedText) -> bool:
    return entry.end - entry.start >= MIN_ENTRY_LENGTH


class _Cutter:
    """Cuts a text at entries, in order. A part that begins inside a table gets the header of the table."""

    def __init__(self, text: str) -> None:
        self.pieces: list[SectionPiece] = []
        self.names: list[NamedEntry] = []  # of the entries in the rest so far
        self._text = text
        self._start = 0  # of the rest
        self._tables = find_tables(text) if "|" in text else []
        self._row_starts = [rows for _, rows, _ in self._tables]

    def cut(self, entry: NamedText) -> None:
        """Add the rest before an entry, and the entry."""
        self.add_rest(entry.start)
        heading = ", ".join(dict.fromkeys([name.name for name in entry.names[:3]]))
        text = strip_blank_lines(self._text[entry.start : entry.end])
        self.pieces.append(SectionPiece(self._table_header(entry.start) + text, heading, entry.names))
        self._start = entry.end

    def add_rest(self, end: int) -> None:
        """Add the text since the last entry; to its piece, if it is short."""
        rest = strip_blank_lines(self._text[self._start : end])
        header = self._table_header(self._start)
        names, self.names = tuple(self.names), []
        if not rest or (self._start and _is_table_header(rest)):
            return
        if self.pieces and not header and len(rest) < _MIN_REST_LENGTH:
            last = self.pieces[-1]
            self.pieces[-1] = SectionPiece(f"{last.text}\n\n{rest}", last.entry, last.entries + names)
        else:
            self.pieces.append(SectionPiece(header + rest, "", names))

    def _table_header(self, start: int) -> str:
        """Return the header of the table that a row here, or on the next line, belongs to; '' if there is none."""
        if self._text.startswith("\n", start):
            start += 1
        number = bisect_right(self._row_starts, start) - 1
        if number < 0:
            return ""
        table, rows, end = self._tables[number]
        return self._text[table:rows] if start < end else ""


def _is_table_header(text: str) -> bool:
    _, _, rule = text.partition("\n")
    return text.startswith("|") and "\n" not in rule and not rule.strip("|-: ")


# ── Places ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def place_nodes(nodes: Sequence[LocatedNode]) -> tuple[Place, ...]:
    """Return all places in the order of the page: headings, entries and other ids. Of equal ones, the first."""
    ends = _heading_ends(nodes)
    found: dict[str, Place] = {}
    nameless: list[Place] = []
    for node, heading_end in zip(nodes, ends, strict=True):
        if node.start < 0:
            continue
        if node.node.anchor:
            _add_place(found, Place(node.node.anchor, node.start, heading_end, node.node.entry))
        for entry in node.entries:
            for part in entry.parts:
                place = Place(part.anchor, node.start + part.start, node.start + part.end, part.name)
                if part.anchor:
                    _add_place(found, place)
                if not part.anchor or found[part.anchor] != place:
                    nameless.append(place._replace(anchor=""))
        for place in node.places:
            if place.anchor:
                is_heading = place.start <= node.start
                _add_place(found, Place(place.anchor, place.start, heading_end if is_heading else node.end))
    return tuple(sorted([*found.values(), *nameless], key=_by_start))


def _add_place(found: dict[str, Place], place: Place) -> None:
    found.setdefault(place.anchor, place)


def _by_start(place: Place) -> int:
    return place.start


def _heading_ends(nodes: Sequence[LocatedNode]) -> list[int]:
    """Return where the text of each heading ends: with all below it, and what follows under the same heading.

    A signature without a description shares that of the next one.
    """
    ends = [node.subtree_end for node in nodes]
    later: dict[str, int] = {}  # anchor -> where its last node ends
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        if node.start >= 0 and number + 1 < len(nodes) and _is_signature_only(node):
            ends[number] = max(ends[number], ends[number + 1])
        anchor = node.node.anchor
        if anchor:
            ends[number] = later[anchor] = max(ends[number], later.get(anchor, 0))
    return ends


def _is_signature_only(node: LocatedNode) -> bool:
    text = node.node.content.strip("\n")
    return not node.node.children and text.startswith("#") and text.endswith("`") and "\n" not in text
