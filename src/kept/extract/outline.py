"""What is looked for in a Markdown text: its headings, and the pieces of it that may hold links."""

from dataclasses import dataclass, field
from typing import NamedTuple

# A page with more headings than this was made by a program, for programs: the rest of it is the last one's text.
MOST_HEADINGS = 100_000


class Heading(NamedTuple):
    start: int  # the offset of its first line
    level: int
    source: str  # its words, with their markup


class Piece(NamedTuple):
    """A paragraph, a heading, a cell or a block of HTML that may hold links."""

    source: str
    is_html: bool


@dataclass(slots=True)
class Outline:
    headings: list[Heading] = field(default_factory=list)  # those of the text itself, not of its lists and quotations
    pieces: list[Piece] = field(default_factory=list)
    definitions: dict[str, str] = field(default_factory=dict)  # [label]: where it leads; by normalised label

    @property
    def is_full(self) -> bool:
        return len(self.headings) >= MOST_HEADINGS

    def keep(self, words: str) -> None:
        """The words, if they may hold links."""
        if "[" in words or "<" in words or "://" in words or "www." in words:
            self.pieces.append(Piece(words, is_html=False))
