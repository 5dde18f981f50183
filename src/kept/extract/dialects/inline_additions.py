"""Turns into plain Markdown what dialects add inside a line.

Roles of MyST, wiki links, components, attribute lists, expressions.

replace_inline_additions    a line -> the same in CommonMark; code spans are left alone
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

from kept.extract.html.markdown_text import code_span

_CODE_SPAN = re.compile(r"(\{[a-z][\w:+.-]{0,40}\})?(`+)((?:[^`]|(?!(?<!`)\2(?!`))`)*)(?<!`)\2(?!`)")
_EXPLICIT_TITLE = re.compile(r"(.+?)\s*<([^<>]+)>", re.DOTALL)
_WIKI_LINK = re.compile(r"(!?)\[\[([^\[\]|#\n]{0,200})(#[^\[\]|\n]{0,200})?(?:\|([^\[\]\n]{1,300}))?\]\](?!\()")
_COMPONENT = re.compile(r"</?([A-Z][\w.]{0,60})((?:\s[^<>{}]{0,400}|\s?\{[^{}<>]{0,200}\}){0,8}?)\s*/?>")
_TEXT_ATTRIBUTE = re.compile(r"\b(?:text|label|title|name)\s*=\s*[\"']([^\"'<>]{1,200})[\"']")
_ATTRIBUTES = re.compile(r"[ \t]*\{:(?![^{}\n]*#)[^{}\n]{0,300}\}")  # anchors stay
_CLASSES = re.compile(r"(?<=[)\]`*_])\{\s*[.#][^{}\n]{0,300}\}")
_COMMENT = re.compile(r"\{/\*(?!\s*#).{0,2000}?\*/\}")
_STRING_EXPRESSION = re.compile(r"\{\s*([\"'])((?:(?!\1)[^{}\n]){0,200})\1\s*\}")
_TEXT_ROLES: Final = frozenset({
    "ref", "numref", "term", "abbr", "eq", "guilabel", "menuselection", "sub", "sup", "keyref", "cite", "strong",
    "emphasis", "index", "label", "u",
})  # fmt: skip
_MAX_LINE_LENGTH = 20_000


def replace_inline_additions(line: str, closed_tags: Collection[str]) -> str:
    """Return the line in CommonMark. Components count if they are closed somewhere on the page, or in themselves."""
    if len(line) > _MAX_LINE_LENGTH or not any(mark in line for mark in ("{", "[[", "<")):
        return line
    if "`" not in line:
        return _replace_in_text(line, closed_tags)
    pieces: list[str] = []
    at = 0
    for span in _CODE_SPAN.finditer(line):
        pieces.append(_replace_in_text(line[at : span.start()], closed_tags))
        pieces.append(_role_text(span[1][1:-1], span[3]) if span[1] else span[0])
        at = span.end()
    pieces.append(_replace_in_text(line[at:], closed_tags))
    return "".join(pieces)


def _replace_in_text(text: str, closed_tags: Collection[str]) -> str:
    if "[[" in text:
        text = _WIKI_LINK.sub(_wiki_link, text)
    if "{" in text:
        text = _COMMENT.sub("", text)
        text = _ATTRIBUTES.sub("", text)
        text = _CLASSES.sub("", text)
        text = _STRING_EXPRESSION.sub(r"\2", text)
    if "<" in text:
        text = _COMPONENT.sub(lambda tag: _component_text(tag, closed_tags), text)
    return text


def _component_text(tag: re.Match[str], closed_tags: Collection[str]) -> str:
    if tag[0].endswith("/>"):
        named = _TEXT_ATTRIBUTE.search(tag[2])
        return named[1] if named else ""
    return "" if tag[1] in closed_tags else tag[0]


def _wiki_link(link: re.Match[str]) -> str:
    embeds, page, anchor, text = link.groups()
    page, anchor = page.strip(), (anchor or "").replace(" ", "-").lower()
    text = text or page or anchor.lstrip("#")
    if not text or embeds or not re.search(r"\w", text):
        return text or link[0]
    target = page.replace(" ", "%20")
    if page and not re.search(r"\.\w{1,5}$", page):
        target += ".md"
    return f"[{text.strip()}]({target}{anchor})"


def _role_text(role: str, text: str) -> str:
    """Return the text of {role}`text`: its title or, for names of code, the last part of a name that begins with ~."""
    name = role.rpartition(":")[2]
    explicit = _EXPLICIT_TITLE.fullmatch(text)
    if name in ("doc", "download"):
        title, target = (explicit[1], explicit[2]) if explicit else (text, text)
        suffix = "" if re.search(r"\.\w{1,8}$", target) else ".md"
        return f"[{title}]({target}{suffix})"
    if explicit and name != "code":
        text = explicit[1]
        if explicit[2].startswith(("https://", "http://")):
            return f"[{text}]({explicit[2]})"
    if name in _TEXT_ROLES:
        return text
    if text.startswith("~"):
        text = text[1:].rpartition(".")[2]
    return code_span(text.lstrip("!"))
