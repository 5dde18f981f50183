"""The outline of a Markdown text: its headings, and the pieces of it that may hold links.

Outline               the result, also of commonmark.parse_outline
parse_line_outline    the outline of a text that is too large or too complex to be parsed, by its lines alone
"""

import re
from dataclasses import dataclass, field
from typing import NamedTuple

from markdown_it.common.utils import normalizeReference

# A page with more headings is generated data: the rest of it becomes the text of the last heading.
MAX_HEADINGS = 100_000


class MarkdownHeading(NamedTuple):
    start: int  # offset of its first line
    level: int
    source: str  # its text, with markup


class LinkableText(NamedTuple):
    """A paragraph, a heading, a cell or a block of HTML that may hold links."""

    source: str
    is_html: bool


@dataclass(slots=True)
class Outline:
    headings: list[MarkdownHeading] = field(default_factory=list)  # not those in lists and quotations
    linkable_texts: list[LinkableText] = field(default_factory=list)
    definitions: dict[str, str] = field(default_factory=dict)  # normalized label -> target

    @property
    def is_full(self) -> bool:
        return len(self.headings) >= MAX_HEADINGS

    def add_if_linkable(self, text: str) -> None:
        """Add the text if it may hold links."""
        if "[" in text or "<" in text or "://" in text or "www." in text:
            self.linkable_texts.append(LinkableText(text, is_html=False))


# ── By lines ──────────────────────────────────────────────────────────────────────────────────────────────────────────

_LANDMARK = re.compile(
    r"^ {0,3}(?:(?P<marks>#{1,6})(?:[ \t]+(?P<words>[^\n]*))?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|\[(?P<label>[^\[\]\n]{1,999})\]:[ \t]*(?P<target>[^\s<]\S*|<[^<>\n]*>)[^\n]*"
    r"|(?!\d+[.)]\s)(?P<title>[^\s#>|<*+=-][^\n]*)\n(?P<line>={3,}|-{3,})[ \t]*)$",
    re.MULTILINE,
)
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_CLOSING_MARKS = re.compile(r"[ \t]+#+[ \t]*$")


def parse_line_outline(text: str) -> Outline:
    """Return headings outside of fenced code, link definitions, and all other text outside of it as paragraphs."""
    outline = Outline()
    fence = ""
    prose_from = 0
    for match in _LANDMARK.finditer(text):
        begin = match.start()
        if mark := match["fence"]:
            if not fence and not (mark[0] == "`" and "`" in match["info"]):
                fence = mark
                _add_paragraphs(text, prose_from, begin, outline)
            elif fence and mark[0] == fence[0] and len(mark) >= len(fence) and not match["info"].strip():
                fence = ""
                prose_from = match.end()
        elif fence or outline.is_full:
            continue
        elif match["marks"]:
            words = _CLOSING_MARKS.sub("", " " + (match["words"] or "")).strip()
            outline.headings.append(MarkdownHeading(begin, len(match["marks"]), words))
        elif match["title"]:
            words = match["title"].strip()
            outline.headings.append(MarkdownHeading(begin, 1 if match["line"][0] == "=" else 2, words))
        else:
            label = normalizeReference(match["label"])
            if not is_footnote(label):
                outline.definitions.setdefault(label, match["target"].strip("<>"))
    if not fence:
        _add_paragraphs(text, prose_from, len(text), outline)
    return outline


def is_footnote(label: str) -> bool:
    return label[:1] == "^"


def _add_paragraphs(text: str, start: int, end: int, outline: Outline) -> None:
    for gap in _BLANK_LINES.finditer(text, start, end):
        outline.add_if_linkable(text[start : gap.start()])
        start = gap.end()
    outline.add_if_linkable(text[start:end])
