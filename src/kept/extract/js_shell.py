"""Detect pages that are empty until their scripts have run.

All of these must hold, so that a short page, or one of links only, is not mistaken for one:

    next to no text, no heading, hardly a link
    scripts
    a mount point of a known framework, or a <noscript> that asks for JavaScript
"""

import re

from selectolax.lexbor import LexborHTMLParser

MAX_MARKDOWN_LENGTH = 300
"""Characters of Markdown: longer pages are not checked."""

MAX_TEXT_LENGTH = 160  # characters outside of scripts: a name, "Loading …", a footer
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
    asks_for_javascript = any(_MENTIONS_JAVASCRIPT.search(node.html or "") for node in page.css("noscript"))
    page.strip_tags(_IGNORED_TAGS, recursive=True)
    body = page.body
    if body is None or page.css_first("h1, h2, h3, frame") or len(page.css("a[href]")) > MAX_LINKS:
        return False
    if len(" ".join(body.text(separator=" ").split())) > MAX_TEXT_LENGTH:
        return False
    return asks_for_javascript or page.css_first(_MOUNT_POINTS) is not None
