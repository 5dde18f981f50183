"""The names that a page of reStructuredText gives to places, and those it refers to, found without parsing it.

    scan_names         the labels, objects and titles of a page, for the pages that refer to them
    find_references    what a page refers to
    find_includes      the files that a page includes

Everything here takes time linear in the text and imports nothing large: the crawl calls it, not a reader process.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final

from kept.extract.rst.page import Page
from kept.extract.rst.signatures import CONTAINERS, parse_signature, sphinx_id, split_object_type

MAX_NAMES: Final = 20_000
"""Names of one page that can be referred to. Generated references may have more than anyone links to."""

_STANDARD_PREFIXES: Final = {
    "setting": "std-setting", "ttag": "std-templatetag", "tfilter": "std-templatefilter",
    "lookup": "std-fieldlookup", "djadmin": "django-admin", "envvar": "envvar", "confval": "confval",
    "opcode": "opcode", "pdbcmd": "pdbcommand", "event": "event", "term": "term", "rst:dir": "directive",
    "rst:role": "role", "token": "grammar-token",
}  # fmt: skip
# Of Sphinx and of what it is usual to name: references that are shown as code, and those that are shown as text.
CODE_REFERENCES: Final = frozenset(
    [
        "py:func",
        "py:meth",
        "py:class",
        "py:mod",
        "py:attr",
        "py:data",
        "py:const",
        "py:exc",
        "py:obj",
        "py:type",
        "py:deco",
        "c:func",
        "c:member",
        "c:data",
        "c:var",
        "c:macro",
        "c:struct",
        "c:union",
        "c:enum",
        "c:enumerator",
        "c:type",
        "c:expr",
        "c:texpr",
        "cpp:any",
        "cpp:class",
        "cpp:struct",
        "cpp:func",
        "cpp:member",
        "cpp:var",
        "cpp:type",
        "cpp:concept",
        "cpp:enum",
        "cpp:enumerator",
        "cpp:expr",
        "js:mod",
        "js:func",
        "js:meth",
        "js:class",
        "js:data",
        "js:attr",
        "rst:dir",
        "rst:role",
        "rst:directive",
        "option",
        "envvar",
        "token",
        "keyword",
        "confval",
        "setting",
        "ttag",
        "tfilter",
        "djadmin",
        "lookup",
        "djadminopt",
        "tag",
        "filter",
        "opcode",
        "pdbcmd",
        "monitoring-event",
        "event",
    ]
)
TEXT_REFERENCES: Final = frozenset({"ref", "doc", "term", "numref", "any", "download", "eq", "cite"})
LABEL_ROLES: Final = frozenset({"ref", "numref", "any"})

_LINE: Final = re.compile(
    r"^(?P<indent>[ \t]*)\.\.[ \t]+(?:_(?P<label>`[^`\n]+`|(?:\\:|[^:\n])+):[ \t]*$"
    r"|(?:\|[^|\n]*\|[ \t]+)?(?P<name>[a-zA-Z][\w:+.-]*)::[ \t]*(?P<argument>[^\n]*))",
    re.MULTILINE,
)
_TITLE: Final = re.compile(
    r"^(?:([=\-~^\"'`#*+.:_<>!$%&,;?@/|\\])\1{2,}[ \t]*\n)?[ \t]{0,3}(?P<title>\S[^\n]{0,300})\n"
    r"(?P<line>([=\-~^\"'`#*+.:_<>!$%&,;?@/|\\])\4{1,})[ \t]*$",
    re.MULTILINE,
)
_ROLE: Final = re.compile(r":([a-zA-Z][\w+.-]*(?::[a-zA-Z][\w+.-]*){0,2}):`([^`]{1,500})`")
_EXPLICIT: Final = re.compile(r"<([^<>]+)>$")
_INCLUDE: Final = re.compile(r"^[ \t]*\.\.[ \t]+(include|literalinclude)::[ \t]+(\S[^\n]*?)[ \t]*$", re.MULTILINE)
_CSV_FILE: Final = re.compile(r"^[ \t]+:file:[ \t]+(\S[^\n]*?)[ \t]*$", re.MULTILINE)
_TITLE_ROLE: Final = re.compile(r":[\w:+.-]+:`[!~]?([^`<]*?)(?:\s*<[^`]*>)?`")
_GLOSSARY_TERM: Final = re.compile(r"^([ \t]+)(\S[^\n]*)$", re.MULTILINE)
_NO_INDEX: Final = re.compile(r"^[ \t]+:no-?index:", re.MULTILINE)
_NOT_ID: Final = re.compile(r"[^a-z0-9]+")


@dataclass(slots=True)
class PageNames:
    """The names that a page defines."""

    title: str = ""
    labels: dict[str, tuple[str, str]] = field(default_factory=dict)  # to the anchor and the title behind it
    ids: dict[str, None] = field(default_factory=dict)  # of objects


def qualify_role(role: str, domain: str) -> str:
    """Return a role with its domain: 'meth' is 'py:meth' on most pages."""
    role = role.removeprefix("std:")
    if ":" in role or role in TEXT_REFERENCES or role in CODE_REFERENCES:
        return role
    return next((name for name in (f"{domain}:{role}", f"py:{role}") if name in CODE_REFERENCES), role)


def label_id(label: str) -> str:
    """Return the id that docutils makes of a label: lower case, hyphens."""
    return _NOT_ID.sub("-", label.lower()).lstrip("-0123456789").rstrip("-")


def key_of(id_: str) -> str:
    """Return what ids of one name have in common, whatever module and class it is in."""
    return id_.rpartition(".")[2]


def scan_names(text: str) -> PageNames:
    """Return the names of a page. A title belongs to the labels right before it."""
    names = PageNames()
    page = Page()
    scopes: list[tuple[int, list[str]]] = []  # indentation of a description, and the names around what is in it
    titles = {match.start(): match for match in _TITLE.finditer(text)}
    first = next(iter(titles.values()), None)
    names.title = plain_title(first["title"]) if first else ""
    pending: list[str] = []
    for match in _LINE.finditer(text):
        if len(names.labels) + len(names.ids) >= MAX_NAMES:
            break
        indent = len(match["indent"].expandtabs())
        while scopes and scopes[-1][0] >= indent:
            page.class_path = scopes.pop()[1]
        if match["label"]:
            label = " ".join(match["label"].strip("`").replace("\\", "").split())
            pending.append(label)
            end = _skip_blank(text, match.end())
            title = titles.get(end)
            if title is not None or not text.startswith("..", end):
                shown = plain_title(title["title"]) if title else ""
                for name in pending:
                    names.labels.setdefault(name.lower(), (label_id(name), shown))
                pending = []
            continue
        for name in pending:
            names.labels.setdefault(name.lower(), (label_id(name), _next_title(text, match.end(), titles)))
        pending = []
        _add_directive(names, page, scopes, indent, match["name"].lower(), match["argument"].strip(), text, match.end())
    return names


def _skip_blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\n":
        position += 1
    return text.rfind("\n", 0, position) + 1 if position < len(text) else position


def _next_title(text: str, position: int, titles: dict[int, re.Match[str]]) -> str:
    """Return the title right behind a directive without content: `.. index::` and `.. setting::` stand before one."""
    title = titles.get(_skip_blank(text, position))
    return plain_title(title["title"]) if title else ""


def _add_directive(
    names: PageNames, page: Page, scopes: list[tuple[int, list[str]]], indent: int, name: str, argument: str,
    text: str, end: int,
) -> None:  # fmt: skip
    match name:
        case "module" | "py:module" | "automodule":
            page.module = argument
            names.ids[f"module-{sphinx_id(argument)}"] = None
        case "currentmodule" | "py:currentmodule":
            page.module = "" if argument == "None" else argument
        case "default-domain":
            page.domain = argument.lower()
        case "program":
            page.program = "" if argument == "None" else "-".join(argument.split())
        case "setting" | "templatetag" | "templatefilter" | "fieldlookup":
            names.ids[sphinx_id(f"std-{name}-{argument}")] = None
        case "glossary":
            _add_terms(names, indent, text, end)
        case "autoclass" | "autofunction" | "automethod" | "autoexception" | "autoattribute" | "autodata":
            full = argument.partition("(")[0].replace("::", ".").strip()
            names.ids[sphinx_id(full if "." in full or not page.module else f"{page.module}.{full}")] = None
        case _:
            found = split_object_type(name, page.domain)
            if found is None:
                return
            domain, objtype = found
            lines = [argument, *_argument_lines(text, end)]
            first = ""
            is_silent = _NO_INDEX.search(text[end : end + 1000].partition("\n\n")[0]) is not None
            for line in filter(None, lines):
                parsed = parse_signature(domain, objtype, line, page, {})
                first = first or parsed.name
                if not is_silent:
                    names.ids.update(dict.fromkeys(filter(None, parsed.ids)))
            if objtype in CONTAINERS and first:
                scopes.append((indent, page.class_path))
                if domain == "py":
                    page.class_path = first.removeprefix(f"{page.module}.").split(".")
                else:
                    page.class_path = [*page.class_path, first.rpartition("." if domain != "cpp" else "::")[2]]


def _argument_lines(text: str, position: int) -> list[str]:
    """Return further signatures below the first one, up to an option or a blank line."""
    lines: list[str] = []
    while position < len(text) and len(lines) < 50:
        end = text.find("\n", position + 1)
        line = text[position + 1 : end if end >= 0 else len(text)]
        if not line.strip() or not line[0].isspace() or line.lstrip().startswith(":"):
            break
        lines.append(line.strip())
        position = end if end >= 0 else len(text)
    return lines


def _add_terms(names: PageNames, indent: int, text: str, position: int) -> None:
    term_indent = -1
    for line in text[position : position + 500_000].split("\n"):
        width = len(line) - len(line.lstrip())
        if not line.strip() or line.lstrip().startswith((":sorted:", "..")):
            continue
        if width <= indent or len(names.ids) >= MAX_NAMES:
            return
        term_indent = width if term_indent < 0 else term_indent
        if width == term_indent:
            names.ids[sphinx_id(f"term-{plain_title(line.partition(' : ')[0])}")] = None


def plain_title(title: str) -> str:
    """Return a title without its markup."""
    title = _TITLE_ROLE.sub(r"\1", title.strip())
    return " ".join(title.replace("`", "").replace("**", "").replace("\\", "").replace("---", "—").split())


def find_references(text: str) -> set[tuple[str, str]]:
    """Return the roles and targets of a page's references, as it writes them."""
    found = set()
    for role, body in _ROLE.findall(text):
        explicit = _EXPLICIT.search(body)
        target = " ".join((explicit[1] if explicit else body.lstrip("!~")).split())
        found.add((role.lower(), target))
    return found


def find_includes(text: str) -> list[tuple[str, bool]]:
    """Return the files that a page includes, in order, and whether they are markup as well."""
    found = {name: kind == "include" for kind, name in _INCLUDE.findall(text)}
    if ":file:" in text:
        found |= dict.fromkeys(_CSV_FILE.findall(text), False)
    return list(found.items())


def object_ids(role: str, target: str, page: Page) -> list[str]:
    """Return the ids that an object of this name may have, the most likely first."""
    target = target.removesuffix("()").strip()
    if role == "term":
        return [sphinx_id(f"term-{target}")]
    if role in _STANDARD_PREFIXES:
        return [sphinx_id(f"{_STANDARD_PREFIXES[role]}-{target}")]
    if role == "option":
        return _option_ids(target.partition("=")[0].split(), page)
    domain = role.partition(":")[0]
    if domain == "c":
        return [sphinx_id(f"c.{target}")]
    if role == "py:mod":
        return [f"module-{sphinx_id(target)}"]
    name = target.lstrip(".")
    classes = ".".join(page.class_path)
    scopes = ["", classes, page.module, ".".join(filter(None, [page.module, classes]))]
    full = dict.fromkeys(f"{scope}.{name}" if scope else name for scope in scopes)
    return [*map(sphinx_id, full), f"module-{sphinx_id(name)}"]


def _option_ids(words: list[str], page: Page) -> list[str]:
    """Return the ids of an option that may follow the name of its program."""
    if not words:
        return []
    programs = ["-".join(words[:-1])] if len(words) > 1 else [page.program, ""]
    marks = [] if words[-1][0] in "-/+" else ["arg"]
    return [sphinx_id("-".join(["cmdoption", *filter(None, [name]), *marks, words[-1]])) for name in programs]
