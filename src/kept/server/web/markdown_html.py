"""Renders a document's Markdown as harmless HTML: no markup of its own, no images, only safe links."""

import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from kept.model.url import get_fragment, resolve_link, with_fragment
from kept.service.documents import DocumentHeading

MAX_RENDERED_CHARACTERS = 300_000  # a longer text is shown as plain text
MAX_MARKUP = 60_000  # and one with more markup: it takes over a second to parse
BRACKET_WEIGHT = 4  # looking for the other end of a bracket takes longest
_WORD = re.compile(r"\w+")


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    parser.add_render_rule("table_open", lambda *_: '<div class="scroll" tabindex="0"><table>')
    parser.add_render_rule("table_close", lambda *_: "</table></div>")
    return parser


class MarkdownPage:
    """The parsed Markdown of a page."""

    def __init__(self, markdown: str, url: str) -> None:
        self._url = url
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

    def html(self, headings: Sequence[DocumentHeading], kept: Mapping[str, str]) -> Markup:
        """Render the page. ``kept`` maps URLs of kept documents to the paths of their own pages here."""
        if self._plain is not None:
            return Markup("<pre>{}</pre>").format(self._plain)
        _set_heading_anchors(self._tokens, headings)
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


def _inline_text(inline: Token) -> str:
    return " ".join(child.content for child in inline.children or () if child.type in ("text", "code_inline", "image"))


def _normalize(text: str) -> str:
    return "".join(_WORD.findall(text.casefold()))
