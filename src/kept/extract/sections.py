"""Headings become a tree of sections, and the tree becomes a list of sections, none too long, under one hash.

    SectionNode            a node of the tree, as the readers build it
    build_section_tree     nests a reader's sections by heading level
    flatten_section_tree   numbers the nodes and splits the long ones (section_splitter)
    build_content          title, markdown and tree -> Content

A section's text is the page's own Markdown, including its heading line: the sections of a page, joined, are the whole
page. Everything here takes time linear in the text, whatever the text is.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field

from kept.extract.section_splitter import DEFAULT_SECTION_RULES, SectionRules, split_text, strip_blank_lines
from kept.model.document import SECTIONS_PER_CONTENT, Content, Section, Unreadable
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

MAX_HEADING_LENGTH = 300
"""Characters. Every part of a split section repeats its heading, so headings are cut to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionNode:
    """A heading, the text under it, and the nodes below it. The root holds the text before the first heading."""

    heading: str = ""  # plain text, no markup
    level: int = 0
    anchor: str | None = None
    content: str = ""  # Markdown, including the heading line
    children: list[SectionNode] = field(default_factory=list)


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


# ── Tree and hash ─────────────────────────────────────────────────────────────────────────────────────────────────────


def build_section_tree(nodes: Iterable[SectionNode], intro: str = "") -> SectionNode:
    """Return a root over the nodes, each below the nearest node before it with a smaller level."""
    root = SectionNode(content=intro)
    path = [root]
    for node in nodes:
        while len(path) > 1 and path[-1].level >= node.level:
            path.pop()
        path[-1].children.append(node)
        path.append(node)
    return root


def build_content(title: str, markdown: str, tree: SectionNode, rules: SectionRules) -> Content:
    """Return the content with its sections and the hash over it and the rules."""
    # A page with too many headings for the limit of sections is split as one text.
    if _count_nodes(tree) + 2 * len(markdown) // rules.target_characters >= SECTIONS_PER_CONTENT:
        tree = SectionNode(content=markdown)
    sections = flatten_section_tree(tree, rules)
    return Content(
        hash=compute_content_hash(title, markdown, sections, rules),
        title=title,
        markdown=markdown,
        sections=sections,
        index_fields=build_index_fields(title, sections),
    )


def _count_nodes(tree: SectionNode) -> int:
    count = 0
    stack = [tree]
    while stack:
        node = stack.pop()
        count += 1
        stack += node.children
    return count


def compute_content_hash(
    title: str, markdown: str, sections: tuple[Section, ...], rules: SectionRules = DEFAULT_SECTION_RULES
) -> str:
    """Return the hash that identifies a content."""
    # Each field is preceded by its length, so that no two contents give the same bytes. The sections follow from the
    # rest as long as the readers stay the same; they are included so that a reader that learns to find more headings
    # creates a new content instead of matching the old one.
    fields = ["kept content 1", str(rules), title, markdown]
    for section in sections:
        anchor = "" if section.anchor is None else f"#{section.anchor}"
        fields += (f"{section.parent} {section.level}", section.heading, anchor, section.text)
    pieces: list[bytes] = []
    for text in fields:
        encoded = text.encode("utf-8", "surrogatepass")
        pieces.append(f"{len(encoded)}:".encode())
        pieces.append(encoded)
    return hashlib.sha256(b"".join(pieces)).hexdigest()


# ── Flattening ────────────────────────────────────────────────────────────────────────────────────────────────────────


def flatten_section_tree(root: SectionNode, rules: SectionRules) -> tuple[Section, ...]:
    """Return the sections of the tree in pre-order, numbered from 0, none longer than the rules allow.

    A node without text is dropped if it has no children, and so is an empty root. The parts of a split node share its
    heading, level, anchor and parent; its children become children of its first part.
    """
    sections: list[Section] = []
    stack: list[tuple[SectionNode, int | None]] = [(root, None)]
    while stack:
        node, parent = stack.pop()
        first = len(sections)
        text = strip_blank_lines(node.content)
        if text or (node.children and node is not root):
            heading = node.heading[:MAX_HEADING_LENGTH]
            for part in split_text(text, rules):
                sections.append(
                    Section(
                        position=len(sections),
                        parent=parent,
                        level=node.level,
                        heading=heading,
                        anchor=node.anchor,
                        text=part,
                    )
                )
        child_parent = None if node is root else first
        stack += [(child, child_parent) for child in reversed(node.children)]
    return tuple(sections)
