"""The lines of an AsciiDoc page after its conditions: what is left of ifdef, ifndef and ifeval, and of includes.

read_lines       the text of a page -> its lines
looks_like_asciidoc    whether a text file without the suffix is AsciiDoc
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

_DIRECTIVE = re.compile(r"(ifdef|ifndef|ifeval|endif|include)::([^\s\[\]]*)\[(.*)\]\s*$")
_ATTRIBUTE_ENTRY = re.compile(r":(!?)([\w][\w-]*)(!?):(?:[ \t]+(.*))?$")
_EQUALITY = re.compile(r"\"?([^\"=<>!]*?)\"?\s*(==|!=|>=|<=|<|>)\s*\"?([^\"]*)\"?")
_INCLUDE = re.compile(r"^include::([^\s\[\]{}]{1,500})\[", re.MULTILINE)
_TAGS = re.compile(r"\btags?=\"?([\w;,-]+)")
_TAG_MARK = re.compile(r"\b(tag|end)::([\w-]{1,100})\[\]")
_MAX_DEPTH = 100
MAX_INCLUDE_DEPTH = 10
MAX_INCLUDED_LINES = 100_000

# Attributes that Asciidoctor sets for HTML.
_GIVEN = frozenset(
    {"asciidoctor", "backend-html5", "basebackend-html", "backend", "doctype-article", "asciidoctor-version"}
)

_SIGNS = re.compile(
    r"^(?:(?P<title>=[ \t]\S.*|\w.*\n={4,}[ \t]*)|(?P<section>={2,5}[ \t]\S.*|\w.*\n[-~^]{4,}[ \t]*)"
    r"|(?P<block>\[(?:source|listing|verse|NOTE|TIP|\[|quote|horizontal)[^\]\n]*\]?\]"
    r"|(?:-{4,}|={4,}|\|={3,}|\.{4,})[ \t]*)"
    r"|(?P<attribute>:(?!orphan)[a-z][\w-]*:(?:[ \t].*)?)|(?P<term>\S.{0,150}::[ \t]*\n[ \t]*\S.*)"
    r"|(?P<directive>(?:include|ifdef|ifndef|endif)::\S*\[.*\][ \t]*)|(?P<continuation>\+))$"
    r"|(?P<macro>\b(?:linkgit|link|xref|image):\S+\[)|(?P<reference><<[\w-]+(?:,[^>\n]+)?>>)",
    re.MULTILINE,
)
_RST = re.compile(r"^\.\. \w+(?:::|:)|:\w+:`[^`\n]+`|^\.\. _", re.MULTILINE)


def looks_like_asciidoc(text: str) -> bool:
    """Return whether a text is AsciiDoc: it has a title or sections, and at least one kind of its other markup."""
    sample = text[:20_000]
    kinds: dict[str, int] = {}
    for match in _SIGNS.finditer(sample):
        kinds[match.lastgroup or ""] = kinds.get(match.lastgroup or "", 0) + 1
    if _RST.search(sample):
        return False
    own = {"directive", "macro", "reference", "continuation", "term", "attribute"} & kinds.keys()
    has_structure = bool({"title", "section"} & kinds.keys())
    return len(own) >= 2 or (has_structure and len(own) >= 1 and len(kinds) >= 3)


def find_includes(text: str) -> list[str]:
    """Return the names of the files that a page includes, as it writes them."""
    return list(dict.fromkeys(_INCLUDE.findall(text)))


def read_lines(
    text: str, define: Callable[[str, str], None], attributes: dict[str, str], files: Mapping[str, bytes]
) -> list[str]:
    """Return the lines that hold; attributes are defined on the way. An include becomes the lines of its file.

    A file that is not given, that includes itself, or for which no space is left, is a line that names it.
    """
    lines: list[str] = []
    open_conditions: list[bool] = []
    sources = [(iter(text.split("\n")), "")]  # of the page and, inside it, of the files that are open
    left = MAX_INCLUDED_LINES
    while sources:
        line = next(sources[-1][0], None)
        if line is None:
            sources.pop()
            continue
        line = line.rstrip()
        directive = _DIRECTIVE.match(line) if "::" in line else None
        if directive is None:
            if all(open_conditions):
                if line.startswith(":") and (entry := _ATTRIBUTE_ENTRY.match(line)):
                    if entry[1] or entry[3]:
                        attributes.pop(entry[2].lower(), None)
                    else:
                        define(entry[2], entry[4] or "")
                lines.append(line)
            continue
        name, target, content = directive.groups()
        if name == "endif":
            if open_conditions:
                open_conditions.pop()
        elif name == "include":
            body = files.get(target)
            if body is not None and all(open_conditions) and all(target != name for _, name in sources):
                included = _selected(body.decode("utf-8", "replace").split("\n"), content)
                if len(included) <= left and len(sources) <= MAX_INCLUDE_DEPTH:
                    left -= len(included)
                    sources.append((iter(included), target))
                    continue
            if all(open_conditions):
                lines.append(f"include::{target}[]")
        elif len(open_conditions) < _MAX_DEPTH:
            holds = _holds(name, target, content, attributes)
            if content and name != "ifeval":
                if holds and all(open_conditions):
                    lines.append(content)
            else:
                open_conditions.append(holds)
    return lines


def _selected(lines: list[str], options: str) -> list[str]:
    """Return the lines of an included file between the marks of its tags, if any are named; never the marks."""
    wanted = _TAGS.search(options)
    names = set(re.split(r"[;,]", wanted[1])) if wanted else set()
    selected: list[str] = []
    inside: set[str] = set()
    for line in lines:
        if mark := _TAG_MARK.search(line):
            inside = inside | {mark[2]} if mark[1] == "tag" else inside - {mark[2]}
        elif not names or names & inside:
            selected.append(line)
    return selected


def _holds(name: str, target: str, content: str, attributes: dict[str, str]) -> bool:
    if name == "ifeval":
        equality = _EQUALITY.match(content.strip())
        if not equality:
            return False
        left = re.sub(r"\{([\w-]+)\}", lambda match: attributes.get(match[1], ""), equality[1])
        return (left == equality[3]) == (equality[2] in ("==", ">=", "<="))
    known = [part in attributes or part in _GIVEN for part in re.split(r"[,+]", target)]
    is_set = all(known) if "+" in target else any(known)
    return is_set == (name == "ifdef")
