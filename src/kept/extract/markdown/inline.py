"""The links and the plain text of one paragraph, heading or table cell of Markdown.

    find_links    the targets of links, in one pass, however the brackets are nested
    plain_text    the text without markup, as a browser would show it

markdown-it-py does not find the links, because it parses the whole paragraph into tokens: reading would take five
times as long, and quadratic time for a paragraph of brackets (docs/decisions/0027). `tests/unit/test_markdown.py`
compares the results.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference, unescapeAll

# ── Links ─────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Everything that can begin, end or hide a link. No pattern in this module can backtrack over what it has matched.
_NEXT_MARKUP = re.compile(r"\\[!-/:-@\[-`{-~]|`+|<|!?\[|\]|(?<![A-Za-z0-9])(?:https?://|www\.)")
_NEXT_TAG = re.compile("<")

_AUTOLINK = re.compile(r"<([A-Za-z][A-Za-z0-9+.-]{1,31}:[^\s<>\x00-\x1f]*+)>")
_TAG = re.compile(
    r"</?[A-Za-z][A-Za-z0-9.-]*+"
    r"(?:\s++[A-Za-z_:@.#][\w:.@-]*+(?:\s*+=\s*+(?:[^\s\"'=<>`]++|'[^']*+'|\"[^\"]*+\"))?+)*+\s*+/?>",
    re.ASCII,
)
_HREF = re.compile(r"\shref\s*+=\s*+(?:\"([^\"]*+)\"|'([^']*+)'|([^\s\"'=<>`{]++))", re.ASCII | re.IGNORECASE)
_TAGS_WITHOUT_LINK = ("<link", "<base")
_COMMENT_START = re.compile(r"(<!--)|(<\?)|(<!\[CDATA\[)|(<![A-Za-z])")
_COMMENT_ENDS = ("", "-->", "?>", "]]>", ">")

_IN_TARGET = r"[^\s\\()\x00-\x1f\x7f]|\\\S"
_TARGET = re.compile(
    rf"\(\s*+(?:<((?:[^<>\\\n]|\\.)*+)>|(?!<)((?:{_IN_TARGET}|\((?:{_IN_TARGET}|\((?:{_IN_TARGET})*+\))*+\))*+))"
    r"(?:\s++(?:\"(?:[^\"\\]|\\.)*+\"|'(?:[^'\\]|\\.)*+'|\((?:[^()\\]|\\.)*+\)))?+\s*+\)",
    re.ASCII | re.DOTALL,
)
_LABEL = re.compile(r"\[((?:[^\[\]\\]|\\.){0,999}+)\]", re.DOTALL)
_MAX_LABEL_LENGTH = 999

# In Chinese and Japanese only punctuation separates a bare URL from the sentence around it.
_BARE_URL = re.compile(r"[^\s<>\"`\[\]\u3000-\u303f\uff01-\uff65]++")
_MAX_BARE_URL_LENGTH = 2_048
_ENTITY_AT_END = re.compile(r"&[A-Za-z0-9]{1,32};$")
_MAX_PUNCTUATION_PASSES = 20

_MAX_OPEN_BRACKETS = 64  # nested brackets; of more than that, the outermost are not links


class _Bracket:
    """An opened [ or ![ that may become a link when its ] comes."""

    __slots__ = ("can_be_link", "has_inner", "is_image", "links_before", "start")

    def __init__(self, start: int, is_image: bool, links_before: int) -> None:
        self.start = start  # of the text inside
        self.is_image = is_image
        self.links_before = links_before
        self.has_inner = False
        self.can_be_link = True  # links do not nest: an inner one makes it False


def find_links(source: str, definitions: Mapping[str, str], *, is_html: bool = False) -> list[str]:
    """Return the targets of the links in a paragraph, in its order and unresolved, without images.

    With `is_html`, those of an HTML block, where only tags count.
    """
    targets: list[str] = []
    brackets: list[_Bracket] = []
    code: _CodeSpans | None = None
    missing_ends: set[str] = set()  # ends of comments that do not occur any more
    search = (_NEXT_TAG if is_html else _NEXT_MARKUP).search
    at = 0
    while match := search(source, at):
        begin, at = match.span()
        first = source[begin]
        if first == "\\":
            continue
        if first == "`":
            code = code or _CodeSpans(source)
            at = code.end_of(begin, at)
        elif first == "<":
            at = _after_angle(source, begin, targets, missing_ends)
        elif first == "[" or first == "!":
            if len(brackets) >= _MAX_OPEN_BRACKETS:
                del brackets[0]
            brackets.append(_Bracket(at, first == "!", len(targets)))
        elif first == "]":
            if brackets:
                at = _after_bracket(source, begin, brackets, definitions, targets)
        else:
            at = _after_bare_url(source, begin, targets)
    return targets


class _CodeSpans:
    """The runs of backticks in a paragraph by length, so that finding the end of each code span is not quadratic."""

    def __init__(self, source: str) -> None:
        self.starts_by_length: dict[int, list[int]] = {}
        for run in re.finditer("`+", source):
            self.starts_by_length.setdefault(run.end() - run.start(), []).append(run.start())

    def end_of(self, begin: int, after: int) -> int:
        """Return the end of the code span that these backticks open, or their own end if nothing closes it."""
        length = after - begin
        runs = self.starts_by_length.get(length, [])
        closing = bisect_right(runs, begin)
        return runs[closing] + length if closing < len(runs) else after


def _after_angle(source: str, begin: int, targets: list[str], missing_ends: set[str]) -> int:
    autolink = _AUTOLINK.match(source, begin)
    if autolink:
        targets.append(autolink[1])
        return autolink.end()
    if hides := _COMMENT_START.match(source, begin):
        closing = _COMMENT_ENDS[hides.lastindex or 0]
        end = -1 if closing in missing_ends else source.find(closing, hides.end())
        if end >= 0:
            return end + len(closing)
        missing_ends.add(closing)
        return begin + 1
    tag = _TAG.match(source, begin)
    if not tag:
        return begin + 1
    href = _HREF.search(tag[0])
    if href and not tag[0].lower().startswith(_TAGS_WITHOUT_LINK):
        target = html.unescape(href[1] or href[2] or href[3] or "").strip()
        if target:
            targets.append(target)
    return tag.end()


def _after_bracket(
    source: str, end: int, brackets: list[_Bracket], definitions: Mapping[str, str], targets: list[str]
) -> int:
    bracket = brackets.pop()
    if brackets:
        brackets[-1].has_inner = True
    after = end + 1
    if not bracket.can_be_link:
        return after
    target: str | None = None
    if inline := _TARGET.match(source, after):
        target = unescapeAll(inline[1] if inline[1] is not None else inline[2])
        after = inline.end()
    elif definitions:
        label = _LABEL.match(source, after)
        if label and label[1].isspace():
            label = None
        if label and label[1]:
            target = definitions.get(normalizeReference(label[1]))
        elif not bracket.has_inner and end - bracket.start <= _MAX_LABEL_LENGTH:
            target = definitions.get(normalizeReference(source[bracket.start : end]))
        if target is not None and label:
            after = label.end()
    if target is None:
        return after
    del targets[bracket.links_before :]  # links do not nest, nor does an image hold one
    if not bracket.is_image:
        if target:
            targets.append(target)
        for outer in brackets:
            outer.can_be_link &= outer.is_image
    return after


def _after_bare_url(source: str, begin: int, targets: list[str]) -> int:
    match = _BARE_URL.match(source, begin)
    if not match:
        return begin + 1
    url = match[0]
    if len(url) <= _MAX_BARE_URL_LENGTH:
        url = _strip_trailing_punctuation(url)
        if url.startswith("www."):
            url = f"http://{url}"
        if url.partition("://")[2].strip("/"):  # 'http://' alone is no link, and neither is 'www'
            targets.append(url)
    return match.end()


def _strip_trailing_punctuation(url: str) -> str:
    """Return the URL without the punctuation of the sentence around it, as GitHub does."""
    for _ in range(_MAX_PUNCTUATION_PASSES):
        shorter = url.rstrip("?!.,:*_~'")
        if shorter.endswith(")"):
            closed = shorter.rstrip(")")
            unopened = max(0, shorter.count(")") - shorter.count("("))
            shorter = shorter[: max(len(closed), len(shorter) - unopened)]
        elif shorter.endswith(";"):
            entity = _ENTITY_AT_END.search(shorter)
            shorter = shorter[: entity.start()] if entity else shorter[:-1]
        if shorter == url:
            break
        url = shorter
    return url


# ── Plain text ────────────────────────────────────────────────────────────────────────────────────────────────────────

_MARKUP = re.compile(r"[\\*\[\]<&~`]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,200}?)(?<!`)\1(?!`)", re.DOTALL)
_ROUGHLY_MARKUP = re.compile(r"[\\*`~\[\]]|<[^<>]{0,200}>|\([^()]{0,200}\)")


def plain_text(source: str) -> str:
    """Return the text of a heading without markup, tags and images; code is verbatim."""
    if not _MARKUP.search(source):
        return source.replace("\n", " ")
    if "`" in source and "\\" not in source and not _MARKUP.search(_CODE.sub("", source)):
        return _CODE.sub(_code_span_text, source).replace("\n", " ")
    pieces: list[str] = []
    images: list[str] = []
    for token in _inline_parser().parseInline(source)[0].children or ():
        match token.type:
            case "text" | "code_inline":
                pieces.append(token.content)
            case "softbreak" | "hardbreak":
                pieces.append(" ")
            case "html_inline" if token.content[:3].lower() == "<br":
                pieces.append(" ")
            case "image":
                images.append(token.content)
    text = "".join(pieces)
    return text if text.strip() else " ".join(images)


def approximate_plain_text(source: str) -> str:
    """Return nearly the same, faster: remove everything that looks like markup."""
    return _ROUGHLY_MARKUP.sub("", source).replace("\n", " ")


def _code_span_text(span: re.Match[str]) -> str:
    code = span[2]
    if code[0] == code[-1] == " " and code.strip():
        return code[1:-1]
    return code


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("strikethrough")
