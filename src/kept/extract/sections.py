"""Headings become a tree of sections, and the tree becomes a list of sections, none too long, under one hash.

    SectionNode            a node of the tree, as the readers build it
    build_section_tree     nests a reader's sections by heading level
    flatten_section_tree   numbers the nodes and splits the long ones (section_splitter)
    build_content          title, markdown and tree -> Content
    compute_content_hash   the hash that identifies a content

A section's text is the page's own Markdown, including its heading line: the sections of a page, joined, are the whole
page. Everything here takes time linear in the text, whatever the text is.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from kept.extract.located_nodes import LocatedNode, SectionPiece, locate_nodes, place_nodes
from kept.extract.section_nodes import MAX_HEADING_LENGTH, SectionNode, build_section_tree
from kept.extract.section_splitter import DEFAULT_SECTION_RULES, SectionRules, split_text
from kept.model.document import SECTIONS_PER_CONTENT, Content, PageKind, Place, Section, Unreadable
from kept.model.index_fields import build_index_fields
from kept.model.robots_directives import RobotsDirectives

__all__ = [
    "DEFAULT_SECTION_RULES",
    "MAX_HEADING_LENGTH",
    "Extraction",
    "SectionNode",
    "SectionRules",
    "Unreadable",
    "build_content",
    "build_section_tree",
    "compute_content_hash",
    "flatten_section_tree",
    "split_text",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """The result of a reader for one page."""

    title: str
    markdown: str
    tree: SectionNode
    hrefs: list[str] = field(default_factory=list)  # unresolved, in page order
    base_href: str | None = None  # of <base>, which the links are relative to
    is_js_shell: bool = False  # nothing to read until its scripts have run
    alternate_hrefs: list[str] = field(default_factory=list)  # the same page in other formats
    canonical: str | None = None  # the URL that the page declares as its own
    moved_to: str | None = None  # the target, if the page is a mere redirect
    robots_directives: RobotsDirectives = RobotsDirectives()
    places: tuple[Place, ...] = ()  # other than headings: `start` is a position in the Markdown; in order
    kind: PageKind | None = None  # None: to be recognised


# ── Tree and hash ─────────────────────────────────────────────────────────────────────────────────────────────────────


def build_content(
    title: str,
    markdown: str,
    tree: SectionNode,
    rules: SectionRules,
    places: Sequence[Place] = (),
    kind: PageKind = PageKind.PAGE,
) -> Content:
    """Return the content with its sections and the hash over all. ``places`` are those besides headings."""
    # A page with too many headings for the limit of sections is split as one text, and so is a page of links.
    if _is_listing(kind) or _count_nodes(tree) + 2 * len(markdown) // rules.target_characters >= SECTIONS_PER_CONTENT:
        tree = SectionNode(heading=title[:MAX_HEADING_LENGTH], content=markdown)
    nodes = locate_nodes(tree, markdown, places, rules, with_entries=not _is_listing(kind))
    sections = flatten_nodes(nodes, rules)
    content = Content(
        hash="",
        title=title,
        markdown=markdown,
        sections=sections,
        index_fields=build_index_fields(title, sections),
        kind=kind,
        places=place_nodes(nodes),
    )
    return content._replace(hash=compute_content_hash(content, rules))


def _is_listing(kind: PageKind) -> bool:
    """Return whether the entries of such a page only point to others: it is no tree of sections."""
    return kind in (PageKind.INDEX, PageKind.CONTENTS, PageKind.SEARCH)


def _count_nodes(tree: SectionNode) -> int:
    count = 0
    stack = [tree]
    while stack:
        node = stack.pop()
        count += 1
        stack += node.children
    return count


def compute_content_hash(content: Content, rules: SectionRules = DEFAULT_SECTION_RULES) -> str:
    """Return the hash that identifies a content, computed from all else that it has."""
    # Each field is preceded by its length, so that no two contents give the same bytes. The sections follow from the
    # rest as long as the readers stay the same; they are included so that a reader that learns to find more headings
    # creates a new content instead of matching the old one. What a content without places, or an ordinary page, does
    # not have is left out: the contents of older versions keep their hashes.
    fields = ["kept content 1", str(rules), content.title, content.markdown]
    for section in content.sections:
        anchor = "" if section.anchor is None else f"#{section.anchor}"
        fields += (f"{section.parent} {section.level}", section.heading, anchor, section.text)
        if section.entry or section.entries:
            fields += (section.entry, *[f"{name}\t{anchor}" for name, anchor in section.entries])
    if content.kind is not PageKind.PAGE:
        fields.append(f"kind {content.kind.value}")
    if content.places:
        fields.append(json.dumps(content.places))
    pieces: list[bytes] = []
    for text in fields:
        encoded = text.encode("utf-8", "surrogatepass")
        pieces.append(f"{len(encoded)}:".encode())
        pieces.append(encoded)
    return hashlib.sha256(b"".join(pieces)).hexdigest()


# ── Flattening ────────────────────────────────────────────────────────────────────────────────────────────────────────


def flatten_section_tree(root: SectionNode, rules: SectionRules) -> tuple[Section, ...]:
    """Return the sections of a tree in pre-order, numbered from 0, none longer than the rules allow."""
    return flatten_nodes(locate_nodes(root, "", (), rules), rules)


def flatten_nodes(nodes: Sequence[LocatedNode], rules: SectionRules) -> tuple[Section, ...]:
    """Return the sections of the nodes in pre-order, numbered from 0, none longer than the rules allow.

    A node without text is dropped if it has no children, and so is an empty root. The parts of a split node share its
    heading, level, anchor and parent; its children, and its named entries, become children of its first part.
    """
    sections: list[Section] = []
    firsts: list[int | None] = []  # for each node, its first section
    for node in nodes:
        parent = None if node.parent is None else firsts[node.parent]
        first = len(sections)
        for piece in node.pieces:
            _add_piece(sections, node.node, piece, parent, first, rules)
        if not node.pieces and node.node.children and node.parent is not None:
            _add_piece(sections, node.node, SectionPiece("", "", ()), parent, first, rules)
        firsts.append(None if node.parent is None else first)
    return tuple(sections)


def _add_piece(
    sections: list[Section], node: SectionNode, piece: SectionPiece, parent: int | None, first: int, rules: SectionRules
) -> None:
    heading, level, anchor = node.heading[:MAX_HEADING_LENGTH], node.level, node.anchor
    entry, entries = node.entry, piece.entries
    if piece.entry:
        heading, level = piece.entry[:MAX_HEADING_LENGTH], level + 1
        parent = first if first < len(sections) and node.level else None
        anchor = next((entry_anchor for _, entry_anchor in entries if entry_anchor), None) or anchor
        entry, entries = entries[0].name, entries[1:]
    for number, part in enumerate(split_text(piece.text, rules)):
        sections.append(
            Section(
                position=len(sections),
                parent=parent,
                level=level,
                heading=heading,
                anchor=anchor,
                text=part,
                entry=entry,
                entries=entries if number == 0 else (),
            )
        )
