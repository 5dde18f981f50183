"""What is inside one paragraph, heading or cell of Markdown: where its links lead, and its words without markup.

    links_in    the links, in one pass, however the brackets are nested
    plain       the words, as a browser would show them

Links are found here rather than by markdown-it-py: it makes a tree of everything in the paragraph first, in ten times
the time, or, for a paragraph of nothing but brackets, in the square of it. `tests/unit/test_markdown.py` holds the two
against each other.
"""

from __future__ import annotations

import html
import re
from bisect import bisect_right
from collections.abc import Mapping
from functools import cache

from markdown_it import MarkdownIt
from markdown_it.common.utils import normalizeReference, unescapeAll

# ── Links ────────────────────────────────────────────────────────────────────────────────────────────────────────────

# Everything that can begin, end or hide a link. No expression in this file can backtrack over what it has read.
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

# In Chinese and Japanese nothing separates a bare URL from the sentence around it but their own punctuation.
_BARE_URL = re.compile(r"[^\s<>\"`\[\]\u3000-\u303f\uff01-\uff65]++")
_MAX_BARE_URL_LENGTH = 2_048
_ENTITY_AT_END = re.compile(r"&[A-Za-z0-9]{1,32};$")
_MAX_PUNCTUATION_PASSES = 20

_MAX_OPEN_BRACKETS = 64  # brackets inside each other; the outermost of more than that are not links


class _Bracket:
    """An opened [ or ![ that may become a link when its ] comes."""

    __slots__ = ("can_be_link", "has_inner", "is_image", "links_before", "start")

    def __init__(self, start: int, is_image: bool, links_before: int) -> None:
        self.start = start  # of the words inside
        self.is_image = is_image
        self.links_before = links_before
        self.has_inner = False
        self.can_be_link = True  # a link cannot hold another one: when the inner one is found the outer ones are none


def find_links(source: str, definitions: Mapping[str, str], *, is_html: bool = False) -> list[str]:
    """Where the links of this paragraph lead, in its order, as it has them: relative ones relative, images not.

    With `is_html`, those of a block of HTML, where only tags count.
    """
    found: list[str] = []
    brackets: list[_Bracket] = []
    code: _CodeSpans | None = None
    unending: set[str] = set()  # what is known not to come any more
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
            at = _after_angle(source, begin, found, unending)
        elif first == "[" or first == "!":
            if len(brackets) >= _MAX_OPEN_BRACKETS:
                del brackets[0]
            brackets.append(_Bracket(at, first == "!", len(found)))
        elif first == "]":
            if brackets:
                at = _after_bracket(source, begin, brackets, definitions, found)
        else:
            at = _after_bare_url(source, begin, found)
    return found


class _CodeSpans:
    """Where code spans end. A run of backticks that opens one ends it: looking for it each time would be quadratic."""

    def __init__(self, source: str) -> None:
        self.runs: dict[int, list[int]] = {}
        for run in re.finditer("`+", source):
            self.runs.setdefault(run.end() - run.start(), []).append(run.start())

    def end_of(self, begin: int, after: int) -> int:
        """Behind the code span whose opening backticks these are; or behind them, if nothing closes it."""
        length = after - begin
        runs = self.runs.get(length, [])
        closing = bisect_right(runs, begin)
        return runs[closing] + length if closing < len(runs) else after


def _after_angle(source: str, begin: int, found: list[str], unending: set[str]) -> int:
    autolink = _AUTOLINK.match(source, begin)
    if autolink:
        found.append(autolink[1])
        return autolink.end()
    if hides := _COMMENT_START.match(source, begin):
        closing = _COMMENT_ENDS[hides.lastindex or 0]
        end = -1 if closing in unending else source.find(closing, hides.end())
        if end >= 0:
            return end + len(closing)
        unending.add(closing)
        return begin + 1
    tag = _TAG.match(source, begin)
    if not tag:
        return begin + 1
    href = _HREF.search(tag[0])
    if href and not tag[0].lower().startswith(_TAGS_WITHOUT_LINK):
        target = html.unescape(href[1] or href[2] or href[3] or "").strip()
        if target:
            found.append(target)
    return tag.end()


def _after_bracket(
    source: str, end: int, brackets: list[_Bracket], definitions: Mapping[str, str], found: list[str]
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
    del found[bracket.links_before :]  # the words of a link hold none, and neither does an image
    if not bracket.is_image:
        if target:
            found.append(target)
        for outer in brackets:
            outer.can_be_link &= outer.is_image
    return after


def _after_bare_url(source: str, begin: int, found: list[str]) -> int:
    match = _BARE_URL.match(source, begin)
    if not match:
        return begin + 1
    url = match[0]
    if len(url) <= _MAX_BARE_URL_LENGTH:
        url = _strip_trailing_punctuation(url)
        if url.startswith("www."):
            url = f"http://{url}"
        if url.partition("://")[2].strip("/"):  # 'http://' alone is no link, and neither is 'www'
            found.append(url)
    return match.end()


def _strip_trailing_punctuation(url: str) -> str:
    """The URL without the punctuation of the sentence that it stands in, as GitHub sees it."""
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


# ── Words ────────────────────────────────────────────────────────────────────────────────────────────────────────────

_MARKUP = re.compile(r"[\\*\[\]<&~`]|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_CODE = re.compile(r"(?<!`)(`{1,3})(?!`)(.{1,200}?)(?<!`)\1(?!`)", re.DOTALL)
_ROUGHLY_MARKUP = re.compile(r"[\\*`~\[\]]|<[^<>]{0,200}>|\([^()]{0,200}\)")


def plain_text(source: str) -> str:
    """The words of a heading: no markup, no tags, no images; what is in code is as it stands there."""
    if not _MARKUP.search(source):
        return source.replace("\n", " ")
    if "`" in source and "\\" not in source and not _MARKUP.search(_CODE.sub("", source)):
        return _CODE.sub(_code_span_text, source).replace("\n", " ")
    words: list[str] = []
    pictures: list[str] = []
    for token in _inline_parser().parseInline(source)[0].children or ():
        match token.type:
            case "text" | "code_inline":
                words.append(token.content)
            case "softbreak" | "hardbreak":
                words.append(" ")
            case "html_inline" if token.content[:3].lower() == "<br":
                words.append(" ")
            case "image":
                pictures.append(token.content)
    said = "".join(words)
    return said if said.strip() else " ".join(pictures)


def approximate_plain_text(source: str) -> str:
    """The same for whoever cannot wait: what looks like markup is taken away."""
    return _ROUGHLY_MARKUP.sub("", source).replace("\n", " ")


def _code_span_text(span: re.Match[str]) -> str:
    code = span[2]
    if code[0] == code[-1] == " " and code.strip():
        return code[1:-1]
    return code


@cache
def _inline_parser() -> MarkdownIt:
    return MarkdownIt("commonmark").enable("strikethrough")
