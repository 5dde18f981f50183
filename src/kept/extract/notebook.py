"""Read notebooks (.ipynb): text, code, and the text output of code.

A notebook is converted to Markdown, which is read by the Markdown reader. Images and other output are left out.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from kept.extract.html.markdown_text import fenced_code_block
from kept.extract.markdown import reader
from kept.extract.sections import Extraction, Unreadable
from kept.extract.text import decode_text, normalize_text

MAX_OUTPUT_LENGTH = 2_000
"""Characters of the output of one cell. More than that is a log."""


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        notebook = json.loads(text)
    except (ValueError, RecursionError):
        return Unreadable(reason="not a notebook: invalid JSON")
    cells = _cells(notebook)
    if cells is None:
        return Unreadable(reason="JSON, but not a notebook")
    language = _language(notebook)
    blocks = [block for cell in cells if isinstance(cell, dict) for block in _blocks(cell, language)]
    return reader.extract(normalize_text("\n\n".join(blocks)).encode("utf-8", "replace"), "utf-8")


def _cells(notebook: Any) -> list[Any] | None:
    if not isinstance(notebook, dict):
        return None
    cells = notebook.get("cells")
    if cells is None and isinstance(sheets := notebook.get("worksheets"), list):  # before version 4
        cells = [cell for sheet in sheets if isinstance(sheet, dict) for cell in _list(sheet.get("cells"))]
    return cells if isinstance(cells, list) else None


def _language(notebook: dict[str, Any]) -> str:
    metadata = notebook.get("metadata")
    metadata = metadata if isinstance(metadata, dict) else {}
    for group, key in (("language_info", "name"), ("kernelspec", "language")):
        info = metadata.get(group)
        if isinstance(info, dict) and isinstance(name := info.get(key), str) and name.isprintable():
            return "" if " " in name or "`" in name else name
    return ""


def _blocks(cell: dict[str, Any], language: str) -> Iterator[str]:
    source = _text(cell.get("source", cell.get("input"))).strip("\n")
    if cell.get("cell_type") == "code":
        if source.strip():
            yield fenced_code_block(source, language)
        for output in _list(cell.get("outputs")):
            if isinstance(output, dict) and (text := _output(output).strip("\n")):
                yield fenced_code_block(text[:MAX_OUTPUT_LENGTH].rstrip(), "")
    elif source.strip():
        yield source


def _output(output: dict[str, Any]) -> str:
    if output.get("output_type") == "error":
        return f"{_text(output.get('ename'))}: {_text(output.get('evalue'))}"
    data = output.get("data")
    return _text(output.get("text") or (data.get("text/plain") if isinstance(data, dict) else None))


def _text(value: Any) -> str:
    """Return a text that may be stored as a list of lines."""
    if isinstance(value, list):
        return "".join(line for line in value if isinstance(line, str))
    return value if isinstance(value, str) else ""


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
