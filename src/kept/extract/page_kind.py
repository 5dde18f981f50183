"""Recognise the kind of a page by its structure: how much of it is links, what its headings are, how long it is.

A title alone decides nothing: a page called "Index" that explains what an index is has few links.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final, NamedTuple

from kept.extract.section_nodes import SectionNode
from kept.model.document import PageKind

MIN_LINKS: Final = 8
MAX_CHARACTERS_PER_LINK: Final = 260
"""A page with fewer links for its length is no list of links."""

_LINK: Final = re.compile(r"\[([^\[\]\n]*(?:\[[^\[\]\n]*\][^\[\]\n]*)*)\]\((<[^<>\n]*>|[^()\s]*)\)")
_MARKUP: Final = re.compile(r"[\s`*_#|>.,;:()\[\]\\~–—-]+|<br>")
_INDEX_TITLE: Final = re.compile(
    r"\bindex(?:es)?\b|\ball (?:classes|packages|items|functions|symbols)|class hierarchy|member list|list of all"
    r"|\bkeyword|\b(?:class|file|namespace|directive|module) (?:list|index|members|quick)|quick.?reference"
    r"|overview: module code|\b(?:globals|data fields|data structures)\b",
    re.IGNORECASE,
)
_USES_TITLE: Final = re.compile(  # of javadoc: these lists have descriptions, and an order of their own
    r"^hierarchy for |^uses of (?:package|class|interface|enum|annotation|record)\b"
    r"|^(?:constant field values|serialized form|deprecated api|deprecated list)$",
    re.IGNORECASE,
)
_LINK_LINE: Final = re.compile(r"^[ >]*(?:[-*+] |\d+[.)] |\| )?[ *`\d.]*\[", re.MULTILINE)
_PART_TITLE: Final = re.compile(r"^(?:chapter|part|appendix) \w{1,6}\b", re.IGNORECASE)
_MAX_EMPTY_PART: Final = 300  # characters of a chapter's page that only has its list of sections
_CHANGELOG_TITLE: Final = re.compile(
    r"change ?-?logs?\b|\brelease (?:notes|history|log)\b|\brelease v?\d|\brelease announcements\b|\brelnotes\b"
    r"|\bwhat[’'`]?s new\b|\bnew features in\b|^changes$|\bchanges (?:in|since|between) (?:version )?[\w.]*\d"
    r"|\brevision history\b|\bupgrading checklist\b|version history|^v?\d+\.\d+(?:\.\d+)* release",
    re.IGNORECASE,
)
_MAYBE_CHANGELOG_TITLE: Final = re.compile(r"\bnews\b|\bchanges\b|\bchronology\b|\bhistory\b", re.IGNORECASE)
_DATE_OR_VERSION: Final = re.compile(r"\b(?:19|20)\d\d-\d\d-\d\d\b|\b(?:version|release) v?\d+\.\d", re.IGNORECASE)
_GLOSSARY_TITLE: Final = re.compile(r"\bglossary\b|\bterminology\b|\bdefinitions of terms\b", re.IGNORECASE)
_SEARCH_TITLE: Final = re.compile(r"^search(?: page| results?| the documentation)?$", re.IGNORECASE)
_VERSION_HEADING: Final = re.compile(
    r"^(?:(?:version|release|changes|new|in|what[’']s|boost|the)\W{0,2})*v?\d+\.\d+[\w.]*\W*"
    r"(?:$|[(\[—–-]|(?:19|20)\d\d\b|release|is\b|was\b)",
    re.IGNORECASE,
)
_WHOLE_MANUAL_NAME: Final = re.compile(r"(?:^|[-_./])(?:print|single(?:html|page)?|big-?page|onepage|all)(?:\.\w+)?$")
_STUB_WORDS: Final = re.compile(
    r"\b(?:moved|redirect\w*|superseded|renamed|synonym|obsolete|no longer|has been removed|replaced|click here)\b",
    re.IGNORECASE,
)


class _Links(NamedTuple):
    """The links of a page, measured in letters."""

    share: float  # of all text
    names: list[str]  # the first of each line


def recognise_kind(title: str, markdown: str, tree: SectionNode, url: str) -> PageKind:
    """Return the kind of a page."""
    headings = [node.heading for node in _iterate(tree) if node.heading and not node.entry]
    titles = [title, *headings[:1]]
    if len(markdown) < 1_500:
        if any(map(_SEARCH_TITLE.search, titles)) and "search" in markdown.lower():
            return PageKind.SEARCH
        if len(markdown) < 600 and _is_stub(markdown):
            return PageKind.INDEX if any(map(_INDEX_TITLE.search, titles)) else PageKind.STUB
    versions = sum([1 for heading in headings[1:] if _VERSION_HEADING.search(heading)])
    is_dated = any(map(_MAYBE_CHANGELOG_TITLE.search, titles)) and (
        versions >= 2 or len(_DATE_OR_VERSION.findall(markdown, 0, 20_000)) >= 5
    )
    if versions < 4 and not is_dated:
        kind = _recognise_list(titles, markdown, tree)
        if kind is not None:
            return kind
    if _is_whole_manual(markdown, tree, url):
        return PageKind.MANUAL
    if any(map(_GLOSSARY_TITLE.search, titles)) and _count_terms(markdown, tree) >= 5:
        return PageKind.GLOSSARY
    if is_dated or any(map(_CHANGELOG_TITLE.search, titles)) or (versions >= 4 and 2 * versions > len(headings)):
        return PageKind.CHANGELOG
    return PageKind.PAGE


def _iterate(tree: SectionNode) -> Iterator[SectionNode]:
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(node.children)


def _is_stub(markdown: str) -> bool:
    """Return whether a short page only says where something else is."""
    text = _MARKUP.sub(" ", _LINK.sub("", markdown))
    return 0 < markdown.count("](") < MIN_LINKS and (len(text.split()) <= 3 or _STUB_WORDS.search(text) is not None)


def _is_whole_manual(markdown: str, tree: SectionNode, url: str) -> bool:
    if len(markdown) < 100_000:
        return False
    is_named_so = _WHOLE_MANUAL_NAME.search(url.partition("?")[0].lower()) is not None
    return is_named_so and sum([1 for node in _iterate(tree) if node.heading]) >= 20


def _count_terms(markdown: str, tree: SectionNode) -> int:
    return sum([1 for node in _iterate(tree) if node.entry or node.level > 1]) + markdown.count("\n**")


# ── Lists of links ────────────────────────────────────────────────────────────────────────────────────────────────────


def _recognise_list(titles: list[str], markdown: str, tree: SectionNode) -> PageKind | None:
    """Return whether a page is an index or a table of contents, or neither."""
    if len(markdown) < _MAX_EMPTY_PART and _PART_TITLE.search(titles[-1]):
        return PageKind.CONTENTS
    is_index = any(map(_INDEX_TITLE.search, titles))
    if is_index and _has_many_short_entries(markdown, tree):
        return PageKind.INDEX
    count = markdown.count("](")
    if count >= MIN_LINKS and any(map(_USES_TITLE.search, titles)):
        return PageKind.INDEX
    if count < (4 if is_index else MIN_LINKS) or len(markdown) > count * MAX_CHARACTERS_PER_LINK:
        return None
    links = _measure_links(markdown)
    is_sorted = _is_alphabetical(links.names)
    if any(map(_CHANGELOG_TITLE.search, titles)):
        return PageKind.CONTENTS if links.share >= 0.5 else None
    if is_index and (links.share >= 0.5 or (is_sorted and links.share >= 0.15)):
        return PageKind.INDEX
    link_lines = len(_LINK_LINE.findall(markdown)) / max(1, _count_lines(markdown))
    # Signatures are full of links, too, but do not begin with them; and definitions explain the terms that they link.
    if links.share >= 0.62 and link_lines >= 0.55 and markdown.count("\n**") * 3 < count:
        return PageKind.INDEX if is_sorted and len(links.names) >= 30 else PageKind.CONTENTS
    return None


def _count_lines(markdown: str) -> int:
    return sum([1 for line in markdown.split("\n") if line])


def _has_many_short_entries(markdown: str, tree: SectionNode) -> bool:
    """Return whether a page is a list of terms with hardly more than the places where they are."""
    entries = sum([1 for node in _iterate(tree) if node.entry]) + markdown.count("\n**")
    return entries >= 50 and len(markdown) < 150 * entries


def _measure_links(markdown: str) -> _Links:
    names: list[str] = []
    in_links, last_line = 0, -1
    for link in _LINK.finditer(markdown):
        words = _MARKUP.sub("", link[1])
        in_links += len(words)
        line = markdown.rfind("\n", 0, link.start())
        if line != last_line and words:
            names.append(words.casefold())
        last_line = line
    rest = len(_MARKUP.sub("", _LINK.sub("", markdown)))
    return _Links(in_links / max(1, in_links + rest), names)


def _is_alphabetical(names: list[str]) -> bool:
    """Return whether most names follow the one before in the order of the alphabet."""
    if len(names) < MIN_LINKS or 2 * sum([1 for name in names if name[0].isdigit()]) > len(names):
        return False
    ordered = sum([1 for before, after in pairwise(names) if before[:2] <= after[:2]])
    return ordered >= 0.85 * (len(names) - 1)
