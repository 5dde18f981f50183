"""API descriptions (OpenAPI, Swagger, AsyncAPI) as a readable page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, build_section_tree

HTTP_METHODS = ("get", "put", "post", "delete", "options", "head", "patch", "trace")


def extract_api_description(api: Any) -> Extraction | None:
    """Return a page with one section for each operation and schema; None if the value describes no API."""
    if not isinstance(api, dict):
        return None
    if ("openapi" in api or "swagger" in api) and isinstance(api.get("paths"), dict):
        operations = _openapi_operations(api)
    elif "asyncapi" in api and isinstance(api.get("channels"), dict):
        operations = _asyncapi_operations(api)
    else:
        return None
    info = _dict(api.get("info"))
    title = _one_line(info.get("title")) or "API"
    nodes = [_section_node(1, title, _info_blocks(api, info)), *operations]
    schemas = _dict(_dict(api.get("components")).get("schemas")) or _dict(api.get("definitions"))
    nodes += [_section_node(2, _one_line(name), _schema_blocks(_dict(schema))) for name, schema in schemas.items()]
    markdown = "\n\n".join([node.content for node in nodes])
    return Extraction(title=title[:MAX_HEADING_LENGTH], markdown=markdown, tree=build_section_tree(nodes))


def _section_node(level: int, heading: str, blocks: Iterator[str]) -> SectionNode:
    content = "\n\n".join([f"{'#' * level} {heading}", *filter(None, blocks)]).replace("\0", "")
    return SectionNode(heading=heading[:MAX_HEADING_LENGTH], level=level, content=content)


def _openapi_operations(api: dict[str, Any]) -> Iterator[SectionNode]:
    for path, item in _dict(api.get("paths")).items():
        item = _dict(item)
        for method in HTTP_METHODS:
            if isinstance(operation := item.get(method), dict):
                shared = _list(item.get("parameters"))
                yield _section_node(2, f"{method.upper()} {_one_line(path)}", _operation_blocks(operation, shared))


def _info_blocks(api: dict[str, Any], info: dict[str, Any]) -> Iterator[str]:
    if version := _one_line(info.get("version")):
        yield f"Version {version}"
    yield _text(info.get("description"))
    servers = [_one_line(_dict(server).get("url")) for server in _list(api.get("servers"))]
    yield "\n".join(f"- {server}" for server in servers if server)


def _operation_blocks(operation: dict[str, Any], shared: list[Any]) -> Iterator[str]:
    if operation.get("deprecated") is True:
        yield "**Deprecated**"
    summary, description = _text(operation.get("summary")), _text(operation.get("description"))
    yield summary
    yield description if description != summary else ""
    if name := _one_line(operation.get("operationId")):
        yield f"Operation: `{name}`"
    parameters = [_parameter_row(_dict(one)) for one in [*shared, *_list(operation.get("parameters"))]]
    if parameters:
        yield _markdown_table(("Parameter", "In", "Type", "Description"), parameters)
    body = _dict(operation.get("requestBody"))
    kinds = [
        f"- `{_one_line(kind)}`: {_type_text(_dict(_dict(media).get('schema')))}"
        for kind, media in _dict(body.get("content")).items()
    ]
    if kinds:
        yield "**Request body**"
        yield _text(body.get("description"))
        yield "\n".join(kinds)
    responses = [
        (f"`{_one_line(code)}`", _one_line(_dict(one).get("description")))
        for code, one in _dict(operation.get("responses")).items()
    ]
    if responses:
        yield _markdown_table(("Response", "Description"), responses)


def _asyncapi_operations(api: dict[str, Any]) -> Iterator[SectionNode]:
    """Yield operations, which AsyncAPI 2 lists by channel and AsyncAPI 3 on their own."""
    channels = _dict(api.get("channels"))
    for name, one in channels.items():
        channel = _dict(one)
        for verb in ("publish", "subscribe"):
            if isinstance(operation := channel.get(verb), dict):
                yield _section_node(2, f"{verb.upper()} {_one_line(name)}", _message_blocks(operation, channel))
    for name, one in _dict(api.get("operations")).items():
        operation = _dict(one)
        used = _dict(channels.get(_reference_name(_dict(operation.get("channel")))))
        heading = f"{_one_line(operation.get('action')).upper()} {_one_line(used.get('address'))}".strip() or _one_line(
            name
        )
        yield _section_node(2, heading, _message_blocks({"operationId": name, **operation}, used))


def _message_blocks(operation: dict[str, Any], channel: dict[str, Any]) -> Iterator[str]:
    yield _text(channel.get("description"))
    yield from _operation_blocks({key: value for key, value in operation.items() if key != "parameters"}, [])
    message = _dict(operation.get("message"))
    variants = _list(message.get("oneOf")) or [
        *_list(operation.get("messages")),
        *_dict(channel.get("messages")).values(),
    ]
    lines = []
    for variant in map(_dict, variants or [message]):
        description = _one_line(variant.get("summary")) or _one_line(variant.get("description"))
        kind = _type_text(_dict(variant.get("payload")))
        name = _one_line(variant.get("name")) or _reference_name(variant)
        line = ": ".join(filter(None, (f"`{name}`" if name else "", kind, description)))
        lines += [f"- {line}"] if line else []
    yield "\n".join(dict.fromkeys(lines))


def _reference_name(value: dict[str, Any]) -> str:
    """Return the last segment of its $ref."""
    return _one_line(value.get("$ref")).rpartition("/")[2]


def _parameter_row(parameter: dict[str, Any]) -> tuple[str, ...]:
    if reference := _one_line(parameter.get("$ref")):
        return f"`{reference.rpartition('/')[2]}`", "", "", ""
    required = ", required" if parameter.get("required") is True else ""
    schema = _dict(parameter.get("schema")) or parameter
    return (
        f"`{_one_line(parameter.get('name'))}`",
        f"{_one_line(parameter.get('in'))}{required}",
        _type_text(schema),
        _one_line(parameter.get("description")),
    )


def _schema_blocks(schema: dict[str, Any]) -> Iterator[str]:
    yield _text(schema.get("description"))
    required = [name for name in _list(schema.get("required")) if isinstance(name, str)]
    rows = []
    for name, value in _dict(schema.get("properties")).items():
        field = _dict(value)
        required_suffix = ", required" if name in required else ""
        rows.append(
            (f"`{_one_line(name)}`", f"{_type_text(field)}{required_suffix}", _one_line(field.get("description")))
        )
    if rows:
        yield _markdown_table(("Field", "Type", "Description"), rows)
    elif values := _enum_values(schema):
        yield values
    else:
        yield _type_text(schema)


def _type_text(schema: dict[str, Any]) -> str:
    """Return a type in a few words: the name of a schema, or its structure."""
    if reference := _one_line(schema.get("$ref")):
        return f"`{reference.rpartition('/')[2]}`"
    kind = schema.get("type")
    kind = " or ".join(map(_one_line, kind)) if isinstance(kind, list) else _one_line(kind)
    if kind == "array":
        return f"array of {_type_text(_dict(schema.get('items')))}" if schema.get("items") else "array"
    for keyword, conjunction in (("oneOf", " or "), ("anyOf", " or "), ("allOf", " and ")):
        if parts := [_one_line(_dict(one).get("$ref")).rpartition("/")[2] for one in _list(schema.get(keyword))]:
            return conjunction.join(f"`{part}`" for part in parts if part) or kind
    return _enum_values(schema) or kind


def _enum_values(schema: dict[str, Any]) -> str:
    return ", ".join(f"`{_one_line(str(value))}`" for value in _list(schema.get("enum"))[:50])


def _markdown_table(header: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [header, ("---",) * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _one_line(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""


def _dict(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
