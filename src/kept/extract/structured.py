"""JSON: the description of an API as a page that people read (api); other JSON as it is, indented."""

from __future__ import annotations

import json

from kept.extract.api import described
from kept.extract.html_words import fenced
from kept.extract.sections import LONGEST_HEADING, Extracted, SectionData, Unreadable
from kept.extract.text import decode


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    text = decode(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        found = json.loads(text)
        if "\\u" in text:  # an escape may stand for half a character, which nothing can store
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        if (api := described(found)) is not None:
            return api
        shown = json.dumps(found, indent=2, ensure_ascii=False)
    except (ValueError, RecursionError) as error:
        return Unreadable(reason=f"not JSON: {error}"[:200])
    title = (
        next((found[key] for key in ("title", "name") if isinstance(found.get(key), str)), "")
        if isinstance(found, dict)
        else ""
    )
    shown = fenced(shown.replace("\0", ""), "json")
    return Extracted(title=" ".join(title.split())[:LONGEST_HEADING], markdown=shown, tree=SectionData(content=shown))
