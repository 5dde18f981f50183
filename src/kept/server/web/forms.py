"""The settings of a source as the web form sends them."""

from collections.abc import Mapping
from typing import Any

from kept.service.source_options import SOURCE_OPTIONS, SourceOptions

_SEPARATED_BY_BLANKS = ("scope",)  # URL prefixes have no blanks in them; other lists have one entry a line


def parse_source_options(form: Mapping[str, Any], *, clear_empty: bool = False) -> SourceOptions:
    """Return the settings in a form. Raises InvalidInput. ``clear_empty``: empty fields clear, not: are not given."""
    given: dict[str, Any] = {}
    for option in SOURCE_OPTIONS:
        if "web" not in option.on or option.name not in form:
            continue
        text = str(form[option.name]).replace("\0", "").strip()
        if not text:
            given[option.name] = "" if clear_empty else None
        elif option.kind == "texts":
            parts = text.split() if option.name in _SEPARATED_BY_BLANKS else text.splitlines()
            given[option.name] = [part.strip() for part in parts]
        else:
            given[option.name] = text
    return SourceOptions(**given)
