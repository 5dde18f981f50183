"""The tree of a page's headings, as the readers build it.

SectionNode            a heading, the text under it, and what is below it
build_section_tree     nests a reader's sections by heading level
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

MAX_HEADING_LENGTH = 300
"""Characters. Every part of a split section repeats its heading, so headings are cut to this."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SectionNode:
    """A heading, the text under it, and the nodes below it. The root holds the text before the first heading."""

    heading: str = ""  # plain text, no markup
    level: int = 0
    anchor: str | None = None
    content: str = ""  # Markdown, including the heading line
    entry: str = ""  # its name as written, if it is a named entry (an option, a function) and no heading
    children: list[SectionNode] = field(default_factory=list)


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
