"""Recognize reStructuredText by its marks, in files whose name does not tell: Django's manual is written in `.txt`."""

from __future__ import annotations

import re
from typing import Final

_SAMPLE_LENGTH: Final = 200_000
_DIRECTIVE: Final = re.compile(
    r"^[ \t]*\.\. (?:[a-zA-Z][\w:+.-]*::(?:[ \t]|$)|_[^\n:]{1,200}:[ \t\n]|\|[^|\n]+\| )", re.MULTILINE
)
_INLINE: Final = re.compile(r"(?<![`\w]):[a-zA-Z][\w:+.-]{0,40}:`[^`\n]|(?<!`)``[^`\n]+``(?!`)|[^`\n]`_[^\w]")
_UNDERLINED: Final = re.compile(r"^(?=\S)[^\n]{1,200}\n([=\-~^\"'`#*+.:])\1{2,}[ \t]*$", re.MULTILINE)
_OVERLINED: Final = re.compile(r"\s*(([=\-~^\"'`#*+.:])\2{2,})[ \t]*\n[ \t]*\S[^\n]{0,200}\n\1[ \t]*(?:\n|$)")
_MARKDOWN: Final = re.compile(r"^(?:#{1,6} \S|```|\[[^\]\n]+\]: )|\]\(http", re.MULTILINE)


def looks_like_rst(text: str) -> bool:
    """Return whether a text without a telling name is reStructuredText: it has its marks."""
    sample = text[:_SAMPLE_LENGTH]
    marks = 3 * len(_DIRECTIVE.findall(sample)) + len(_INLINE.findall(sample))
    titles = len(_UNDERLINED.findall(sample))
    if _OVERLINED.match(sample):
        marks += 3
    return (marks >= 6 or (marks >= 1 and titles >= 1)) and marks + titles > 2 * len(_MARKDOWN.findall(sample))
