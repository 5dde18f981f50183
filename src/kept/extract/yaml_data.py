"""YAML: the description of an API as a page that people read (api); other YAML as it is.

Only what JSON has is understood: mappings, lists, words. Numbers and dates stay words, as people wrote them: "1.10".
An alias stands for what it repeats, and what all of them repeat together is limited: a few lines can ask for billions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import yaml  # type: ignore[import-untyped, unused-ignore]

from kept.extract.api import described
from kept.extract.html_words import fenced
from kept.extract.sections import Extracted, SectionData, Unreadable
from kept.extract.text import decode

MOST_NODES = 500_000
DEEPEST = 100

_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_WORDS_FOR: dict[str, bool | None] = {"true": True, "false": False, "null": None, "~": None, "": None}
_SPELLED = {True: "true", False: "false", None: "null"}


def extract(body: bytes, charset: str | None) -> Extracted | Unreadable:
    text = decode(body, charset)
    if isinstance(text, Unreadable):
        return text
    try:
        found = _Builder().build(text)
    except (yaml.YAMLError, _Refused, RecursionError) as error:
        return Unreadable(reason=f"not YAML that can be read: {' '.join(str(error).split())}"[:200])
    api = described(found)
    if api is not None:
        return api
    shown = fenced(text, "yaml")
    return Extracted(title="", markdown=shown, tree=SectionData(content=shown))


class _Refused(Exception): ...


@dataclass(slots=True)
class _Open:
    """A mapping or a list that has not ended yet."""

    value: Any
    anchor: str | None
    before: int  # how many values there were when it began
    key: str | None = None  # waits for its value

    def add(self, value: Any) -> None:
        if isinstance(self.value, list):
            self.value.append(value)
        elif self.key is None:
            if isinstance(value, dict | list):
                raise _Refused("a key that is no word")
            self.key = value if isinstance(value, str) else _SPELLED[value]
        else:
            if self.key == "<<":  # what the mapping takes over from others, where it says nothing itself
                for other in value if isinstance(value, list) else [value]:
                    for name, one in other.items() if isinstance(other, dict) else ():
                        self.value.setdefault(name, one)
            else:
                self.value[self.key] = value
            self.key = None


class _Builder:
    """Makes values of the first document in a text, without recursion."""

    def __init__(self) -> None:
        self._named: dict[str, tuple[Any, int]] = {}  # what aliases stand for, and how many values that is
        self._count = 0

    def build(self, text: str) -> Any:
        open_: list[_Open] = []
        value: Any = None
        for event in yaml.parse(text, Loader=_LOADER):
            match event:
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    if len(open_) >= DEEPEST:
                        raise _Refused(f"nested more than {DEEPEST} deep")
                    made: Any = {} if isinstance(event, yaml.MappingStartEvent) else []
                    open_.append(_Open(made, event.anchor, self._count))
                    continue
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    ended = open_.pop()
                    value = ended.value
                    self._name(ended.anchor, value, ended.before)
                case yaml.ScalarEvent():
                    value = _scalar(event)
                    self._name(event.anchor, value, self._count)
                case yaml.AliasEvent():
                    value = self._repeated(event.anchor)
                case _:
                    continue
            self._count += 1
            if self._count > MOST_NODES:
                raise _Refused(f"more than {MOST_NODES:,} values")
            if not open_:
                return value
            open_[-1].add(value)
        return None

    def _name(self, anchor: str | None, value: Any, before: int) -> None:
        if anchor is not None:
            self._named[anchor] = value, self._count - before

    def _repeated(self, anchor: str) -> Any:
        if anchor not in self._named:
            raise _Refused("an alias of nothing, or of what it is in")
        value, count = self._named[anchor]
        self._count += count
        return value


def _scalar(event: Any) -> str | bool | None:
    if event.implicit[0] and event.value.lower() in _WORDS_FOR:
        return _WORDS_FOR[event.value.lower()]
    return str(event.value).encode("utf-8", "replace").decode()  # an escape may stand for half a character
