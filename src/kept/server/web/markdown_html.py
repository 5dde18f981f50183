"""Renders a document's Markdown as harmless HTML: no markup of its own, no images, only safe links."""

import re
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup, escape

from kept.model.document import Place
from kept.model.url import get_fragment, resolve_link, with_fragment
from kept.service.documents import DocumentHeading, DocumentOutline

MAX_RENDERED_CHARACTERS = 300_000  # a longer text is shown as plain text
MAX_MARKUP = 60_000  # and one with more markup: it takes over a second to parse
BRACKET_WEIGHT = 4  # looking for the other end of a bracket takes longest
_WORD = re.compile(r"\w+")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    parser.add_render_rule("fence", _render_code)
    parser.add_render_rule("code_block", _render_code)
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    return parser


class MarkdownPage:
    """The parsed Markdown of a page."""

    def __init__(self, markdown: str, url: str) -> None:
        self._url = url
        self._markdown = markdown
        self._plain = None if _can_be_rendered(markdown) else markdown
        self._tokens = [] if self._plain else _parser().parse(markdown)

    @property
    def links(self) -> list[str]:
        """The canonical URLs that the page links to, each once."""
        targets = (resolve_link(str(token.attrs["href"]), self._url) for token in self._inline_tokens("link_open"))
        return list(dict.fromkeys(url for url in targets if url))

    @property
    def has_title(self) -> bool:
        return any(token.type == "heading_open" and token.tag == "h1" for token in self._tokens)

    def html(self, outline: DocumentOutline, kept: Mapping[str, str]) -> Markup:
        """Render the page. ``kept`` maps URLs of kept documents to the paths of their own pages here."""
        if self._plain is not None:
            return Markup("<pre>{}</pre>").format(_with_targets(self._plain, outline.places))
        _set_heading_anchors(self._tokens, outline.headings)
        _add_targets(self._tokens, self._markdown, outline.places)
        for parent in self._tokens:
            parent.children = list(_images_to_links(parent.children or []))
        for token in self._inline_tokens("link_open"):
            _set_link_target(token, str(token.attrs["href"]), self._url, kept)
        return Markup(_parser().renderer.render(self._tokens, _parser().options, {}))

    def _inline_tokens(self, kind: str) -> Iterator[Token]:
        for token in self._tokens:
            yield from (child for child in token.children or () if child.type == kind)


def _can_be_rendered(markdown: str) -> bool:
    """Whether parsing takes a second or two at most: each bracket of a hostile text takes up to 0.1 milliseconds."""
    markup = BRACKET_WEIGHT * markdown.count("[") + sum(map(markdown.count, "*_~&<`"))
    return len(markdown) <= MAX_RENDERED_CHARACTERS and markup <= MAX_MARKUP


def _set_link_target(token: Token, href: str, page: str, kept: Mapping[str, str]) -> None:
    """Set the target of a link. A link without a safe target becomes plain text."""
    anchor, token.attrs = get_fragment(href), {}
    target = None if href.lower().startswith("mailto:") else resolve_link(href, page)
    if href.startswith("#") or target == page:
        token.attrSet("href", with_fragment("", anchor) if anchor else "#top")
    elif target and target in kept:
        token.attrSet("href", with_fragment(kept[target], anchor))
    elif target and target.startswith(("http://", "https://")):
        token.attrs = {"href": with_fragment(target, anchor), "rel": "noopener noreferrer nofollow", "class": "away"}
    elif href.lower().startswith("mailto:"):
        token.attrs = {"href": href, "rel": "noopener noreferrer nofollow"}


def _images_to_links(tokens: Sequence[Token]) -> Iterator[Token]:
    """Replace images by links to them with their text; inside a link, by the text alone."""
    in_link = False
    for token in tokens:
        in_link = token.type == "link_open" or (in_link and token.type != "link_close")
        if token.type != "image":
            yield token
            continue
        name = Token("text", "", 0, content=token.content or "picture")
        if in_link:
            yield name
        else:
            yield Token("link_open", "a", 1, attrs={"href": str(token.attrs.get("src", ""))})
            yield name
            yield Token("link_close", "a", -1)


def _set_heading_anchors(tokens: Sequence[Token], headings: Sequence[DocumentHeading]) -> None:
    """Give each heading the anchor of the next known heading with the same words."""
    positions: dict[str, list[int]] = defaultdict(list)
    for position, heading in enumerate(headings):
        positions[_normalize(heading.text)].append(position)
    after = 0
    for opening, inline in pairwise(tokens):
        words = _normalize(_inline_text(inline)) if opening.type == "heading_open" else ""
        same = positions.get(words, ()) if words else ()
        following = bisect_left(same, after)
        if following < len(same):
            opening.attrSet("id", headings[same[following]].anchor)
            opening.attrSet("tabindex", "-1")
            after = same[following] + 1


# ── Places: an empty element with the id, before the text ────────────────────────────────────────────────────────────


def _target(anchor: str) -> Markup:
    return Markup('<span class="place" id="{}"></span>').format(anchor)


def _with_targets(text: str, places: Sequence[Place]) -> Markup:
    pieces, end = [], 0
    for place in places:
        if place.anchor:
            pieces += [escape(text[end : place.start]), _target(place.anchor)]
            end = place.start
    return Markup("").join([*pieces, escape(text[end:])])


def _add_targets(tokens: list[Token], markdown: str, places: Sequence[Place]) -> None:
    """Add the places that are no anchors of headings: each at the begin of its paragraph, row, item or line of code."""
    known = {token.attrs["id"] for token in tokens if "id" in token.attrs}
    line_ends = [at.start() for at in re.finditer("\n", markdown)]
    anchors: dict[int, list[str]] = defaultdict(list)  # by line
    for place in places:
        if place.anchor and place.anchor not in known:
            anchors[bisect_left(line_ends, place.start)].append(place.anchor)
    blocks = [
        (token.map[0], number) for number, token in enumerate(tokens) if token.map and token.type in _TARGET_TYPES
    ]
    first_lines = [line for line, _ in blocks]
    additions: list[tuple[int, Token]] = []
    for line, names in sorted(anchors.items()):
        at = bisect_right(first_lines, line) - 1
        number = blocks[at][1] if at >= 0 else 0
        html = Markup("").join(map(_target, names))
        if at >= 0 and tokens[number].type in ("fence", "code_block"):
            offset = line - first_lines[at] - (tokens[number].type == "fence")
            tokens[number].meta.setdefault("targets", {})[max(0, offset)] = html
        elif at >= 0 and (inline := _first_inline(tokens, number)) is not None:
            inline.children = [Token("html_inline", "", 0, content=html), *(inline.children or [])]
        else:
            additions.append((number, Token("html_block", "", 0, content=html)))
    for number, token in reversed(additions):
        tokens.insert(number, token)


_TARGET_TYPES = ("paragraph_open", "heading_open", "tr_open", "fence", "code_block", "hr", "html_block")


def _first_inline(tokens: Sequence[Token], number: int) -> Token | None:
    """Return the text of a paragraph or heading, or of the first cell of a row."""
    return next((token for token in tokens[number + 1 : number + 4] if token.type == "inline"), None)


def _render_code(_renderer: object, tokens: Sequence[Token], number: int, *_: object) -> str:
    """Render a code block, with the places in it before their lines."""
    token = tokens[number]
    targets = token.meta.get("targets", {})
    lines = token.content.split("\n")
    code = Markup("\n").join([targets.get(line, Markup("")) + escape(text) for line, text in enumerate(lines)])
    language = token.info.split(maxsplit=1)[0] if token.info.strip() else ""
    return Markup("<pre><code{}>{}</code></pre>\n").format(
        Markup(' class="language-{}"').format(language) if language else "", code
    )


def _inline_text(inline: Token) -> str:
    return " ".join(child.content for child in inline.children or () if child.type in ("text", "code_inline", "image"))


def _normalize(text: str) -> str:
    return "".join(_WORD.findall(text.casefold()))
