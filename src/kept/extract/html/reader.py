"""Read HTML: the main content of a page as Markdown and sections, with the page's own anchors.

1. parse     the whole page: its links, title and metadata
2. region    the part with the content: by the source's selectors, else by generator_rules
3. write     the region as Markdown and sections (writer)
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Final

from selectolax.lexbor import LexborHTMLParser, LexborNode, SelectolaxError

from kept.errors import InvalidInput
from kept.extract.html.generator_rules import (
    GENERATOR_BOILERPLATE,
    GENERATOR_REGIONS,
    GENERATOR_ROLES,
    GENERATOR_SEARCH_LENGTH,
    RAW_TEXT_TAGS,
    REGIONS,
    ROUTE_PREFIXES,
    SOURCE_CODE_PAGES,
)
from kept.extract.html.place_marks import MARK_END, MARK_START, remove_control_characters
from kept.extract.html.places import find_places
from kept.extract.html.writer import HtmlMarkdownWriter, HtmlSection
from kept.extract.js_shell import MAX_MARKDOWN_LENGTH, find_api_description, is_js_shell
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable, build_section_tree
from kept.extract.text import decode_to_utf8
from kept.model.robots_directives import parse_robots_directives
from kept.model.source import DEFAULT_REGION, Region

MAX_NESTING: Final = 10_000
"""Levels of nested elements. The parser's time is quadratic in it: minutes at 200,000."""

MAX_REFRESH_PAGE_LENGTH: Final = 300
"""Characters of Markdown, link targets aside, of a page that counts as a mere redirect."""


def extract(body: bytes, charset: str | None, region: Region = DEFAULT_REGION) -> Extraction | Unreadable:
    """Return the content of a page. Its links are those of the whole page, including navigation."""
    if b"\0" in body and body.count(b"\0") * 100 < len(body):  # stray ones, not UTF-16, which has many
        body = body.replace(b"\0", b"")
    page = decode_to_utf8(body, charset or _declared_charset(body))
    if isinstance(page, Unreadable):
        return page
    page = _expand_self_closing_tags(page)
    if _is_too_deep(page):
        return Unreadable(reason=f"its elements are nested more than {MAX_NESTING:,} deep")
    if not region.select and any(marker in page for marker in SOURCE_CODE_PAGES):
        return Unreadable(reason="a page of source code, which the documentation describes; select a region to keep it")
    parsed = _parse_page(page, region)
    if parsed is None:
        return Unreadable(reason="an empty page")
    hrefs, base, metadata, content = parsed
    if MARK_START in content or MARK_END in content:
        content = remove_control_characters(content)
    writer = HtmlMarkdownWriter(content)
    sections = writer.write_sections()
    nodes = [_make_node(section) for section in sections[1:]]
    markdown = "\n\n".join([section.text for section in sections if section.text])
    is_empty = len(markdown) <= MAX_MARKDOWN_LENGTH
    api = find_api_description(page.decode()) if is_empty else None
    return Extraction(
        title=_best_title(metadata.title, sections),
        markdown=markdown,
        tree=build_section_tree(nodes, intro=sections[0].text),
        hrefs=[*hrefs, *metadata.neighbour_hrefs, *[h for h in (metadata.canonical, metadata.refresh_href) if h]],
        base_href=base,
        is_js_shell=is_empty and api is None and is_js_shell(page.decode()),
        alternate_hrefs=metadata.alternate_hrefs,
        canonical=metadata.canonical,
        moved_to=metadata.refresh_href
        if metadata.refresh_href and len(_LINK_TARGET.sub("", markdown)) <= MAX_REFRESH_PAGE_LENGTH
        else api,
        robots_directives=parse_robots_directives(metadata.robots_rules),
        places=find_places(sections, writer.places, markdown) if writer.places else (),
    )


def _make_node(section: HtmlSection) -> SectionNode:
    return SectionNode(
        heading=section.heading,
        level=section.level,
        anchor=section.anchor,
        content=section.text,
        entry=section.heading if section.is_term else "",
    )


# ── 1. The whole page ─────────────────────────────────────────────────────────────────────────────────────────────────


def _parse_page(html: bytes, region: Region) -> tuple[list[str], str | None, "_PageMetadata", str] | None:
    """Return the links, base and metadata of a page and its region as HTML; None if it is empty.

    The tree, which takes many times the memory of the page, is freed on return.
    """
    page = LexborHTMLParser(html)
    root = page.body or page.root
    if root is None:
        return None
    (hrefs, base), metadata = _find_links(page), _read_metadata(page)
    for selector in region.drop:
        for node in _outermost([node for node in root.css(selector) if node.mem_id != root.mem_id]):
            node.decompose()
    selected = _outermost(root.css(region.select)) if region.select else []
    content = "".join([_region_html(node, html) for node in selected or [_find_region(page, html) or root]])
    return hrefs, base, metadata, content


# Tags that nest; those that end by themselves do not.
_NESTING: Final = re.compile(
    r"<(/?)(?!(?:p|li|td|tr|th|dt|dd|br|img|hr|input|meta|link|option|wbr|col|tbody|thead)\b)[a-zA-Z]"
)


def _is_too_deep(html: bytes) -> bool:
    """Return whether parsing would take far too long. Most pages have too few tags to be too deep."""
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
    """Return the charset that the page declares. UTF-16 and UTF-32 are wrong: the declaration was read as ASCII."""
    match = _CHARSET.search(body, 0, 4096)
    label = (match[1] or match[2]).decode("ascii") if match else None
    return None if label and label.lower().startswith(("utf-16", "utf-32")) else label


_XHTML_NAMESPACE: Final = b"http://www.w3.org/1999/xhtml"
_NAMESPACE_SEARCH_LENGTH: Final = 2_048  # characters from the start of a page
_VOID_TAG_PATTERN: Final = rb"area|base|br|col|embed|frame|hr|img|input|link|meta|param|source|track|wbr"
_OPEN_TAG: Final = re.compile(
    rb"<(?!(?:%b)(?![a-zA-Z0-9]))([a-zA-Z][a-zA-Z0-9]*)(?![a-zA-Z0-9])[^>]*" % _VOID_TAG_PATTERN
)
_SELF_CLOSING: Final = re.compile(rb"/>")  # twice as fast as bytes.find() with two bytes


def _expand_self_closing_tags(html: bytes) -> bytes:
    """Expand the self-closing tags of XHTML: an HTML parser would put the rest of a page into its <script/>."""
    namespace = html.find(_XHTML_NAMESPACE, 0, 4 * _NAMESPACE_SEARCH_LENGTH)
    if namespace < 0 or len(html[: namespace + len(_XHTML_NAMESPACE)].decode()) > _NAMESPACE_SEARCH_LENGTH:
        return html
    pieces, copied_until, previous_end = [], 0, 0
    for match in _SELF_CLOSING.finditer(html):
        end = match.start()
        tag = _OPEN_TAG.fullmatch(html, max(html.rfind(b"<", previous_end, end), previous_end), end)
        previous_end = end + 2
        if tag:
            pieces.append(b"%b></%b>" % (html[copied_until:end], tag[1]))
            copied_until = previous_end
    return b"".join([*pieces, html[copied_until:]]) if pieces else html


_BASE_TAG_ID: Final = LexborHTMLParser("<base href=/>").tags("base")[0].tag_id


def _find_links(page: LexborHTMLParser) -> tuple[list[str], str | None]:
    """Return the links of the page and its <base>, in one search of its elements."""
    hrefs: dict[str, None] = {}
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
            hrefs[href] = None
    return list(hrefs), bases[0] if bases else None


@dataclass(slots=True)
class _PageMetadata:
    """The <title>, <link> and <meta> of a page."""

    title: str = ""
    canonical: str | None = None
    refresh_href: str | None = None  # target of a quick <meta http-equiv=refresh>
    neighbour_hrefs: list[str] = field(default_factory=list)  # the previous and the next page
    alternate_hrefs: list[str] = field(default_factory=list)
    robots_rules: list[str] = field(default_factory=list)


_ROBOTS_META_NAMES: Final = ("robots", "kept")
_MAX_REFRESH_SECONDS: Final = 5
_REFRESH: Final = re.compile(r"(\d{0,4})(?:\.\d{0,9})? ?[;, ] ?(?:url ?= ?)?[\"']? ?([^\"' ][^\"']*)", re.IGNORECASE)
_LINK_TARGET: Final = re.compile(r"(?<=\])\([^()\s]*\)")


def _read_metadata(page: LexborHTMLParser) -> _PageMetadata:
    if page.head is None:
        return _PageMetadata()
    title = page.head.css_first("title")
    metadata = _PageMetadata(" ".join(title.text().split()) if title else "")
    for node in page.head.css("link[rel][href], meta[content]"):
        if node.parent is not None and node.parent.tag == "noscript":
            continue  # meant for browsers without scripts
        attributes = {name: value or "" for name, value in node.attributes.items()}
        if node.tag == "link":
            relations = attributes["rel"].lower().split()
            if "canonical" in relations and metadata.canonical is None:
                metadata.canonical = attributes["href"]
            elif "alternate" in relations and attributes.get("type", "").lower().startswith("text/markdown"):
                metadata.alternate_hrefs.append(attributes["href"])
            elif ("next" in relations or "prev" in relations) and attributes["href"]:
                metadata.neighbour_hrefs.append(attributes["href"])
        elif attributes.get("name", "").strip().lower() in _ROBOTS_META_NAMES:
            metadata.robots_rules.append(attributes["content"])
        elif attributes.get("http-equiv", "").strip().lower() == "refresh":
            refresh = _REFRESH.fullmatch(" ".join(attributes["content"].split()).rstrip("\"' "))
            if refresh and int(refresh[1] or 0) <= _MAX_REFRESH_SECONDS:
                metadata.refresh_href = refresh[2]
    return metadata


def _strip_site_name(title: str) -> str:
    """Return a title without the name of the site, which most generators append."""
    for separator in (" — ", " – ", " | ", " · ", " :: "):
        title = title.rpartition(separator)[0] or title
    return title[:MAX_HEADING_LENGTH]


def _best_title(title: str, sections: list[HtmlSection]) -> str:
    """Return the only heading of level 1; where there is none, or several, the <title>."""
    headings = [section.heading for section in sections[1:] if not section.is_continuation]
    top = [section.heading for section in sections[1:] if section.level == 1 and not section.is_continuation]
    if len(top) == 1 or (top and not title):
        return top[0]
    if title in headings:
        return title
    return _strip_site_name(title) or (headings[0] if headings else "")


# ── 2. The region ─────────────────────────────────────────────────────────────────────────────────────────────────────


def check_region(region: Region) -> None:
    """Raise InvalidInput if one of its selectors is not CSS."""
    for selector in filter(None, (region.select, *region.drop)):
        try:
            LexborHTMLParser("<p>").css(selector)
        except SelectolaxError:
            raise InvalidInput(
                f"'{selector}' is not a CSS selector. Expected something like 'main', '.content' or 'div#body'."
            ) from None


def _outermost(nodes: list[LexborNode]) -> list[LexborNode]:
    """Return the nodes that are inside none of the others."""
    ids = {node.mem_id for node in nodes}
    return [node for node in nodes if not any(ancestor in ids for ancestor in _ancestor_ids(node))]


def _ancestor_ids(node: LexborNode) -> Iterator[int]:
    ancestor = node.parent
    while ancestor is not None:
        yield ancestor.mem_id
        ancestor = ancestor.parent


_UNMARKED_REGIONS: Final = ", ".join([selector for marker, selector in REGIONS if not marker])


def _find_region(page: LexborHTMLParser, html: bytes) -> LexborNode | None:
    start = html[:GENERATOR_SEARCH_LENGTH]
    for marker, selector in GENERATOR_REGIONS:
        if marker in start and (region := page.css_first(selector)) is not None:
            return region
    has_unmarked_region = page.css_first(_UNMARKED_REGIONS) is not None
    for marker, selector in REGIONS:
        if marker in html if marker else has_unmarked_region:
            region = page.css_first(selector)
            if region is not None:
                return region
    return None


_RAW_TEXT_TAG: Final = re.compile(rf"<(?:{'|'.join(RAW_TEXT_TAGS)})\b")


def _region_html(region: LexborNode, html: bytes) -> str:
    """Serialize the region without boilerplate and elements that are not markup."""
    start = html[:GENERATOR_SEARCH_LENGTH]
    for marker, selector in GENERATOR_BOILERPLATE:
        for node in region.css(selector) if marker in start else ():
            node.decompose()
    for marker, selector, role_class in GENERATOR_ROLES:
        for node in region.css(selector) if marker in start else ():
            node.attrs["class"] = role_class
    content = region.html or ""
    if _RAW_TEXT_TAG.search(content):
        region.strip_tags(RAW_TEXT_TAGS, recursive=True)
        content = region.html or ""
    return content
