"""Typed access to JSON that is not trusted. Every error says where it is, and what was expected."""

import json
import math
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Any, NoReturn, TypeVar

from kept.errors import InvalidInput

E = TypeVar("E", bound=StrEnum)
T = TypeVar("T")

MAX_COUNT = 2**31 - 1
_REQUIRED: Any = object()
_FIRST_TIME = datetime(1970, 1, 1, tzinfo=UTC)
_MILLISECONDS_FROM = 1e11  # a number of seconds since 1970 that is larger than this lies beyond the year 5000


def parse_json(text: bytes, place: str) -> Any:
    """Parse strict JSON. Raises InvalidInput for NaN, doubled names, and nesting that is too deep."""

    def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) < len(pairs):
            names = [name for name, _ in pairs]
            doubled = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the name {doubled!r:.100} is there twice")
        return found

    def refuse_constant(name: str) -> NoReturn:
        raise ValueError(f"{name} is not a number")

    try:
        return json.loads(text.decode("utf-8"), object_pairs_hook=to_object, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as error:
        why = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise InvalidInput(f"{place} cannot be read as JSON: {why}. Nothing was imported.") from None


def refuse(place: str, problem: str) -> NoReturn:
    raise InvalidInput(f"{place}: {problem}. Nothing was imported.")


def check_text(value: Any, place: str) -> str:
    """Return a text that either database can store. Raises InvalidInput."""
    if not isinstance(value, str):
        refuse(place, f"expected a text, found {_shorten(value)}")
    if "\0" in value or any("\ud800" <= one <= "\udfff" for one in value):
        refuse(place, "the text has characters in it that no text has (NUL, or half of a surrogate pair)")
    return value


def parse_timestamp(value: Any, place: str, now: datetime) -> str:
    """Return a time as it is stored. It may be given as ISO 8601 (UTC unless it says otherwise), or since 1970."""
    try:
        if isinstance(value, str):
            moment = datetime.fromisoformat(value)
        elif isinstance(value, (int, float)) and not isinstance(value, bool):
            moment = datetime.fromtimestamp(value / 1000 if value > _MILLISECONDS_FROM else value, UTC)
        else:
            raise ValueError
        moment = moment.replace(tzinfo=moment.tzinfo or UTC).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        refuse(place, f"expected a time such as 2026-11-18T12:00:00+00:00, found {_shorten(value)}")
    if not _FIRST_TIME <= moment <= now + timedelta(days=1):
        refuse(place, f"{_shorten(value)} lies in the future, or before 1970")
    return moment.isoformat(timespec="microseconds")


class JsonObject:
    """An object of a JSON file, and its place there."""

    def __init__(self, value: Any, place: str) -> None:
        if not isinstance(value, dict):
            refuse(place, f"expected an object, found {_shorten(value)}")
        self.values: dict[str, Any] = value
        self.place = place

    def at(self, name: str) -> str:
        return f"{self.place}[{name!r:.200}]"

    def text(self, name: str, default: str = _REQUIRED) -> str:
        return self._get(name, check_text, default)

    def optional_text(self, name: str) -> str | None:
        return self._get(name, check_text, None)

    def header_value(self, name: str) -> str | None:
        """Return a text that is sent in a header: without control characters."""
        text = self.optional_text(name)
        if text is not None and not text.isprintable():
            refuse(self.at(name), "the text has control characters in it")
        return text

    def count(self, name: str, default: int = _REQUIRED, *, least: int = 0) -> int:
        def check(value: Any, place: str) -> int:
            if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= MAX_COUNT:
                refuse(place, f"expected a whole number from {least} on, found {_shorten(value)}")
            return value

        return self._get(name, check, default)

    def optional_count(self, name: str, *, least: int = 0) -> int | None:
        return self.count(name, least=least) if self.values.get(name) is not None else None

    def flag(self, name: str, default: bool = _REQUIRED) -> bool:
        def check(value: Any, place: str) -> bool:
            if not isinstance(value, bool):
                refuse(place, f"expected true or false, found {_shorten(value)}")
            return value

        return self._get(name, check, default)

    def choice(self, name: str, choices: type[E], default: E = _REQUIRED) -> E:
        def check(value: Any, place: str) -> E:
            if not isinstance(value, str) or value not in choices.__members__.values():
                refuse(place, f"expected {', '.join(choices)}, found {_shorten(value)}")
            return choices(value)

        return self._get(name, check, default)

    def time(self, name: str, now: datetime, default: str = _REQUIRED) -> str:
        return self._get(name, lambda value, place: parse_timestamp(value, place, now), default)

    def optional_time(self, name: str, now: datetime) -> str | None:
        return self.time(name, now) if self.values.get(name) is not None else None

    def texts(self, name: str) -> list[str]:
        return [check_text(value, place) for value, place in self._list(name)]

    def object(self, name: str) -> "JsonObject":
        return JsonObject(self._get(name, lambda value, _: value, _REQUIRED), self.at(name))

    def objects(self, name: str, *, optional: bool = False) -> "list[JsonObject]":
        return [JsonObject(value, place) for value, place in self._list(name, optional=optional)]

    def members(self, name: str) -> "Iterator[tuple[str, JsonObject]]":
        """Yield the objects in an object, with their names."""
        members = self.object(name)
        for key, value in members.values.items():
            yield check_text(key, members.place), JsonObject(value, members.at(key))

    def _list(self, name: str, *, optional: bool = False) -> list[tuple[Any, str]]:
        values = self._get(name, lambda value, _: value, [] if optional else _REQUIRED)
        if not isinstance(values, list):
            refuse(self.at(name), f"expected a list, found {_shorten(values)}")
        return [(value, f"{self.at(name)}[{number}]") for number, value in enumerate(values)]

    def _get(self, name: str, check: Callable[[Any, str], T], default: Any) -> T:
        """Return a checked value. A missing one, or null, is the default."""
        value = self.values.get(name)
        if value is not None:
            return check(value, self.at(name))
        if default is _REQUIRED:
            refuse(self.at(name), "it is missing")
        found: T = default
        return found


def check_number(value: Any, place: str, *, least: float) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value) or value < least:
        refuse(place, f"expected a number from {least:g} on, found {_shorten(value)}")
    return value


def _shorten(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 80 else f"{text[:80]}…"
