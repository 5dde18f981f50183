"""What is looked for in a Markdown text: its headings, and the pieces of it that may hold links."""

from dataclasses import dataclass, field
from typing import NamedTuple

# A page with more headings than this was made by a program, for programs: the rest of it is the last one's text.
MAX_HEADINGS = 100_000


class MarkdownHeading(NamedTuple):
    start: int  # the offset of its first line
    level: int
    source: str  # its words, with their markup


class LinkableText(NamedTuple):
    """A paragraph, a heading, a cell or a block of HTML that may hold links."""

    source: str
    is_html: bool


@dataclass(slots=True)
class Outline:
    headings: list[MarkdownHeading] = field(
        default_factory=list
    )  # those of the text itself, not of its lists and quotations
    linkable_texts: list[LinkableText] = field(default_factory=list)
    definitions: dict[str, str] = field(default_factory=dict)  # [label]: where it leads; by normalised label

    @property
    def is_full(self) -> bool:
        return len(self.headings) >= MAX_HEADINGS

    def add_if_linkable(self, words: str) -> None:
        """The words, if they may hold links."""
        if "[" in words or "<" in words or "://" in words or "www." in words:
            self.linkable_texts.append(LinkableText(words, is_html=False))
