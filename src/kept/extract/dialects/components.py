"""The components of MDX: what their attributes say, in Markdown.

read_attributes      the attributes of a tag
write_label          the line that stands for a component: its title, its link, the name of a parameter
write_descriptions   the names, types and descriptions in the data that it is given
"""

from __future__ import annotations

import re
from typing import Final

from kept.extract.html.markdown_text import code_span

MAX_TAG_LENGTH: Final = 60_000

ADMONITIONS: Final = frozenset({
    "note", "tip", "info", "warning", "caution", "danger", "important", "hint", "attention", "error", "seealso",
    "abstract", "summary", "tldr", "success", "check", "done", "question", "help", "faq", "failure", "fail", "missing",
    "bug", "example", "quote", "cite", "todo", "admonition", "callout", "aside", "alert", "details", "warn", "todolist",
    "dropdown", "secondary", "deprecated", "versionadded", "versionchanged", "callout-note", "callout-tip",
    "callout-warning", "callout-important", "callout-caution", "block", "security", "experimental", "cardinal",
})  # fmt: skip
_LABELLED: Final = frozenset({
    "tab", "tabitem", "tabpanel", "tab-item", "step", "accordion", "expandable", "update", "panel", "detail", "view",
    "code-block", "codeblock", "card", "linkcard", "paramfield", "responsefield", "param", "property", "field",
    "grid-item-card", "cardtitle", "listcard", "tile",
})  # fmt: skip
_FIELDS: Final = frozenset({"paramfield", "responsefield", "param", "property", "field"})
_ATTRIBUTE = re.compile(
    r"([A-Za-z_][\w:-]*)\s*(?:=\s*(?:\"([^\"]*)\"|'([^']*)'|\{\s*[\"'`]([^\"'`]*)[\"'`]\s*\}|([^\s{}\"'>]+)))?"
)
_DATA = re.compile(r"\b(name|title|type|description)\s*:\s*([\"'`])((?:(?!\2)[^\\]|\\.){1,2000})\2", re.DOTALL)
_BLOCK_COMPONENTS: Final = frozenset({"tabs", "steps", "cards", "cardgroup", "codegroup", "cardgrid", "accordiongroup"})


def is_block_component(name: str) -> bool:
    kind = name.lower()
    return kind in ADMONITIONS or kind in _LABELLED or kind in _BLOCK_COMPONENTS


def write_label(kind: str, title: str, attributes: dict[str, str]) -> str:
    """Return the line that stands for a component's own attributes, in Markdown; '' if there is none."""
    if kind in _FIELDS:
        places = ("name", "path", "query", "body", "header", "id")
        name = next((attributes[key] for key in places if attributes.get(key)), title)
        details = ", ".join(filter(None, (attributes.get("type"), "required" if "required" in attributes else "")))
        return f"**{name}**" + (f" ({details})" if details else "") if name else ""
    if kind in ("details", "dropdown"):
        title = title or attributes.get("summary", "")
    elif kind in ("tab", "tabitem", "tabpanel", "tab-item", "update", "step", "view"):
        title = title or attributes.get("label") or attributes.get("name") or attributes.get("value") or ""
    href = attributes.get("href") or attributes.get("to") or attributes.get("link") or attributes.get("url") or ""
    if not title and href:
        title = attributes.get("label") or attributes.get("text") or ""
    if title and href and "\n" not in href and " " not in href:
        return f"[{title}]({href})"
    return f"**{' '.join(title.split())}**" if title else ""


def write_descriptions(source: str) -> list[str]:
    """Return the names, types and descriptions in the data that a component is given, as tables of properties are."""
    entries: list[str] = []
    for match in _DATA.finditer(source if "[" in source else ""):
        key, value = match[1], " ".join((match[3] or "").split())
        if key in ("name", "title"):
            entries.append(f"**{value}**")
        elif entries:
            entries[-1] += f" ({code_span(value)})" if key == "type" else f": {value}"
    return entries


def read_attributes(source: str) -> dict[str, str]:
    return {
        match[1]: next((value for value in match.groups()[1:] if value is not None), "")
        for match in _ATTRIBUTE.finditer(source[:MAX_TAG_LENGTH])
    }
