"""HTML: the content of a page without what surrounds it, as Markdown, with the anchors that the page itself has.

    1. parse          the whole page; its links, title and what its head says
    2. region         the part that is the page: by what the generators of documentation call it
    3. drop           navigation, buttons, permalink marks and the like inside it
    4. prepare        code languages, admonitions, signatures, layout lists: so that the Markdown comes out right
    5. mark           each heading gets a mark that survives the conversion
    6. convert        by html-to-markdown; then the marks say where the sections begin and which anchor each one has
"""

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

from html_to_markdown import ConversionOptions, convert
from selectolax.lexbor import LexborHTMLParser, LexborNode

from kept.extract.sections import LONGEST_HEADING, Extracted, SectionData, Unreadable, tree_of
from kept.extract.text import decode

READER_VERSION = 1

# The content of a page, by generator; the first that is there is it.
REGIONS = (
    "article.md-content__inner",  # Material for MkDocs
    "article .theme-doc-markdown", "article .markdown",  # Docusaurus
    "main .vp-doc", ".vp-doc",  # VitePress
    "div[itemprop=articleBody]",  # Sphinx: Read the Docs
    "article[role=main]", "article.bd-article",  # Sphinx: Furo, PyData
    "div.body[role=main]", "div.document div.body",  # Sphinx: the themes it comes with
    "#main-content",  # rustdoc
    "div.col-content",  # TypeDoc
    "#docContent",  # DocBook, as PostgreSQL's site has it
    "main#content", "main[role=main]", "main", "[role=main]",
    "div.contents",  # Doxygen
    "div#content",  # asciidoc
    "div.contentContainer",  # javadoc before 16
    "body > article", "#main", "#content",
)  # fmt: skip

DROPPED = ",".join((
    "script", "style", "template", "noscript", "nav", "svg", "button", "input", "select", "textarea", "dialog", "iframe", "object",
    "[role=navigation]", "[role=search]", "[hidden]", "footer", "body > header",
    "a.headerlink", "a.anchor-link", "a.hash-link", "a.header-anchor", "a.permalink", "a.anchorjs-link", "a.viewcode-link",
    "a.viewcode-back", "a.doc-anchor", "h1 > a.anchor", "h2 > a.anchor", "h3 > a.anchor", "h4 > a.anchor", "h5 > a.anchor", "a.tsd-anchor-icon",
    ".breadcrumb", ".breadcrumbs", ".theme-doc-breadcrumbs", ".toc", ".table-of-contents", ".tocCollapsible", ".theme-doc-toc-mobile",
    ".sphinxsidebar", ".sidebar-nav", ".related", ".navheader", ".navfooter", ".header .sub-nav", ".sub-nav", ".flex-header", ".top-nav",
    ".pagination-nav", ".prev-next-area", ".theme-doc-footer", ".theme-edit-this-page", ".edit-this-page", ".md-source-file",
    ".md-content__button", ".md-feedback", ".copybtn", ".copy-button", ".clipboard", ".linenos", ".lineno", ".line-numbers", ".linenodiv",
    "td.linenos", ".visually-hidden", ".sr-only", ".screen-reader-text", ".vp-doc-footer", ".skip-nav", ".skip-link", ".nosearch", "#toc",
    "#footer", "#sidebar", "#nav-path", "#top.header", ".tsd-breadcrumb", ".out-of-band", ".ga-badge", ".katex-html",
))  # fmt: skip

# Lists that only lay a page out. Without them their headings are headings again.
LAYOUT = ",".join((
    "ul.blockList", "ul.blockListLast", "ul.block-list", "ul.summary-list", "ul.details-list", "ul.member-list", "ul.inner-list",
    "li.blockList", "li.blockListLast", "ul.summary-list > li", "ul.details-list > li", "ul.member-list > li", "ul.block-list > li",
))  # fmt: skip

SIGNATURES = "dl > dt.sig[id], dl.py > dt[id], dl.class > dt[id], dl.function > dt[id], dl.method > dt[id]"

_OPTIONS = ConversionOptions(extract_metadata=False, autolinks=False, max_depth=400, bullets="-")


@dataclass(frozen=True, slots=True)
class _Heading:
    anchor: str | None
    level: int
    words: str


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    """What a page says. Its links are those of the whole page, navigation included."""
    text = decode(body, charset or _declared_charset(body))
    if isinstance(text, Unreadable):
        return text
    page = LexborHTMLParser(text)
    root = page.body or page.root
    if root is None:
        return Unreadable(reason="an empty page")
    hrefs, base, title = _hrefs(page), _base(page), _title(page)
    region = _region(page) or root
    headings = _prepare(page, region)
    markdown, nodes, before = _sections(_converted(region), headings)
    title = next((node.heading for node in nodes if node.level == 1), "") or title
    return Extracted(title=title, markdown=markdown, tree=tree_of(nodes, before=before), hrefs=hrefs, base=base)


# 1. The whole page


_CHARSET = re.compile(rb"<meta[^>]{0,200}charset\s*=\s*[\"']?\s*([A-Za-z0-9_:.-]{1,40})|<\?xml[^>]{0,100}encoding\s*=\s*[\"']([A-Za-z0-9_.-]{1,40})", re.I)


def _declared_charset(body: bytes) -> str | None:
    found = _CHARSET.search(body, 0, 4096)
    return (found[1] or found[2]).decode("ascii") if found else None


def _hrefs(page: LexborHTMLParser) -> list[str]:
    found: dict[str, None] = {}
    for link in page.css("a[href], area[href], frame[src], link[rel=next][href], link[rel=prev][href]"):
        attributes = link.attributes
        href = attributes.get("href") or attributes.get("src")
        if href and href[0] != "#" and "nofollow" not in (attributes.get("rel") or ""):
            found[href] = None
    return list(found)


def _base(page: LexborHTMLParser) -> str | None:
    base = page.css_first("base[href]")
    return base.attributes.get("href") if base else None


def _title(page: LexborHTMLParser) -> str:
    """The page's title, without the site's name behind it."""
    title = page.css_first("head > title, title")
    words = " ".join(title.text().split()) if title else ""
    for separator in (" — ", " – ", " | ", " · ", " :: "):
        words = words.partition(separator)[0] or words
    return words[:LONGEST_HEADING]


# 2. The region


def _region(page: LexborHTMLParser) -> LexborNode | None:
    for selector in REGIONS:
        found = page.css_first(selector)
        if found is not None:
            return found
    return None


# 3 to 5. Drop, prepare, mark


def _prepare(page: LexborHTMLParser, region: LexborNode) -> list[_Heading]:
    anchors = _permalinks(region)
    for node in region.css(DROPPED):
        node.decompose()
    for node in region.css(LAYOUT):
        node.unwrap()
    for node in region.css("math"):
        node.replace_with(_math(node))
    for pre in region.css("pre"):
        _say_language(pre)
    for note in region.css("div.admonition, aside.admonition, div.admonitionblock, div.note, div.warning, div.tip, div.important, div.caution"):
        _quote(page, note)
    headings: list[_Heading] = []
    level = 1
    for node in region.css(f"h1, h2, h3, h4, h5, h6, {SIGNATURES}"):
        words = " ".join(node.text().split())[:LONGEST_HEADING]
        if not words:
            node.decompose()
            continue
        tag = node.tag or ""
        if tag == "dt":
            node = _as_heading(page, node, min(level + 1, 6))
        else:
            level = int(tag[1])
        headings.append(_Heading(anchors.get(node.mem_id) or _anchor(node), int((node.tag or "h6")[1]), words))
        node.insert_child(f"{_MARK}{len(headings) - 1}{_END}")
    return headings


def _permalinks(region: LexborNode) -> dict[int, str]:
    """The anchors that headings name themselves, in the mark that readers click to link to them."""
    found: dict[int, str] = {}
    for link in region.css("a.headerlink, a.hash-link, a.header-anchor, a.anchor-link, a.permalink, a.anchor, a.doc-anchor"):
        href, parent = link.attributes.get("href") or "", link.parent
        if href.startswith("#") and parent is not None:
            found.setdefault(parent.mem_id, href[1:])
    return found


def _anchor(node: LexborNode) -> str | None:
    """Where a link has to point to open the page at this heading: its own id, one inside it, or that of its section."""
    own = node.attributes.get("id")
    if own:
        return own
    inside = node.css_first("a[id], a[name], span[id]")
    if inside is not None:
        return inside.attributes.get("id") or inside.attributes.get("name")
    above: LexborNode | None = node
    for _ in range(5):  # DocBook wraps a title up to five times before its section
        before = above.prev if above is not None else None
        while before is not None and before.is_text_node and not (before.text() or "").strip():
            before = before.prev
        if before is not None:
            named = before.tag in ("a", "span") and (before.attributes.get("id") or before.attributes.get("name"))
            return named or None
        above = above.parent if above is not None else None
        if above is None or above.tag == "body":
            return None
        if above.attributes.get("id"):
            return above.attributes["id"]
    return None


_LANGUAGE = re.compile(r"(?:^|\s)(?:language|lang|highlight|brush:|sourceCode|src)[-\s]([A-Za-z0-9_+#.-]+)")
_NO_LANGUAGE = frozenset({"default", "none", "text", "notranslate", "plaintext", "source", "console-output"})


def _say_language(pre: LexborNode) -> None:
    """Puts the language of a code block where the converter looks for it, wherever the generator has put it."""
    inner = pre.child if pre.child is not None and pre.child.tag == "code" and pre.child.next is None else None
    language = None
    node: LexborNode | None = inner or pre
    for _ in range(4):
        if node is None or language:
            break
        attributes = node.attributes
        said = attributes.get("data-lang") or attributes.get("data-language")
        match = _LANGUAGE.search(attributes.get("class") or "")
        language = said or (match[1] if match else None)
        node = node.parent
    text = html.escape((inner or pre).text(), quote=False)
    name = f' class="language-{language}"' if language and language not in _NO_LANGUAGE else ""
    pre.inner_html = f"<code{name}>{text}</code>"


def _quote(page: LexborHTMLParser, note: LexborNode) -> None:
    """An admonition is a quotation that begins with its title."""
    quote = page.create_node("blockquote")
    for child in list(note.iter(include_text=True)):
        quote.insert_child(child)
    title = quote.css_first(".admonition-title, .title, h3.title, p.first")
    if title is not None and title.tag in ("p", "div", "h3", "h4"):
        strong = page.create_node("p")
        words = page.create_node("strong")
        words.insert_child(" ".join(title.text().split()))
        strong.insert_child(words)
        title.replace_with(strong)
    note.replace_with(quote)


def _as_heading(page: LexborHTMLParser, term: LexborNode, level: int) -> LexborNode:
    """The signature of a documented name stands where headings stand: it is what people search for and link to."""
    heading = page.create_node(f"h{level}")
    heading.attrs["id"] = term.attributes.get("id") or ""
    code = page.create_node("code")
    code.insert_child(" ".join(term.text().split()))
    heading.insert_child(code)
    term.replace_with(heading)
    return heading


def _math(node: LexborNode) -> str:
    written = node.css_first("annotation")
    return (node.attributes.get("alttext") or (written.text() if written else node.text())).strip()


# 6. Convert, and find the sections again


_MARK, _END = "\ue000", "\ue001"  # for private use: no page has them, no converter touches them
_HEADING_LINE = re.compile(rf"^#{{1,6}} .*?{_MARK}(\d+){_END}[ \t]*$", re.MULTILINE)
_ANY_MARK = re.compile(rf" ?{_MARK}\d+{_END}")


def _converted(region: LexborNode) -> str:
    markdown = convert(region.html or "", _OPTIONS)
    return markdown if isinstance(markdown, str) else markdown.content or ""


def _sections(markdown: str, headings: list[_Heading]) -> tuple[str, list[SectionData], str]:
    """The Markdown without marks, a node for each heading, and what stands before the first."""
    places = [(match.start(), int(match[1])) for match in _HEADING_LINE.finditer(markdown)]
    parts = [_ANY_MARK.sub("", part).strip("\n") for part in _cut(markdown, [start for start, _ in places])]
    nodes = [
        SectionData(heading=headings[at].words, level=headings[at].level, anchor=headings[at].anchor, content=part)
        for (_, at), part in zip(places, parts[1:], strict=True)
    ]
    return "\n\n".join(part for part in parts if part), nodes, parts[0]


def _cut(text: str, places: list[int]) -> Iterator[str]:
    for start, end in zip([0, *places], [*places, len(text)], strict=True):
        yield text[start:end]
