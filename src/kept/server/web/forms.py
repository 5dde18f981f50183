"""The settings of a source as a form sends them, in the words that every door has."""

import re
from collections.abc import Mapping
from typing import Any

from kept.errors import InvalidInput
from kept.service.source_options import SourceOptions

_NUMBER_FIELDS = {"max_pages": 1, "max_depth": 0}  # the least that makes sense
_LINE_FIELDS = ("include", "exclude", "tag")
_WORD_FIELDS = ("scope",)  # a beginning of a URL has no blanks in it
_TEXT_FIELDS = ("schedule", "select")


def parse_source_options(form: Mapping[str, Any], *, clear_empty: bool = False) -> SourceOptions:
    """What a form says. ``clearing``: what it leaves empty is cleared, otherwise it was not said."""
    said: dict[str, Any] = {}
    form = {name: str(value).replace("\0", "") for name, value in form.items()}
    for name in (*_LINE_FIELDS, *_WORD_FIELDS):
        if name in form:
            parts = form[name].split() if name in _WORD_FIELDS else form[name].splitlines()
            values = [part.strip() for part in parts if part.strip()]
            said[name] = values or ([""] if clear_empty else None)
    for name in _TEXT_FIELDS:
        if name in form:
            text = form[name].strip()
            said[name] = text if text or clear_empty else None
    for name in _NUMBER_FIELDS:
        if name in form:
            text = form[name].strip()
            said[name] = _parse_number(name, text) if text else "" if clear_empty else None
    return SourceOptions(**said)


def _parse_number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < _NUMBER_FIELDS[name]:
        raise InvalidInput(f"{name} should be a whole number from {_NUMBER_FIELDS[name]} on; it is '{text}'.")
    return int(text)
