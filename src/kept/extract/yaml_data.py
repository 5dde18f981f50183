"""Read YAML: API descriptions as a readable page (openapi), other YAML unchanged.

Only mappings, lists, strings, booleans and null are built. Numbers and dates stay strings as they are written: "1.10".
Aliases are expanded, and the total of values is limited: a few lines can expand to billions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from kept.extract.html.markdown_text import fenced_code_block
from kept.extract.openapi import extract_api_description
from kept.extract.sections import Extraction, SectionNode, Unreadable
from kept.extract.text import decode_text

MAX_NODES = 500_000
MAX_DEPTH = 100

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_CONSTANTS: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_CONSTANT_NAMES = {True: "true", False: "false", None: "null"}


def extract(body: bytes, charset: str | None) -> Extraction | Unreadable:
    text = decode_text(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        value = _YamlBuilder().build(text)
    except (yaml.YAMLError, _YamlRefused, RecursionError) as error:
        return Unreadable(reason=f"not YAML that can be read: {' '.join(str(error).split())}"[:200])
    api = extract_api_description(value)
    if api is not None:
        return api
    markdown = fenced_code_block(text, "yaml")
    return Extraction(title="", markdown=markdown, tree=SectionNode(content=markdown))


class _YamlRefused(Exception): ...


@dataclass(slots=True)
class _OpenCollection:
    """A mapping or a list whose end is not reached yet."""

    value: Any
    anchor: str | None
    count_before: int  # number of values before it
    key: str | None = None  # of the value to come

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is None:
            if isinstance(value, dict | list):
                raise _YamlRefused("a key that is not a scalar")
            self.key = value if isinstance(value, str) else _CONSTANT_NAMES[value]
        else:
            if self.key == "<<":  # merge key: own keys win
                for other in value if isinstance(value, list) else [value]:
                    for name, inherited in other.items() if isinstance(other, dict) else ():
                        self.value.setdefault(name, inherited)
            else:
                self.value[self.key] = value
            self.key = None


class _YamlBuilder:
    """Builds the value of the first document in a text, without recursion."""

    def __init__(self) -> None:
        self._anchored_values: dict[str, tuple[Any, int]] = {}  # anchor -> value, number of values in it
        self._count = 0

    def build(self, text: str) -> Any:
        open_: list[_OpenCollection] = []
        value: Any = None
        for event in yaml.parse(text, Loader=_LOADER):
            match event:
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    if len(open_) >= MAX_DEPTH:
                        raise _YamlRefused(f"nested more than {MAX_DEPTH} deep")
                    collection: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                    open_.append(_OpenCollection(collection, event.anchor, self._count))
                    continue
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    ended = open_.pop()
                    value = ended.value
                    self._remember_anchor(ended.anchor, value, ended.count_before)
                case yaml.ScalarEvent():
                    value = _scalar_value(event)
                    self._remember_anchor(event.anchor, value, self._count)
                case yaml.AliasEvent():
                    value = self._resolve_alias(event.anchor)
                case _:
                    continue
            self._count += 1
            if self._count > MAX_NODES:
                raise _YamlRefused(f"more than {MAX_NODES:,} values")
            if not open_:
                return value
            open_[-1].add(value)
        return None

    def _remember_anchor(self, anchor: str | None, value: Any, count_before: int) -> None:
        if anchor is not None:
            self._anchored_values[anchor] = value, self._count - count_before

    def _resolve_alias(self, anchor: str) -> Any:
        if anchor not in self._anchored_values:
            raise _YamlRefused("an alias of an unknown anchor, or of a value that contains it")
        value, count = self._anchored_values[anchor]
        self._count += count
        return value


def _scalar_value(event: Any) -> str | bool | None:
    if event.implicit[0] and event.value.lower() in _CONSTANTS:
        return _CONSTANTS[event.value.lower()]
    return str(event.value).encode("utf-8", "replace").decode()  # an escape may be a lone surrogate
