"""Signatures of documented objects: what is shown, the object's name, and the ids that Sphinx gives it.

Pure functions over strings. Sphinx mangles the ids of C++ names; ours are the plain names.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from kept.extract.rst.page import Page

OBJECT_TYPES: Final = {
    "py": frozenset({
        "function", "data", "exception", "class", "method", "classmethod", "staticmethod", "attribute", "property",
        "decorator", "decoratormethod", "type", "abstractmethod", "coroutinefunction", "coroutinemethod",
        "awaitablefunction", "awaitablemethod",
    }),
    "c": frozenset({"function", "member", "var", "macro", "struct", "union", "enum", "enumerator", "type"}),
    "cpp": frozenset({
        "class", "struct", "function", "member", "var", "type", "concept", "union", "enum", "enum-struct",
        "enum-class", "enumerator", "alias",
    }),
    "js": frozenset({"function", "method", "class", "data", "attribute"}),
    "rst": frozenset({"directive", "directive:option", "role"}),
    "std": frozenset({
        "option", "cmdoption", "django-admin-option", "envvar", "confval", "describe", "object", "django-admin",
        "opcode", "pdbcommand", "2to3fixer", "monitoring-event", "event",
    }),
}  # fmt: skip
CONTAINERS: Final = frozenset(
    {"class", "exception", "struct", "union", "enum", "enum-class", "enum-struct", "type", "directive"}
)


def split_object_type(name: str, domain: str) -> tuple[str, str] | None:
    """Return the domain and the object type that a directive's name stands for; None for any other name."""
    named, colon, objtype = name.partition(":")
    if colon and objtype in OBJECT_TYPES.get(named, ()):
        return named, objtype
    if colon and named != "std":
        return None
    objtype = name.removeprefix("std:")
    return next((((d, objtype)) for d in (domain, "std", "py") if objtype in OBJECT_TYPES.get(d, ())), None)


_NON_ID: Final = re.compile(r"[^a-zA-Z0-9._]+")
_ID_ENDS: Final = re.compile(r"^[-0-9._]+|-+$")
_SPECIAL_LETTERS: Final = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ß": "sz", "æ": "ae", "œ": "oe", "þ": "th"})


def sphinx_id(text: str) -> str:
    """Return the id that Sphinx makes of a name: letters, digits, dots, underscores and hyphens, case kept."""
    plain = unicodedata.normalize("NFKD", text.translate(_SPECIAL_LETTERS)).encode("ascii", "ignore").decode("ascii")
    return _ID_ENDS.sub("", _NON_ID.sub("-", " ".join(plain.split())))


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedSignature:
    """One signature of an object."""

    text: str  # as shown
    name: str  # full: module, class and own name
    ids: tuple[str, ...]  # the first one is that of links


_PYTHON: Final = re.compile(r"^([\w.]*\.)?(\w+)\s*(\[.*\])?\s*((?:\(.*\))?(?:\s*->\s*.*)?)$", re.DOTALL)
_C_NAME: Final = re.compile(r"([A-Za-z_][\w.]*)\s*(?:\(|\[|$|=|:)")
_CPP_NAME: Final = re.compile(
    r"((?:[A-Za-z_]\w*(?:<[^<>()]*>)?::)*~?(?:operator\s*[^\s(]+|[A-Za-z_]\w*))\s*(?:\(|\[|$|=|:(?!:))"
)
_JS_NAME: Final = re.compile(r"^((?:[\w$]+\.)*[\w$]+)\s*(\(.*\))?", re.DOTALL)
_OPTION: Final = re.compile(r"((?:/|--|-|\+)?[^\s=\[,]+)(=?\s*.*)")

_PYTHON_PREFIXES: Final = {
    "class": "class ", "exception": "exception ", "classmethod": "classmethod ", "staticmethod": "static ",
    "property": "property ", "abstractmethod": "abstract ", "decorator": "@", "decoratormethod": "@", "type": "type ",
    "coroutinefunction": "coroutine ", "coroutinemethod": "coroutine ", "awaitablefunction": "awaitable ",
    "awaitablemethod": "awaitable ",
}  # fmt: skip
_FLAG_PREFIXES: Final = {
    "abstractmethod": "abstract ", "abstract": "abstract ", "async": "async ", "classmethod": "classmethod ",
    "staticmethod": "static ", "final": "final ", "coroutine": "coroutine ",
}  # fmt: skip
_PYTHON_CALLABLES: Final = frozenset(
    [
        "function",
        "method",
        "classmethod",
        "staticmethod",
        "abstractmethod",
        "coroutinefunction",
        "coroutinemethod",
        "awaitablefunction",
        "awaitablemethod",
    ]
)
_PYTHON_MODULE_LEVEL: Final = frozenset(
    {"function", "class", "exception", "data", "decorator", "type", "coroutinefunction", "awaitablefunction"}
)
_KEYWORDS: Final = {
    "c": frozenset({"struct", "union", "enum", "enumerator", "type"}),
    "cpp": frozenset(
        {"class", "struct", "union", "enum", "enum-class", "enum-struct", "enumerator", "type", "concept"}
    ),
}


def parse_signature(
    domain: str, objtype: str, text: str, page: Page, options: dict[str, str | None]
) -> ParsedSignature:
    """Return a signature as shown, its name and ids. What cannot be parsed is its own name."""
    text = " ".join(text.replace("\\", "").split()) if domain not in ("py", "js") else " ".join(text.split())
    match domain:
        case "py":
            return _parse_python(objtype, text, page, options)
        case "c":
            return _parse_c_family("c", objtype, text, page, _C_NAME)
        case "cpp":
            return _parse_c_family("cpp", objtype, text, page, _CPP_NAME)
        case "js":
            match_ = _JS_NAME.match(text)
            name = ".".join(filter(None, [page.module, *page.class_path, match_[1] if match_ else text]))
            return ParsedSignature(
                text=f"class {text}" if objtype == "class" else text, name=name, ids=(sphinx_id(name),)
            )
        case "rst":
            name = _rst_name(objtype, text)
            shown = (
                f".. {text.removeprefix('.. ')}{'' if '::' in text else '::'}"
                if objtype == "directive"
                else f":{name}:"
            )
            if objtype == "directive:option":
                name = ":".join([*page.class_path[-1:], name])
            return ParsedSignature(text=shown, name=name, ids=(sphinx_id(f"{objtype.replace(':', '-')}-{name}"),))
    return _parse_standard(objtype, text, page)


def _rst_name(objtype: str, text: str) -> str:
    """Return the name of a directive, an option or a role, which may be that of a domain: 'c:member'."""
    text = text.removeprefix(".. ").strip(": ")
    words = text.partition("::" if objtype == "directive" else ": ")[0].split()
    return words[0] if words else text


def _parse_python(objtype: str, text: str, page: Page, options: dict[str, str | None]) -> ParsedSignature:
    match = _PYTHON.match(text)
    if match is None:
        return ParsedSignature(text=text, name=text, ids=(sphinx_id(text),))
    prefix, own, _, rest = (group or "" for group in match.groups())
    module, classes = options.get("module") or page.module, ".".join(page.class_path)
    prefix = prefix.rstrip(".")
    if classes:
        if prefix == classes or prefix.startswith(f"{classes}."):
            name, shown = f"{prefix}.{own}", own if prefix == classes else f"{prefix[len(classes) + 1 :]}.{own}"
        else:
            name, shown = ".".join(filter(None, [classes, prefix, own])), ".".join(filter(None, [prefix, own]))
    else:
        name = shown = ".".join(filter(None, [prefix, own]))
        if not prefix and module and page.shows_modules and objtype in _PYTHON_MODULE_LEVEL:
            shown = f"{module}.{own}"
    full = f"{module}.{name}" if module and not name.startswith(f"{module}.") else name
    kind = _PYTHON_PREFIXES.get(objtype, "") + "".join(
        word for flag, word in _FLAG_PREFIXES.items() if flag in options and flag != objtype
    )
    if not rest and objtype in _PYTHON_CALLABLES:
        rest = "()"
    type_, value = options.get("type"), options.get("value")
    rest += (f": {type_}" if type_ else "") + (f" = {value}" if value else "")
    return ParsedSignature(text=f"{kind}{shown}{match[3] or ''}{rest}", name=full, ids=(sphinx_id(full),))


def _parse_c_family(domain: str, objtype: str, text: str, page: Page, pattern: re.Pattern[str]) -> ParsedSignature:
    declaration = text.rstrip(";")
    match = pattern.search(declaration)
    name = match[1] if match else declaration
    separator = "." if domain == "c" else "::"
    outer = [part for part in page.class_path if objtype != "macro"]
    full = separator.join([*outer, name])
    shown = (
        f"{objtype.replace('-', ' ')} {text}" if objtype in _KEYWORDS[domain] and not text.startswith(objtype) else text
    )
    return ParsedSignature(text=shown, name=full, ids=(sphinx_id(f"{domain}.{full}" if domain == "c" else full),))


def _parse_standard(objtype: str, text: str, page: Page) -> ParsedSignature:
    if objtype in ("option", "cmdoption", "django-admin-option"):
        ids, names = [], []
        for form in text.split(", "):
            match = _OPTION.match(form.strip())
            if not match:
                continue
            names.append(match[1])
            words = ["cmdoption", *filter(None, [page.program]), *([] if match[1][0] in "-/+" else ["arg"])]
            ids.append(sphinx_id(f"{'-'.join(words)}-{match[1]}"))
        return ParsedSignature(text=text, name=names[0] if names else text, ids=tuple(ids))
    name = text
    if objtype in ("describe", "object"):
        return ParsedSignature(text=text, name=text, ids=())
    if objtype in ("django-admin", "opcode", "pdbcommand"):
        name = text.split(" ")[0].split("(")[0]
    if objtype == "django-admin":
        text, page.program = f"django-admin {text}", name
    return ParsedSignature(text=text, name=name, ids=(sphinx_id(f"{objtype}-{name}"),))
