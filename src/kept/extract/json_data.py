"""Read JSON: API descriptions as a readable page (openapi), other JSON indented."""

from __future__ import annotations

import json

from kept.extract.html.markdown_text import fenced_code_block
from kept.extract.openapi import extract_api_description
from kept.extract.sections import MAX_HEADING_LENGTH, Extraction, SectionNode, Unreadable
from kept.extract.text import decode_text


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        value = json.loads(text)
        if "\\u" in text:  # an escape may be a lone surrogate, which cannot be stored
            value = json.loads(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace"))
        if (api := extract_api_description(value)) is not None:
            return api
        if _is_twin(value):
            return Unreadable(reason=f"the data of a page written in {value['source']}, which is kept as that page")
        markdown = json.dumps(value, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        return Unreadable(reason=f"not JSON: {error}"[:200])
    titles = [value.get("title"), value.get("name")] if isinstance(value, dict) else []
    title = next((title for title in titles if isinstance(title, str)), "")
    markdown = fenced_code_block(markdown.replace("\0", ""), "json")
    return Extraction(
        title=" ".join(title.split())[:MAX_HEADING_LENGTH], markdown=markdown, tree=SectionNode(content=markdown)
    )


def _is_twin(value: object) -> bool:
    """Return whether it is a page of documentation once more, as Node.js has them: it names the file of both."""
    source = value.get("source") if isinstance(value, dict) else None
    return isinstance(source, str) and source.endswith((".md", ".rst", ".adoc")) and len(source) < 200
