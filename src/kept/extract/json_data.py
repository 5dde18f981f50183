"""JSON: the description of an API as a page that people read (api); other JSON as it is, indented."""

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
        found = json.loads(text)
        if "\\u" in text:  # an escape may stand for half a character, which nothing can store
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        if (api := extract_api_description(found)) is not None:
            return api
        shown = json.dumps(found, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        return Unreadable(reason=f"not JSON: {error}"[:200])
    title = (
        next((found[key] for key in ("title", "name") if isinstance(found.get(key), str)), "")
        if isinstance(found, dict)
        else ""
    )
    shown = fenced_code_block(shown.replace("\0", ""), "json")
    return Extraction(
        title=" ".join(title.split())[:MAX_HEADING_LENGTH], markdown=shown, tree=SectionNode(content=shown)
    )
