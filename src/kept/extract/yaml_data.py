"""YAML: the description of an API as a page that people read (api); other YAML as it is.

Only what JSON has is understood: mappings, lists, words. Numbers and dates stay words, as people wrote them: "1.10".
An alias stands for what it repeats, and what all of them repeat together is limited: a few lines can ask for billions.
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
        found = _YamlBuilder().build(text)
    except (yaml.YAMLError, _YamlRefused, RecursionError) as error:
        return Unreadable(reason=f"not YAML that can be read: {' '.join(str(error).split())}"[:200])
    api = extract_api_description(found)
    if api is not None:
        return api
    shown = fenced_code_block(text, "yaml")
    return Extraction(title="", markdown=shown, tree=SectionNode(content=shown))


class _YamlRefused(Exception): ...


@dataclass(slots=True)
class _OpenCollection:
    """A mapping or a list that has not ended yet."""

    value: Any
    anchor: str | None
    count_before: int  # how many values there were when it began
    key: str | None = None  # waits for its value

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is None:
            if isinstance(value, dict | list):
                raise _YamlRefused("a key that is no word")
            self.key = value if isinstance(value, str) else _CONSTANT_NAMES[value]
        else:
            if self.key == "<<":  # what the mapping takes over from others, where it says nothing itself
                for other in value if isinstance(value, list) else [value]:
                    for name, one in other.items() if isinstance(other, dict) else ():
                        self.value.setdefault(name, one)
            else:
                self.value[self.key] = value
            self.key = None


class _YamlBuilder:
    """Makes values of the first document in a text, without recursion."""

    def __init__(self) -> None:
        self._anchored_values: dict[str, tuple[Any, int]] = {}  # what aliases stand for, and how many values that is
        self._count = 0

    def build(self, text: str) -> Any:
        open_: list[_OpenCollection] = []
        value: Any = None
        for event in yaml.parse(text, Loader=_LOADER):
            match event:
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    if len(open_) >= MAX_DEPTH:
                        raise _YamlRefused(f"nested more than {MAX_DEPTH} deep")
                    made: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                    open_.append(_OpenCollection(made, event.anchor, self._count))
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

    def _remember_anchor(self, anchor: str | None, value: Any, before: int) -> None:
        if anchor is not None:
            self._anchored_values[anchor] = value, self._count - before

    def _resolve_alias(self, anchor: str) -> Any:
        if anchor not in self._anchored_values:
            raise _YamlRefused("an alias of nothing, or of what it is in")
        value, count = self._anchored_values[anchor]
        self._count += count
        return value


def _scalar_value(event: Any) -> str | bool | None:
    if event.implicit[0] and event.value.lower() in _CONSTANTS:
        return _CONSTANTS[event.value.lower()]
    return str(event.value).encode("utf-8", "replace").decode()  # an escape may stand for half a character
