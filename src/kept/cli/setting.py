"""The settings of a source as a call gives them. ``add``, ``set`` and ``try`` take the same options."""

import inspect
import os
import re
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import wraps
from typing import Any

from kept.cli import options
from kept.cli.words import parse_duration
from kept.errors import WrongCall
from kept.model.root import split_login
from kept.model.schedule import parse_schedule
from kept.model.source import Header, Render, SourceSettings, parse_reference
from kept.model.url import canonical

OPTIONS: dict[str, Any] = {
    "max_pages": options.MaxPages,
    "max_depth": options.MaxDepth,
    "max_time": options.MaxTime,
    "scope": options.Within,
    "include": options.Include,
    "exclude": options.Exclude,
    "header": options.Headers,
    "cookie": options.Cookie,
    "user_agent": options.UserAgent,
    "proxy": options.Proxy,
    "ca_file": options.CaFile,
    "select": options.Select,
    "drop": options.Drop,
    "render": options.Render,
    "ignore_robots": options.IgnoreRobots,
    "concurrency": options.Concurrency,
    "delay": options.Delay,
    "tag": options.Tags,
    "schedule": options.Schedule,
    "webhook": options.Webhook,
}

_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_OURS = ("host", "connection", "content-length", "transfer-encoding", "user-agent")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


class Given:
    """The settings that a call gives. Those it does not mention stay as they are; an empty text clears one."""

    def __init__(self, **said: Any) -> None:
        self._limits = _said(
            max_pages=said["max_pages"],
            max_depth=said["max_depth"],
            max_seconds=parse_duration(said["max_time"]) if said["max_time"] else None,
        )
        self._scope = _said(
            include=_listed(said["include"]), exclude=_listed(said["exclude"]), within=_listed(said["scope"])
        )
        self._access = _said(
            user_agent=said["user_agent"],
            proxy=said["proxy"],
            ca_file=said["ca_file"] and os.path.abspath(said["ca_file"]),
            render=_render(said["render"]),
            ignore_robots=said["ignore_robots"],
            concurrency=said["concurrency"],
            delay=said["delay"],
        )
        self._region = _said(select=said["select"], drop=_listed(said["drop"]))
        self._others = _said(
            tags=_listed(said["tag"]), schedule=_schedule(said["schedule"]), webhook=_webhook(said["webhook"])
        )
        self._headers = [_header(text) for text in said["header"] or ()]
        if said["cookie"] is not None:
            self._headers.append(Header(name="Cookie", value=_value(said["cookie"], "--cookie")))

    def __bool__(self) -> bool:
        return any((self._limits, self._scope, self._access, self._region, self._others, self._headers))

    def over(self, settings: SourceSettings) -> SourceSettings:
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


def takes_settings(command: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """The command with all of OPTIONS; what they say is handed over as ``given``."""

    @wraps(command)
    async def taking(**values: Any) -> Any:
        given = Given(**{name: values.pop(name) for name in OPTIONS})
        return await command(**values, given=given)

    own = [one for one in inspect.signature(command).parameters.values() if one.name != "given"]
    kind = inspect.Parameter.KEYWORD_ONLY
    shared = [inspect.Parameter(name, kind, default=None, annotation=of) for name, of in OPTIONS.items()]
    taking.__signature__ = inspect.Signature([*(one.replace(kind=kind) for one in own), *shared])  # type: ignore[attr-defined]
    return taking


def _said(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _listed(values: list[str] | None) -> tuple[str, ...] | None:
    return tuple(filter(None, values)) if values else None


def _render(said: str | None) -> Render | None:
    if said is not None and said not in Render.__members__.values():
        raise WrongCall(f"--render should be auto, never or always; it is '{said}'.")
    return Render(said) if said is not None else None


def _schedule(said: str | None) -> str | None:
    """As it is stored: checked, in one spelling, and empty for off."""
    if said is None:
        return None
    return " ".join(said.split()) if parse_schedule(said) else ""


def _webhook(said: str | None) -> str | None:
    """A URL without a password, or where to find one; what it is otherwise is not said, it may hold a secret."""
    if not said or (parse_reference(said) or ())[:2] == ("", "env"):
        return said
    if not said.startswith(("http://", "https://")) or canonical(said) is None or split_login(said)[1]:
        raise WrongCall("--webhook should be a web address without a password, or env:NAME.")
    return said


def _header(text: str) -> Header:
    """What is wrong with it is said without its value, which may be a secret."""
    name, colon, value = text.partition(":")
    if not colon or not _NAME.fullmatch(name.strip()):
        raise WrongCall("--header should look like 'Name: value'; what was given has no name before a colon.")
    if name.strip().lower() in _OURS:
        raise WrongCall(f"--header cannot be {name.strip()}: Kept says that itself.")
    return Header(name=name.strip(), value=_value(value, f"--header {name.strip()}"))


def _value(text: str, of: str) -> str:
    if _CONTROL.search(text):
        raise WrongCall(f"The value of {of} has line breaks or control characters in it.")
    return text.strip()
