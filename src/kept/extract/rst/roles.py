"""The roles of docutils and Sphinx: inline markup and references. Roles without a meaning here give their text."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, Final, TypeAlias

from docutils import nodes, utils

from kept.extract.rst.names import CODE_REFERENCES, TEXT_REFERENCES, qualify_role
from kept.extract.rst.nodes import CrossReference
from kept.extract.rst.page import Page

RoleResult: TypeAlias = tuple[list[nodes.Node], list[nodes.system_message]]
RoleFunction: TypeAlias = Callable[..., RoleResult]

_EXPLICIT_TITLE: Final = re.compile(r"^(.+?)\s*(?<!\x00)<([^<>]*)>$", re.DOTALL)
_PREFIX_MARKS: Final = "!~"
_BRACES: Final = re.compile(r"(?<!\\){([^{}]*)}")

_CALLABLE_ROLES: Final = frozenset({"py:func", "py:meth", "c:func", "cpp:func", "js:func", "js:meth"})
_CODE: Final = frozenset(
    [
        "code",
        "file",
        "samp",
        "kbd",
        "literal",
        "mailheader",
        "mimetype",
        "makevar",
        "regexp",
        "newsgroup",
        "cmd",
        "cpp:texpr",
        "c:texpr",
        "cpp:expr",
        "c:expr",
    ]
)
_STRONG: Final = frozenset({"strong", "command", "program", "guilabel"})
_EMPHASIS: Final = frozenset({"emphasis", "dfn", "title-reference", "title", "t", "manpage"})
_PREFIXES: Final = {
    "pep": "PEP ", "rfc": "RFC ", "cve": "CVE-", "cwe": "CWE ", "ticket": "#", "issue": "#", "pr": "#", "pull": "#",
    "gh": "gh-", "bpo": "bpo-", "user": "@", "ghuser": "@",
}  # fmt: skip


def find(name: str, page: Page) -> RoleFunction:
    """Return the function of a role. There is one for every name."""
    key = name.lower()
    if not key:
        key = page.default_role
    for _ in range(10):  # roles that the page defines may be based on each other, even in a circle
        if key not in page.roles:
            break
        key = page.roles[key]

    def run(
        name: str, rawtext: str, text: str, line: int, inliner: Any, options: Any = None, content: Any = ()
    ) -> RoleResult:
        return [make_node(key, rawtext, text, page)], []

    return run


def make_node(role: str, rawtext: str, text: str, page: Page) -> nodes.Node:
    """Return the node of an interpreted text."""
    full = qualify_role(role, page.domain)
    if full in CODE_REFERENCES or full in TEXT_REFERENCES:
        return _in_context(_reference(full, rawtext, text), page)
    plain = utils.unescape(text)
    role = role.rpartition(":")[2] if role.partition(":")[0] in ("std", "py", "c", "cpp", "js", "rst") else role
    if role in _CODE:
        return nodes.literal(rawtext, _BRACES.sub(r"\1", plain) if role in ("file", "samp") else plain)
    if role in _STRONG:
        return nodes.strong(rawtext, plain.replace("&&", "\0").replace("&", "").replace("\0", "&"))
    if role in _EMPHASIS:
        return nodes.emphasis(rawtext, plain)
    match role:
        case "menuselection":
            return nodes.strong(rawtext, plain.replace("-->", "‣"))
        case "math":
            return nodes.math(rawtext, utils.unescape(text, restore_backslashes=True))
        case "sub" | "subscript":
            return nodes.subscript(rawtext, plain)
        case "sup" | "superscript":
            return nodes.superscript(rawtext, plain)
        case "":
            return nodes.emphasis(rawtext, plain)
        case "index" | "raw":
            return nodes.Text("" if role == "raw" else _split_title(plain)[0])
        case "abbr" | "abbreviation" | "ac" | "acronym":
            return nodes.Text(plain)
    return _in_context(_unknown(role, rawtext, plain), page)


def _in_context(node: nodes.Node, page: Page) -> nodes.Node:
    """Let a reference know the module and class it is written in: they may be left out of its target."""
    if isinstance(node, CrossReference):
        node["context"] = Page(module=page.module, class_path=page.class_path, program=page.program)
    return node


def _split_title(text: str) -> tuple[str, str, bool]:
    """Return the title and the target of a reference, and whether the title is its author's."""
    match = _EXPLICIT_TITLE.match(text)
    return (match[1], match[2].strip(), True) if match else (text, text.strip(), False)


def _reference(role: str, rawtext: str, text: str) -> nodes.Node:
    title, target, is_explicit = _split_title(utils.unescape(text))
    is_code = role in CODE_REFERENCES
    if not is_explicit and target[:1] == "!":
        return nodes.literal(rawtext, target[1:]) if is_code else nodes.Text(target[1:])
    if is_code:
        target = target.lstrip(_PREFIX_MARKS)
        if not is_explicit:
            title = title.strip()
            title = re.split(r"\.|::", title[1:])[-1] if title[:1] == "~" else title.lstrip(".")
            if role in _CALLABLE_ROLES and not title.endswith(")"):
                title += "()"
    node = CrossReference(rawtext, title, role=role, target=" ".join(target.split()))
    node["is_code"], node["is_explicit"] = is_code and not is_explicit, is_explicit
    return node


def _unknown(role: str, rawtext: str, text: str) -> nodes.Node:
    title, target, is_explicit = _split_title(text)
    if not is_explicit and role in _PREFIXES:
        return nodes.Text(title if title.startswith(_PREFIXES[role].strip()) else f"{_PREFIXES[role]}{title}")
    node = CrossReference(rawtext, title.lstrip(_PREFIX_MARKS), role=role, target=target)
    node["is_code"], node["is_explicit"] = not is_explicit and " " not in title and title.isascii(), is_explicit
    return node
