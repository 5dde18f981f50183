"""JSON: the description of an API (OpenAPI, Swagger) as a page that people read, a section an operation; other JSON as
it is, indented.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from kept.extract.html_words import fenced
from kept.extract.sections import LONGEST_HEADING, Extracted, SectionData, Unreadable, tree_of
from kept.extract.text import decode

READER_VERSION = 1

METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    text = decode(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        found = json.loads(text)
        if "\\u" in text:  # an escape may stand for half a character, which nothing can store
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        if (
            isinstance(found, dict)
            and ("openapi" in found or "swagger" in found)
            and isinstance(found.get("paths"), dict)
        ):
            return _api(found)
        shown = json.dumps(found, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        return Unreadable(reason=f"not JSON: {error}"[:200])
    title = (
        next((found[key] for key in ("title", "name") if isinstance(found.get(key), str)), "")
        if isinstance(found, dict)
        else ""
    )
    shown = fenced(shown.replace("\0", ""), "json")
    return Extracted(title=_line(title)[:LONGEST_HEADING], markdown=shown, tree=SectionData(content=shown))


# ── An API ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def _api(api: dict[str, Any]) -> Extracted:
    about = _dict(api.get("info"))
    title = _line(about.get("title")) or "API"
    nodes = [_node(1, title, _about(api, about))]
    for path, item in _dict(api.get("paths")).items():
        item = _dict(item)
        for method in METHODS:
            if isinstance(operation := item.get(method), dict):
                shared = _list(item.get("parameters"))
                nodes.append(_node(2, f"{method.upper()} {_line(path)}", _operation(operation, shared)))
    schemas = _dict(_dict(api.get("components")).get("schemas")) or _dict(api.get("definitions"))
    for name, schema in schemas.items():
        nodes.append(_node(2, _line(name), _schema(_dict(schema))))
    markdown = "\n\n".join([node.content for node in nodes])
    return Extracted(title=title[:LONGEST_HEADING], markdown=markdown, tree=tree_of(nodes))


def _node(level: int, heading: str, blocks: Iterator[str]) -> SectionData:
    content = "\n\n".join([f"{'#' * level} {heading}", *filter(None, blocks)]).replace("\0", "")
    return SectionData(heading=heading[:LONGEST_HEADING], level=level, content=content)


def _about(api: dict[str, Any], about: dict[str, Any]) -> Iterator[str]:
    if version := _line(about.get("version")):
        yield f"Version {version}"
    yield _text(about.get("description"))
    servers = [_line(_dict(server).get("url")) for server in _list(api.get("servers"))]
    yield "\n".join(f"- {server}" for server in servers if server)


def _operation(operation: dict[str, Any], shared: list[Any]) -> Iterator[str]:
    if operation.get("deprecated") is True:
        yield "**Deprecated**"
    summary, description = _text(operation.get("summary")), _text(operation.get("description"))
    yield summary
    yield description if description != summary else ""
    if name := _line(operation.get("operationId")):
        yield f"Operation: `{name}`"
    parameters = [_parameter(_dict(one)) for one in [*shared, *_list(operation.get("parameters"))]]
    if parameters:
        yield _table(("Parameter", "In", "Type", "Description"), parameters)
    body = _dict(operation.get("requestBody"))
    kinds = [
        f"- `{_line(kind)}`: {_type(_dict(_dict(media).get('schema')))}"
        for kind, media in _dict(body.get("content")).items()
    ]
    if kinds:
        yield "**Request body**"
        yield _text(body.get("description"))
        yield "\n".join(kinds)
    responses = [
        (f"`{_line(code)}`", _line(_dict(one).get("description")))
        for code, one in _dict(operation.get("responses")).items()
    ]
    if responses:
        yield _table(("Response", "Description"), responses)


def _parameter(one: dict[str, Any]) -> tuple[str, ...]:
    if reference := _line(one.get("$ref")):
        return f"`{reference.rpartition('/')[2]}`", "", "", ""
    required = ", required" if one.get("required") is True else ""
    schema = _dict(one.get("schema")) or one
    return (
        f"`{_line(one.get('name'))}`",
        f"{_line(one.get('in'))}{required}",
        _type(schema),
        _line(one.get("description")),
    )


def _schema(schema: dict[str, Any]) -> Iterator[str]:
    yield _text(schema.get("description"))
    required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
    rows = []
    for name, one in _dict(schema.get("properties")).items():
        about = _dict(one)
        must = ", required" if name in required else ""
        rows.append((f"`{_line(name)}`", f"{_type(about)}{must}", _line(about.get("description"))))
    if rows:
        yield _table(("Field", "Type", "Description"), rows)
    elif values := _values(schema):
        yield values
    else:
        yield _type(schema)


def _type(schema: dict[str, Any]) -> str:
    """A type in a few words: the name of a schema, or what it is made of."""
    if reference := _line(schema.get("$ref")):
        return f"`{reference.rpartition('/')[2]}`"
    kind = schema.get("type")
    kind = " or ".join(map(_line, kind)) if isinstance(kind, list) else _line(kind)
    if kind == "array":
        return f"array of {_type(_dict(schema.get('items')))}" if schema.get("items") else "array"
    for several, word in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        if parts := [_line(_dict(one).get("$ref")).rpartition("/")[2] for one in _list(schema.get(several))]:
            return word.join(f"`{part}`" for part in parts if part) or kind
    return _values(schema) or kind


def _values(schema: dict[str, Any]) -> str:
    return ", ".join(f"`{_line(str(value))}`" for value in _list(schema.get("enum"))[:50])


def _table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
