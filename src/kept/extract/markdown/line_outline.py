"""The outline of a text that is too large or too intricate to be parsed, in one pass over its lines."""

import re

from markdown_it.common.utils import normalizeReference

from kept.extract.markdown.outline import MarkdownHeading, Outline

_LANDMARK = re.compile(
    r"^ {0,3}(?:(?P<marks>#{1,6})(?:[ \t]+(?P<words>[^\n]*))?|(?P<fence>`{3,}|~{3,})(?P<info>[^\n]*)"
    r"|\[(?P<label>[^\[\]\n]{1,999})\]:[ \t]*(?P<target>[^\s<]\S*|<[^<>\n]*>)[^\n]*"
    r"|(?!\d+[.)]\s)(?P<title>[^\s#>|<*+=-][^\n]*)\n(?P<line>={3,}|-{3,})[ \t]*)$",
    re.MULTILINE,
)
_BLANK_LINES = re.compile(r"\n[ \t]*\n")
_CLOSING_MARKS = re.compile(r"[ \t]+#+[ \t]*$")


def parse_line_outline(text: str) -> Outline:
    """What can be told from single lines: headings that are not in fenced code, definitions, and the rest as prose."""
    found = Outline()
    fence = ""
    prose_from = 0
    for match in _LANDMARK.finditer(text):
        begin = match.start()
        if mark := match["fence"]:
            if not fence and not (mark[0] == "`" and "`" in match["info"]):
                fence = mark
                _add_paragraphs(text, prose_from, begin, found)
            elif fence and mark[0] == fence[0] and len(mark) >= len(fence) and not match["info"].strip():
                fence = ""
                prose_from = match.end()
        elif fence or found.is_full:
            continue
        elif match["marks"]:
            words = _CLOSING_MARKS.sub("", " " + (match["words"] or "")).strip()
            found.headings.append(MarkdownHeading(begin, len(match["marks"]), words))
        elif match["title"]:
            words = match["title"].strip()
            found.headings.append(MarkdownHeading(begin, 1 if match["line"][0] == "=" else 2, words))
        else:
            label = normalizeReference(match["label"])
            if label[:1] != "^":  # that is a footnote
                found.definitions.setdefault(label, match["target"].strip("<>"))
    if not fence:
        _add_paragraphs(text, prose_from, len(text), found)
    return found


def _add_paragraphs(text: str, start: int, end: int, found: Outline) -> None:
    for gap in _BLANK_LINES.finditer(text, start, end):
        found.add_if_linkable(text[start : gap.start()])
        start = gap.end()
    found.add_if_linkable(text[start:end])
