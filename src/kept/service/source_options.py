"""The settings of a source as a call gives them, in the words of the command line. Every door takes the same."""

import os
import re
from dataclasses import replace
from typing import Any

from kept.errors import InvalidInput
from kept.model.duration import parse_duration
from kept.model.root import split_login
from kept.model.schedule import parse_schedule
from kept.model.source import Header, RenderMode, SourceSettings, parse_secret_reference
from kept.model.url import canonicalize_url

OPTION_NAMES = (
    "max_pages",
    "max_depth",
    "max_time",
    "scope",
    "include",
    "exclude",
    "header",
    "cookie",
    "user_agent",
    "proxy",
    "ca_file",
    "select",
    "drop",
    "render",
    "ignore_robots",
    "concurrency",
    "delay",
    "tag",
    "schedule",
    "webhook",
    "watch",
    "hook_secret",
)

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RESERVED_HEADERS = ("host", "connection", "content-length", "transfer-encoding", "user-agent")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class SourceOptions:
    """The settings that a call gives. Those it does not mention stay as they are; an empty text clears one."""

    def __init__(self, **call: Any) -> None:
        if unknown := call.keys() - set(OPTION_NAMES):
            raise InvalidInput(
                f"There is no setting '{min(unknown)}' of a source. There are {', '.join(OPTION_NAMES)}."
            )
        said = dict.fromkeys(OPTION_NAMES) | call
        self._limits = _without_none(
            max_pages=said["max_pages"],
            max_depth=said["max_depth"],
            max_seconds=parse_duration(said["max_time"]) if said["max_time"] else None,
        )
        cleared = {"max_pages": "max_pages", "max_depth": "max_depth", "max_time": "max_seconds"}
        self._limits |= {limit: None for name, limit in cleared.items() if said[name] == ""}
        self._scope = _without_none(
            include=_to_tuple(said["include"]), exclude=_to_tuple(said["exclude"]), within=_to_tuple(said["scope"])
        )
        self._access = _without_none(
            user_agent=said["user_agent"],
            proxy=said["proxy"],
            ca_file=said["ca_file"] and os.path.abspath(said["ca_file"]),
            render=_parse_render(said["render"]),
            ignore_robots=said["ignore_robots"],
            concurrency=said["concurrency"],
            delay=said["delay"],
        )
        self._region = _without_none(select=said["select"], drop=_to_tuple(said["drop"]))
        self._others = _without_none(
            tags=_to_tuple(said["tag"]),
            schedule=_normalize_schedule(said["schedule"]),
            webhook=_check_webhook(said["webhook"]),
            watch=said["watch"],
            hook_secret=None if said["hook_secret"] is None else _check_value(said["hook_secret"], "--hook-secret"),
        )
        self._headers = [_parse_header(text) for text in said["header"] or ()]
        if said["cookie"] is not None:
            self._headers.append(Header(name="Cookie", value=_check_value(said["cookie"], "--cookie")))

    def __bool__(self) -> bool:
        return any((self._limits, self._scope, self._access, self._region, self._others, self._headers))

    @property
    def watch(self) -> bool:
        """Whether the call asks to stay and watch."""
        return bool(self._others.get("watch"))

    @property
    def machine_local_option(self) -> str | None:
        """The name of a setting whose value lies on this machine: a file, a variable, a secret, a way out."""
        refers = {"header": [one.value for one in self._headers]}
        refers |= {name: [self._others.get(name) or ""] for name in ("webhook", "hook_secret")}
        local = [name for name in ("ca_file", "proxy") if self._access.get(name)]
        found = [*local, *(name for name, values in refers.items() if any(map(parse_secret_reference, values)))]
        return found[0] if found else None

    def apply_to(self, settings: SourceSettings) -> SourceSettings:
        headers = {header.name.lower(): header for header in (*settings.access.headers, *self._headers)}
        access = replace(settings.access, headers=tuple(one for one in headers.values() if one.value), **self._access)
        return replace(
            settings,
            limits=replace(settings.limits, **self._limits),
            scope=replace(settings.scope, **self._scope),
            access=access,
            region=replace(settings.region, **self._region),
            **self._others,
        )


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _to_tuple(values: list[str] | None) -> tuple[str, ...] | None:
    return tuple(filter(None, values)) if values else None


def _parse_render(said: str | None) -> RenderMode | None:
    if said is not None and said not in RenderMode.__members__.values():
        raise InvalidInput(f"--render should be auto, never or always; it is '{said}'.")
    return RenderMode(said) if said is not None else None


def _normalize_schedule(said: str | None) -> str | None:
    """As it is stored: checked, in one spelling, and empty for off."""
    if said is None:
        return None
    return " ".join(said.split()) if parse_schedule(said) else ""


def _check_webhook(said: str | None) -> str | None:
    """A URL without a password, or where to find one; what it is otherwise is not said, it may hold a secret."""
    if not said or (parse_secret_reference(said) or ())[:2] == ("", "env"):
        return said
    if not said.startswith(("http://", "https://")) or canonicalize_url(said) is None or split_login(said)[1]:
        raise InvalidInput("--webhook should be a web address without a password, or env:NAME.")
    return said


def _parse_header(text: str) -> Header:
    """What is wrong with it is said without its value, which may be a secret."""
    name, colon, value = text.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name.strip()):
        raise InvalidInput("--header should look like 'Name: value'; what was given has no name before a colon.")
    if name.strip().lower() in _RESERVED_HEADERS:
        raise InvalidInput(f"--header cannot be {name.strip()}: Kept says that itself.")
    return Header(name=name.strip(), value=_check_value(value, f"--header {name.strip()}"))


def _check_value(text: str, option: str) -> str:
    if _CONTROL.search(text):
        raise InvalidInput(f"The value of {option} has line breaks or control characters in it.")
    return text.strip()
