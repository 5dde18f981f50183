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

from kept.extract.splitting import DEFAULT_RULES, SectionRules, split, without_blank_ends
from kept.model.document import SECTIONS_PER_CONTENT, Content, Section, Unreadable
from kept.model.indexing import words_of
from kept.model.wishes import Wishes

__all__ = [
    "DEFAULT_RULES",
    "LONGEST_HEADING",
    "Extracted",
    "SectionData",
    "SectionRules",
    "Unreadable",
    "content_of",
    "flatten_section_tree",
    "hash_of",
    "split",
    "tree_of",
]

LONGEST_HEADING = 300
"""Characters. Every part of a split section repeats its heading, so a heading of a megabyte must not be one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionData:
    """A heading, what stands under it, and the headings below it. The root stands for what comes before any heading."""

    heading: str = ""  # plain words, no markup
    level: int = 0
    anchor: str | None = None
    content: str = ""  # Markdown, heading line included
    children: list[SectionData] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Extracted:
    """What a reader found in the bytes of one page."""

    title: str
    markdown: str
    tree: SectionData
    hrefs: list[str] = field(default_factory=list)  # as the page has them, in its order
    base: str | None = None  # what they are relative to, where the page says so itself: its <base>
    is_shell: bool = False  # nothing to read before its scripts have run
    copies: list[str] = field(default_factory=list)  # where it says the same in another form
    canonical: str | None = None  # where it says it really is
    moved_to: str | None = None  # where it sends its reader at once, having next to nothing to say itself
    wishes: Wishes = Wishes()


# ── The tree, and the hash over it ───────────────────────────────────────────────────────────────────────────────────


def tree_of(nodes: Iterable[SectionData], before: str = "") -> SectionData:
    """The root over the nodes: each one goes below the nearest node before it that has a smaller level."""
    root = SectionData(content=before)
    above = [root]
    for node in nodes:
        while len(above) > 1 and above[-1].level >= node.level:
            above.pop()
        above[-1].children.append(node)
        above.append(node)
    return root


def content_of(title: str, markdown: str, tree: SectionData, rules: SectionRules) -> Content:
    """The content, its sections, and the hash that stands for all of it and for the rules that made it."""
    # So many headings that their numbers could run out is no outline any more: such a page is split as one text.
    if _count(tree) + 2 * len(markdown) // rules.target_characters >= SECTIONS_PER_CONTENT:
        tree = SectionData(content=markdown)
    sections = flatten_section_tree(tree, rules)
    return Content(
        hash=hash_of(title, markdown, sections, rules),
        title=title,
        markdown=markdown,
        sections=sections,
        words=words_of(title, sections),
    )


def _count(tree: SectionData) -> int:
    count = 0
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        count += 1
        waiting += node.children
    return count


def hash_of(title: str, markdown: str, sections: tuple[Section, ...], rules: SectionRules = DEFAULT_RULES) -> str:
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


def flatten_section_tree(root: SectionData, rules: SectionRules) -> tuple[Section, ...]:
    """The sections of the tree in pre-order, numbered from 0; none longer than the rules allow.

    A node without words of its own is dropped if nothing is below it, and so is an empty root: the first headings
    have no parent. The parts of a split node share its heading, level, anchor and parent, and what is below the node
    is below its first part.
    """
    sections: list[Section] = []
    waiting: list[tuple[SectionData, int | None]] = [(root, None)]
    while waiting:
        node, parent = waiting.pop()
        first = len(sections)
        text = without_blank_ends(node.content)
        if text or (node.children and node is not root):
            heading = node.heading[:LONGEST_HEADING]
            for part in split(text, rules):
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
