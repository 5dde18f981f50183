"""Whether a page says nothing before its scripts have run.

All of these have to be true, so that a short page, or one of links only, is taken at its word:

    next to no words, no heading, hardly a link
    scripts
    a place for them to write to, as the frameworks call it; or a word to those who have switched scripts off
"""

import re

from selectolax.lexbor import LexborHTMLParser

MAX_MARKDOWN_LENGTH = 300
"""Characters of Markdown: only a page with no more than these is looked at."""

MAX_TEXT_LENGTH = 160  # characters outside of its scripts: a name, "Loading …", a line at the foot
MAX_LINKS = 3

_SCRIPT = re.compile(r"<script\b", re.IGNORECASE)
_MENTIONS_JAVASCRIPT = re.compile(r"java\s?script", re.IGNORECASE)
_IGNORED_TAGS = ["script", "style", "noscript", "template", "svg", "iframe"]

_MOUNT_POINTS = (
    "#app, #root, #__next, #__nuxt, #___gatsby, #svelte, #q-app, #react-root, #redoc, #redoc-container, #swagger-ui,"
    "app-root, [ng-app], redoc, rapi-doc, elements-api"
)


def is_js_shell(html: str) -> bool:
    if not _SCRIPT.search(html):
        return False
    page = LexborHTMLParser(html)
    asks = any(_MENTIONS_JAVASCRIPT.search(node.html or "") for node in page.css("noscript"))
    page.strip_tags(_IGNORED_TAGS, recursive=True)
    body = page.body
    if body is None or page.css_first("h1, h2, h3, frame") or len(page.css("a[href]")) > MAX_LINKS:
        return False
    if len(" ".join(body.text(separator=" ").split())) > MAX_TEXT_LENGTH:
        return False
    return asks or page.css_first(_MOUNT_POINTS) is not None
