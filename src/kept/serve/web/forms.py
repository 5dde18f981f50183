"""The settings of a source as a form sends them, in the words that every door has."""

import re
from collections.abc import Mapping
from typing import Any

from kept.errors import WrongCall
from kept.service.given import Given

_NUMBERS = {"max_pages": 1, "max_depth": 0}  # the least that makes sense
_LINES = ("include", "exclude", "tag")
_WORDS = ("scope",)  # a beginning of a URL has no blanks in it
_TEXTS = ("schedule", "select")


def given(form: Mapping[str, Any], *, clearing: bool = False) -> Given:
    """What a form says. ``clearing``: what it leaves empty is cleared, otherwise it was not said."""
    said: dict[str, Any] = {}
    form = {name: str(value).replace("\0", "") for name, value in form.items()}
    for name in (*_LINES, *_WORDS):
        if name in form:
            parts = form[name].split() if name in _WORDS else form[name].splitlines()
            values = [part.strip() for part in parts if part.strip()]
            said[name] = values or ([""] if clearing else None)
    for name in _TEXTS:
        if name in form:
            text = form[name].strip()
            said[name] = text if text or clearing else None
    for name in _NUMBERS:
        if name in form:
            text = form[name].strip()
            said[name] = _number(name, text) if text else "" if clearing else None
    return Given(**said)


def _number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,9}", text) or int(text) < _NUMBERS[name]:
        raise WrongCall(f"{name} should be a whole number from {_NUMBERS[name]} on; it is '{text}'.")
    return int(text)
