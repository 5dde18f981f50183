"""Detect pages that are empty until their scripts have run, and the API description that those would show.

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

_API_DESCRIPTION = re.compile(
    r"<(?:redoc|rapi-doc|openapi-explorer)\s[^<>]{0,500}?\bspec-url=[\"']([^\"'\s]{1,500})[\"']"
    r"|<elements-api\s[^<>]{0,500}?\bapiDescriptionUrl=[\"']([^\"'\s]{1,500})[\"']"
    r"|\bid=[\"']api-reference[\"'][^<>]{0,500}?\bdata-url=[\"']([^\"'\s]{1,500})[\"']"
    r"|\bRedoc\.init\(\s{0,50}[\"']([^\"'\s]{1,500})[\"']"
    r"|\bSwaggerUI(?:Bundle)?\(\s{0,50}\{[^{}]{0,500}?\burl[\"']?\s{0,50}:\s{0,50}[\"']([^\"'\s]{1,500})[\"']",
    re.IGNORECASE,
)


def find_api_description(html: str) -> str | None:
    """Return the link to the API description that the scripts of a page show (Redoc, Swagger UI, RapiDoc …)."""
    match = None if "<pre" in html else _API_DESCRIPTION.search(html)  # in <pre> it is an example
    return next(filter(None, match.groups()), None) if match else None


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
