"""HTML: the content of a page without what surrounds it, as Markdown, with the anchors that the page itself has.

1. parse     the whole page: its links, its title, what it says about itself
2. region    the part that is the page: what a person selected, else by what the generators of documentation call it
3. write     the region, tag by tag, as Markdown and sections (html_writer)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from kept.errors import InvalidInput
from kept.extract.html.generator_rules import GENERATOR_BOILERPLATE, RAW_TEXT_TAGS, REGIONS, ROUTE_PREFIXES
from kept.extract.html.writer import HtmlMarkdownWriter, HtmlSection
from kept.extract.js_shell import MAX_MARKDOWN_LENGTH, is_js_shell
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable, build_section_tree
from kept.extract.text import decode_to_utf8
from kept.model.robots_directives import parse_robots_directives
from kept.model.source import DEFAULT_REGION, Region

MAX_NESTING: Final = 10_000
"""Elements within elements. Parsing takes time in proportion to the square of it: at 200,000, minutes."""


MAX_REFRESH_PAGE_LENGTH: Final = 300
"""Characters of a page that only says where its reader is sent, addresses aside."""


def extract(body: bytes, charset: str | None, region: Region = DEFAULT_REGION) -> Extraction | Unreadable:
    """What a page says. Its links are those of the whole page, navigation included."""
    if b"\0" in body and body.count(b"\0") * 100 < len(
        body
    ):  # a few by mistake, as browsers allow; text of two bytes a letter has many
        body = body.replace(b"\0", b"")
    page = decode_to_utf8(body, charset or _declared_charset(body))
    if isinstance(page, Unreadable):
        return page
    page = _expand_self_closing_tags(page)
    if _is_too_deep(page):
        return Unreadable(reason=f"its elements are nested more than {MAX_NESTING:,} deep")
    looked = _parse_page(page, region)
    if looked is None:
        return Unreadable(reason="an empty page")
    hrefs, base, said, content = looked
    parts = HtmlMarkdownWriter(content).write_sections()
    nodes = [SectionNode(heading=p.heading, level=p.level, anchor=p.anchor, content=p.text) for p in parts[1:]]
    markdown = "\n\n".join([part.text for part in parts if part.text])
    return Extraction(
        title=_best_title(said.title, parts),
        markdown=markdown,
        tree=build_section_tree(nodes, intro=parts[0].text),
        hrefs=[*hrefs, *said.neighbour_hrefs, *[href for href in (said.canonical, said.refresh_href) if href]],
        base_href=base,
        is_js_shell=len(markdown) <= MAX_MARKDOWN_LENGTH and is_js_shell(page.decode()),
        alternate_hrefs=said.alternate_hrefs,
        canonical=said.canonical,
        moved_to=said.refresh_href
        if said.refresh_href and len(_LINK_TARGET.sub("", markdown)) <= MAX_REFRESH_PAGE_LENGTH
        else None,
        robots_directives=parse_robots_directives(said.robots_rules),
    )


# 1. The whole page


def _parse_page(html: bytes, region: Region) -> tuple[list[str], str | None, "_PageMetadata", str] | None:
    """The links, base and sayings of a page, and its region as HTML; None if there is nothing. The parsed page, which
    takes many times as much memory as its text, is gone afterwards.
    """
    page = LexborHTMLParser(html)
    root = page.body or page.root
    if root is None:
        return None
    (hrefs, base), said = _find_links(page), _read_metadata(page)
    for selector in region.drop:
        for node in _outermost([node for node in root.css(selector) if node.mem_id != root.mem_id]):
            node.decompose()
    selected = _outermost(root.css(region.select)) if region.select else []
    content = "".join([_region_html(node, html) for node in selected or [_find_region(page, html) or root]])
    return hrefs, base, said, content


# Tags that hold others; what ends by itself cannot nest.
_NESTING: Final = re.compile(
    r"<(/?)(?!(?:p|li|td|tr|th|dt|dd|br|img|hr|input|meta|link|option|wbr|col|tbody|thead)\b)[a-zA-Z]"
)


def _is_too_deep(html: bytes) -> bool:
    """Whether parsing would take far too long. Only a page of very many tags is looked at: others cannot be so deep."""
    if len(html) < 3 * MAX_NESTING or html.count(b"<") < 2 * MAX_NESTING:
        return False
    text = html.decode()
    if len(text) < 3 * MAX_NESTING:
        return False
    return max(accumulate([-1 if end else 1 for end in _NESTING.findall(text)]), default=0) > MAX_NESTING


_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})"
    rb"|<\?xml[^>]{0,100}encoding\s*=\s*[\"']([A-Za-z0-9_.-]{1,40})",
    re.IGNORECASE,
)


def _declared_charset(body: bytes) -> str | None:
    """What the page itself says. Whoever could read that in single bytes does not read UTF-16."""
    found = _CHARSET.search(body, 0, 4096)
    label = (found[1] or found[2]).decode("ascii") if found else None
    return None if label and label.lower().startswith(("utf-16", "utf-32")) else label


_XHTML_NAMESPACE: Final = b"http://www.w3.org/1999/xhtml"
_NAMESPACE_SEARCH_LENGTH: Final = 2_048  # characters of a page: it is said at once
_VOID_TAG_PATTERN: Final = rb"area|base|br|col|embed|frame|hr|img|input|link|meta|param|source|track|wbr"
_OPEN_TAG: Final = re.compile(
    rb"<(?!(?:%b)(?![a-zA-Z0-9]))([a-zA-Z][a-zA-Z0-9]*)(?![a-zA-Z0-9])[^>]*" % _VOID_TAG_PATTERN
)
_SELF_CLOSING: Final = re.compile(rb"/>")  # a pattern finds two letters in half the time that find() takes


def _expand_self_closing_tags(html: bytes) -> bytes:
    """XHTML may end any element where it begins. For HTML all that follows would be inside: a page in its <script/>."""
    said = html.find(_XHTML_NAMESPACE, 0, 4 * _NAMESPACE_SEARCH_LENGTH)
    if said < 0 or len(html[: said + len(_XHTML_NAMESPACE)].decode()) > _NAMESPACE_SEARCH_LENGTH:
        return html
    pieces, taken, before = [], 0, 0
    for found in _SELF_CLOSING.finditer(html):
        end = found.start()
        tag = _OPEN_TAG.fullmatch(html, max(html.rfind(b"<", before, end), before), end)
        before = end + 2
        if tag:
            pieces.append(b"%b></%b>" % (html[taken:end], tag[1]))
            taken = before
    return b"".join([*pieces, html[taken:]]) if pieces else html


_BASE_TAG_ID: Final = LexborHTMLParser("<base href=/>").tags("base")[0].tag_id


def _find_links(page: LexborHTMLParser) -> tuple[list[str], str | None]:
    """Where the page leads, and what that is relative to, if it says so: in one search of all its elements."""
    found: dict[str, None] = {}
    bases: list[str | None] = []
    for link in page.css("a[href], area[href], frame[src], base[href]"):
        attributes = link.attributes
        if link.tag_id == _BASE_TAG_ID:
            bases.append(attributes["href"])
            continue
        href = attributes.get("href") or attributes.get("src")
        relation = attributes.get("rel")
        if (
            href
            and (href[0] != "#" or href.startswith(ROUTE_PREFIXES))
            and not (relation and "nofollow" in relation.lower())
        ):
            found[href] = None
    return list(found), bases[0] if bases else None


@dataclass(slots=True)
class _PageMetadata:
    """What a page says about itself."""

    title: str = ""
    canonical: str | None = None
    refresh_href: str | None = None  # where it sends its reader by itself, before long
    neighbour_hrefs: list[str] = field(default_factory=list)  # the pages before and after it
    alternate_hrefs: list[str] = field(default_factory=list)
    robots_rules: list[str] = field(default_factory=list)  # for robots


_ROBOTS_META_NAMES: Final = ("robots", "kept")
_MAX_REFRESH_SECONDS: Final = 5
_REFRESH: Final = re.compile(r"(\d{0,4})(?:\.\d{0,9})? ?[;, ] ?(?:url ?= ?)?[\"']? ?([^\"' ][^\"']*)", re.IGNORECASE)
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^()\s]*\)")


def _read_metadata(page: LexborHTMLParser) -> _PageMetadata:
    if page.head is None:
        return _PageMetadata()
    title = page.head.css_first("title")
    said = _PageMetadata(" ".join(title.text().split()) if title else "")
    for node in page.head.css("link[rel][href], meta[content]"):
        if node.parent is not None and node.parent.tag == "noscript":
            continue  # for readers that this page would send elsewhere
        said_here = {name: value or "" for name, value in node.attributes.items()}
        if node.tag == "link":
            relations = said_here["rel"].lower().split()
            if "canonical" in relations and said.canonical is None:
                said.canonical = said_here["href"]
            elif "alternate" in relations and said_here.get("type", "").lower().startswith("text/markdown"):
                said.alternate_hrefs.append(said_here["href"])
            elif ("next" in relations or "prev" in relations) and said_here["href"]:
                said.neighbour_hrefs.append(said_here["href"])
        elif said_here.get("name", "").strip().lower() in _ROBOTS_META_NAMES:
            said.robots_rules.append(said_here["content"])
        elif said_here.get("http-equiv", "").strip().lower() == "refresh":
            found = _REFRESH.fullmatch(" ".join(said_here["content"].split()).rstrip("\"' "))
            if found and int(found[1] or 0) <= _MAX_REFRESH_SECONDS:
                said.refresh_href = found[2]
    return said


def _strip_site_name(words: str) -> str:
    """A title without the name of the site, which most generators put behind it."""
    for separator in (" — ", " – ", " | ", " · ", " :: "):
        words = words.rpartition(separator)[0] or words
    return words[:MAX_HEADING_LENGTH]


def _best_title(title: str, parts: list[HtmlSection]) -> str:
    """The one heading over all others; where there is none, or several, what the page calls itself."""
    headings = [part.heading for part in parts[1:] if not part.is_continuation]
    first = [part.heading for part in parts[1:] if part.level == 1 and not part.is_continuation]
    if len(first) == 1 or (first and not title):
        return first[0]
    if title in headings:
        return title
    return _strip_site_name(title) or (headings[0] if headings else "")


# 2. The region


def check_region(region: Region) -> None:
    """WrongCall unless its selectors are CSS."""
    for selector in filter(None, (region.select, *region.drop)):
        try:
            LexborHTMLParser("<p>").css(selector)
        except SelectolaxError:
            raise InvalidInput(
                f"'{selector}' is not a CSS selector. Say it like 'main', '.content' or 'div#body'."
            ) from None


def _outermost(found: list[LexborNode]) -> list[LexborNode]:
    """Those that are in none of the others: these may be written, or dropped, one by one."""
    ids = {node.mem_id for node in found}
    return [node for node in found if not any(above in ids for above in _ancestor_ids(node))]


def _ancestor_ids(node: LexborNode) -> Iterator[int]:
    above = node.parent
    while above is not None:
        yield above.mem_id
        above = above.parent


_NAMED_REGIONS: Final = ", ".join([selector for word, selector in REGIONS if not word])


def _find_region(page: LexborHTMLParser, html: bytes) -> LexborNode | None:
    any_by_name = page.css_first(_NAMED_REGIONS) is not None
    for word, selector in REGIONS:
        if word in html if word else any_by_name:
            found = page.css_first(selector)
            if found is not None:
                return found
    return None


_RAW_TEXT_TAG: Final = re.compile(rf"<(?:{'|'.join(RAW_TEXT_TAGS)})\b")


def _region_html(region: LexborNode, html: bytes) -> str:
    """The region as HTML that is well-formed, without what is no markup or none of the page's."""
    for word, selector in GENERATOR_BOILERPLATE:
        for node in region.css(selector) if word in html else ():
            node.decompose()
    content = region.html or ""
    if _RAW_TEXT_TAG.search(content):
        region.strip_tags(RAW_TEXT_TAGS, recursive=True)
        content = region.html or ""
    return content
