"""Read a Python module as its documentation: the docstrings of the module, its classes and its functions.

    extract    the reader; the module's name comes from its URL

The code is parsed and never run. Names that begin with an underscore are left out, and so are objects that nothing
documents. The anchors are those of Sphinx: the whole dotted name.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import cleandoc
from textwrap import dedent
from urllib.parse import unquote

from kept.extract.html.markdown_text import code_span
from kept.extract.markup_writer import MarkupWriter
from kept.extract.sections import Extraction, Unreadable
from kept.extract.text import decode_text

MAX_BYTES = 2 * 1024 * 1024
MAX_SIGNATURE_LENGTH = 280

_FIELD = re.compile(
    r":(param|parameter|arg|argument|keyword|kwarg|ivar|var|raises?|returns?|rtype|type|yields?)\b ?"
    r"([^:\n]*):[ \t]*(.*)"
)
_ROLE = re.compile(r":[a-z]+(?::[a-z]+)?:`([^`<]*?)\s*(?:<([^`>]*)>)?`")
_LITERAL = re.compile(r"``([^`\n]+)``")
_UNDERLINE = re.compile(r"([-=~^\"'*#])\1{2,}")
_SESSION = re.compile(r"^[ \t]*(?:>>> |\.\.\. )")

Documented = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def extract(body: bytes, charset: str | None, url: str = "") -> Extraction | Unreadable:
    if len(body) > MAX_BYTES:
        return Unreadable(reason="a module too large to be read for its documentation")
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        module = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return Unreadable(reason="not a Python module that this version of Python can parse")
    name = _module_name(url)
    writer = MarkupWriter()
    if described := ast.get_docstring(module, clean=False):
        _write_docstring(writer, described, name)
    for statement in _public(module.body):
        _write_object(writer, statement, name, "", 2)
    if writer.is_empty:
        return Unreadable(reason="a module without documented names")
    return writer.to_extraction(name)


def _module_name(url: str) -> str:
    """Return the dotted name of the module at pypi:/NAME/package/module.py."""
    path = unquote(url.partition(":/")[2] or url).lstrip("/").partition("/")[2]
    return path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _public(body: list[ast.stmt]) -> Iterator[Documented]:
    """Yield classes and functions that have a public name, each name once, also below conditions at this level."""
    seen: set[str] = set()
    pending = list(reversed(body))
    while pending:
        statement = pending.pop()
        if isinstance(statement, ast.If | ast.Try):
            pending += reversed([*statement.body, *statement.orelse])
        elif (
            isinstance(statement, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
            and not statement.name.startswith("_")
            and statement.name not in seen
        ):
            seen.add(statement.name)
            yield statement


def _write_object(writer: MarkupWriter, node: Documented, module: str, owner: str, level: int) -> None:
    members = list(_public(node.body)) if isinstance(node, ast.ClassDef) else []
    described = ast.get_docstring(node, clean=False)
    if not described and not any(ast.get_docstring(member) for member in members):
        return
    name = f"{owner}{node.name}"
    signature = _signature(node, name)
    writer.add_heading(level, code_span(signature), text=signature, anchor=f"{module}.{name}" if module else name)
    if described:
        _write_docstring(writer, described)
    if isinstance(node, ast.ClassDef):
        start = _constructor(node)
        if start and (told := ast.get_docstring(start, clean=False)):
            _write_docstring(writer, told)
    for member in members:
        if level < 6:
            _write_object(writer, member, module, f"{name}.", level + 1)


def _signature(node: Documented, name: str) -> str:
    if isinstance(node, ast.ClassDef):
        start = _constructor(node)
        text = f"class {name}({_arguments(start.args, is_bound=True)})" if start else f"class {name}"
    else:
        decorators = {each.id for each in node.decorator_list if isinstance(each, ast.Name)}
        if decorators & {"property", "cached_property"}:
            return name
        text = f"{name}({_arguments(node.args, is_bound='.' in name and 'staticmethod' not in decorators)})"
        if node.returns is not None:
            text += f" -> {ast.unparse(node.returns)}"
    text = " ".join(text.split())
    return text if len(text) <= MAX_SIGNATURE_LENGTH else f"{text[: MAX_SIGNATURE_LENGTH - 1]}…"


def _constructor(node: ast.ClassDef) -> ast.FunctionDef | None:
    return next((each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "__init__"), None)


def _arguments(arguments: ast.arguments, *, is_bound: bool) -> str:
    written = ast.unparse(arguments)
    if is_bound:
        written = re.sub(r"^(?:self|cls)(?:, (?:/, )?|$)", "", written)
    return written


# ── Docstrings ────────────────────────────────────────────────────────────────────────────────────────────────────────


def _write_docstring(writer: MarkupWriter, docstring: str, name: str = "") -> None:
    """Write a docstring as Markdown: sessions and indented blocks as code, fields as a list, roles as code.

    A title that only says `name` is left out.
    """
    paragraph: list[str] = []
    code: list[str] = []

    def flush() -> None:
        if code:
            writer.add_code(dedent("\n".join(code)), "python" if _SESSION.match(code[0]) else "")
        elif paragraph:
            writer.add_block("\n".join(paragraph))
        paragraph.clear()
        code.clear()

    expects_code = False
    for line in cleandoc(docstring).split("\n"):
        stripped = line.strip()
        if not stripped:
            if code and not _SESSION.match(code[0]):
                code.append("")
            else:
                flush()
            continue
        if code and (_SESSION.match(code[0]) or line[0].isspace()):
            code.append(line)
            continue
        if _SESSION.match(line) or (expects_code and not paragraph and line[0].isspace()):
            flush()
            code.append(line)
            continue
        if code:
            flush()
        expects_code = stripped.endswith("::")
        if stripped.startswith(".. ") and expects_code:
            continue
        if paragraph and _UNDERLINE.fullmatch(stripped):
            title = paragraph.pop()
            flush()
            if title != name:
                writer.add_block(f"**{title}**")
            continue
        if field := _FIELD.match(stripped):
            label = field[2] or field[1].capitalize()
            paragraph.append(f"- *{label}*{' (type)' if field[1] == 'type' else ''}: {_inline(field[3])}")
        else:
            paragraph.append(_inline(stripped if not stripped.startswith("- ") and not line[0].isspace() else line))
            if expects_code:
                paragraph[-1] = paragraph[-1].removesuffix(":")
    flush()


def _inline(text: str) -> str:
    if ":`" in text:
        text = _ROLE.sub(lambda role: code_span(role[1].lstrip("~!") or role[2] or ""), text)
    return _LITERAL.sub(r"`\1`", text) if "``" in text else text
