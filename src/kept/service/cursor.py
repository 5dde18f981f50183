"""Cursors: positions in a listing, as opaque texts that callers send back."""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from typing import Any


def encode_cursor(position: list[Any]) -> str:
    text = json.dumps(position, separators=(",", ":"))
    return urlsafe_b64encode(text.encode()).decode().rstrip("=")


def decode_cursor(cursor: str) -> Any:
    """Return what ``encode_cursor`` was given. Raises ValueError for a text that it did not make.

    The text comes from outside: the caller has to check what is in it.
    """
    try:
        return json.loads(urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)))
    except RecursionError:
        raise ValueError("too deep") from None
