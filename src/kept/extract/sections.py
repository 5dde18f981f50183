"""A page becomes a tree of sections, and the tree becomes rows: numbered, none too long, behind one hash.

    SectionData            a node of the tree, as the readers build it
    tree_of                nests what a reader found, in the order of the page, by heading level
    flatten_section_tree   numbers the nodes and splits the long ones (splitting)
    content_of             title, markdown and tree -> Content

A section's text is the page's own Markdown, its heading line included: the sections of a page, one after the other,
say everything that the page says. Everything here takes time in proportion to the text, whatever the text is.
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
"""Characters. Every part of a split section repeats its heading, so a heading of a megabyte must not be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionNode:
    """A heading, what stands under it, and the headings below it. The root stands for what comes before any heading."""

    heading: str = ""  # plain words, no markup
    level: int = 0
    anchor: str | None = None
    content: str = ""  # Markdown, heading line included
    children: list[SectionNode] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extraction:
    """What a reader found in the bytes of one page."""

    title: str
    markdown: str
    tree: SectionNode
    hrefs: list[str] = field(default_factory=list)  # as the page has them, in its order
    base_href: str | None = None  # what they are relative to, where the page says so itself: its <base>
    is_js_shell: bool = False  # nothing to read before its scripts have run
    alternate_hrefs: list[str] = field(default_factory=list)  # where it says the same in another form
    canonical: str | None = None  # where it says it really is
    moved_to: str | None = None  # where it sends its reader at once, having next to nothing to say itself
    robots_directives: RobotsDirectives = RobotsDirectives()


# ── The tree, and the hash over it ───────────────────────────────────────────────────────────────────────────────────


def build_section_tree(nodes: Iterable[SectionNode], intro: str = "") -> SectionNode:
    """The root over the nodes: each one goes below the nearest node before it that has a smaller level."""
    root = SectionNode(content=intro)
    above = [root]
    for node in nodes:
        while len(above) > 1 and above[-1].level >= node.level:
            above.pop()
        above[-1].children.append(node)
        above.append(node)
    return root


def build_content(title: str, markdown: str, tree: SectionNode, rules: SectionRules) -> Content:
    """The content, its sections, and the hash that stands for all of it and for the rules that made it."""
    # So many headings that their numbers could run out is no outline any more: such a page is split as one text.
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
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node.children
    return count


def compute_content_hash(
    title: str, markdown: str, sections: tuple[Section, ...], rules: SectionRules = DEFAULT_SECTION_RULES
) -> str:
    """What stands for a content: nothing else has this hash."""
    # Each field is preceded by its length, so that no two contents can run together into the same bytes. The sections
    # follow from the rest as long as the readers stay the same; they are covered so that a reader which learns to see
    # more headings makes a new content instead of finding the old one.
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


# ── Flattening ───────────────────────────────────────────────────────────────────────────────────────────────────────


def flatten_section_tree(root: SectionNode, rules: SectionRules) -> tuple[Section, ...]:
    """The sections of the tree in pre-order, numbered from 0; none longer than the rules allow.

    A node without words of its own is dropped if nothing is below it, and so is an empty root: the first headings
    have no parent. The parts of a split node share its heading, level, anchor and parent, and what is below the node
    is below its first part.
    """
    sections: list[Section] = []
    waiting: list[tuple[SectionNode, int | None]] = [(root, None)]
    while waiting:
        node, parent = waiting.pop()
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
        below = None if node is root else first
        waiting += [(child, below) for child in reversed(node.children)]
    return tuple(sections)
