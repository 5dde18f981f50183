"""Settings of a source as a caller gives them: one table for the command line, the API, the web form and MCP.

To add a setting: a field in ``SourceSettings`` and a row in SOURCE_OPTIONS. The options of the command line and the web
form are derived from the table; ``tests/unit/test_source_options.py`` holds the API model and the MCP tool to it.
"""

import math
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from kept.errors import InvalidInput
from kept.model.duration import parse_duration
from kept.model.root import split_login
from kept.model.schedule import parse_schedule
from kept.model.source import Header, RenderMode, SourceSettings, parse_secret_reference
from kept.model.url import canonicalize_url

ValueKind: TypeAlias = Literal["text", "texts", "integer", "number", "flag"]

_DEFAULTS = SourceSettings()
_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_RESERVED_HEADERS = ("host", "connection", "content-length", "transfer-encoding", "user-agent")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceOption:
    """One setting of a source, as every interface offers it. Its default is that of ``SourceSettings``."""

    name: str  # max_pages in the API, --max-pages on the command line
    field: str  # where it is in SourceSettings: limits.max_pages
    kind: ValueKind
    help: str
    metavar: str = ""
    flags: str = ""  # of a flag on the command line: --watch/--no-watch
    minimum: int | None = None
    maximum: int | None = None
    parse: Callable[[Any], Any] = lambda value: value  # to the value that is stored; raises InvalidInput
    on: tuple[str, ...] = ("api",)  # where it can be set besides the command line: api, web, mcp
    is_machine_local: bool = False  # its value is a path or an address of this machine
    may_hold_secret: bool = False  # its value may be a reference to a secret of this machine

    @property
    def default(self) -> Any:
        value: Any = _DEFAULTS
        for part in self.field.split("."):
            value = getattr(value, part)
        return value

    def read(self, value: Any) -> Any:
        """Return the value that is stored. An empty text or list clears the setting. Raises InvalidInput."""
        if value == "" or (self.kind == "texts" and not any(value)):
            return self.default
        if self.kind == "texts":
            value = tuple(filter(None, value))
        elif self.kind in ("integer", "number"):
            value = self._number(value)
        return self.parse(value)

    def _number(self, value: Any) -> int | float:
        least, most = self.minimum or 0, self.maximum or math.inf
        try:
            is_valid = self.kind == "number" or isinstance(value, int) or re.fullmatch("[0-9]{1,18}", value)
            number = (int if self.kind == "integer" else float)(value) if is_valid else -1
        except ValueError:
            number = -1
        if not least <= number <= most or number == math.inf:
            kind = "a whole number" if self.kind == "integer" else "a number"
            limits = f"from {least} on" if self.maximum is None else f"from {least} to {self.maximum}"
            raise InvalidInput(f"{option_flag(self.name)} should be {kind} {limits}; it is '{value}'.")
        return number


def option_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


SOURCE_OPTIONS: tuple[SourceOption, ...] = (
    SourceOption(
        name="max_pages",
        field="limits.max_pages",
        kind="integer",
        metavar="N",
        minimum=1,
        help="Maximum number of documents.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="max_depth",
        field="limits.max_depth",
        kind="integer",
        metavar="N",
        minimum=0,
        help="Maximum number of links from the root of a site.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="max_time",
        field="limits.max_seconds",
        kind="text",
        metavar="TIME",
        help="Add no new pages after this time: 90s, 15m, 2h.",
        parse=parse_duration,
    ),
    SourceOption(
        name="no_traps",
        field="limits.no_traps",
        kind="flag",
        flags="--no-traps/--traps",
        help="Follow endless calendars and combinations of parameters too.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="not_a_trap",
        field="limits.not_traps",
        kind="texts",
        metavar="GLOB",
        help="Follow these paths as if they were no trap. May be repeated.",
    ),
    SourceOption(
        name="scope",
        field="scope.within",
        kind="texts",
        metavar="folder|host|PREFIX",
        help="What belongs to a site. May be repeated.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="include",
        field="scope.include",
        kind="texts",
        metavar="GLOB",
        help="Only these paths. May be repeated.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="exclude",
        field="scope.exclude",
        kind="texts",
        metavar="GLOB",
        help="Exclude these paths. May be repeated.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="header",
        field="access.headers",
        kind="texts",
        metavar="'K: V'",
        help="Header to send to the site; better 'K: env:NAME'. May be repeated.",
        parse=lambda texts: tuple(map(_parse_header, texts)),
        may_hold_secret=True,
    ),
    SourceOption(
        name="cookie",
        field="access.headers",
        kind="text",
        metavar="A=B",
        help="Cookie to send to the site; better 'A=env:NAME'.",
        parse=lambda text: (Header(name="Cookie", value=_check_value(text, "--cookie")),),
        may_hold_secret=True,
    ),
    SourceOption(
        name="user_agent",
        field="access.user_agent",
        kind="text",
        metavar="TEXT",
        help="User agent to send instead of Kept's.",
    ),
    SourceOption(
        name="proxy",
        field="access.proxy",
        kind="text",
        metavar="URL",
        help="Connect through this proxy; env:NAME keeps its password out.",
        is_machine_local=True,
    ),
    SourceOption(
        name="ca_file",
        field="access.ca_file",
        kind="text",
        metavar="FILE",
        help="CA certificates to trust in addition to the system's.",
        parse=os.path.abspath,
        is_machine_local=True,
    ),
    SourceOption(
        name="select",
        field="region.select",
        kind="text",
        metavar="CSS",
        help="Read only this part of each HTML page.",
        on=("api", "web"),
    ),
    SourceOption(
        name="drop",
        field="region.drop",
        kind="texts",
        metavar="CSS",
        help="Drop these parts of each HTML page. May be repeated.",
    ),
    SourceOption(
        name="render",
        field="access.render",
        kind="text",
        metavar="auto|never|always",
        help="Render pages in a browser.",
        parse=lambda text: _parse_render(text),
    ),
    SourceOption(
        name="ignore_robots",
        field="access.ignore_robots",
        kind="flag",
        flags="--ignore-robots/--obey-robots",
        help="Ignore robots.txt, noindex and nofollow: the site is yours.",
    ),
    SourceOption(
        name="concurrency",
        field="access.concurrency",
        kind="integer",
        metavar="N",
        minimum=1,
        maximum=64,
        help="Concurrent requests to the site.",
    ),
    SourceOption(
        name="delay",
        field="access.delay",
        kind="number",
        metavar="SECONDS",
        minimum=0,
        help="Seconds between requests to the site.",
    ),
    SourceOption(
        name="tag",
        field="tags",
        kind="texts",
        metavar="TAG",
        help="A tag for the source. May be repeated.",
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="schedule",
        field="schedule",
        kind="text",
        metavar="EVERY|CRON",
        help="Refresh on a schedule: 6h, 1d, '0 3 * * *' (UTC), auto; off.",
        parse=lambda text: _normalize_schedule(text),
        on=("api", "web", "mcp"),
    ),
    SourceOption(
        name="webhook",
        field="webhook",
        kind="text",
        metavar="URL",
        help="URL that is notified of the result of each crawl.",
        parse=lambda text: _check_webhook(text),
        may_hold_secret=True,
    ),
    SourceOption(
        name="webhook_secret",
        field="webhook_secret",
        kind="text",
        metavar="SECRET",
        help="Secret that signs what the webhook of this source gets; better env:NAME.",
        parse=lambda text: _check_value(text, "--webhook-secret"),
        may_hold_secret=True,
    ),
    SourceOption(
        name="watch",
        field="watch",
        kind="flag",
        flags="--watch/--no-watch",
        help="A folder: stay, and refresh it when files change.",
        on=(),
    ),
    SourceOption(
        name="hook_secret",
        field="hook_secret",
        kind="text",
        metavar="SECRET",
        help="Secret that signs refresh hooks of this source; better env:NAME.",
        parse=lambda text: _check_value(text, "--hook-secret"),
        may_hold_secret=True,
    ),
)
OPTION_NAMES = tuple(option.name for option in SOURCE_OPTIONS)


class SourceOptions:
    """The settings that a caller gives. None: not given, stays as it is. An empty text or list clears a setting."""

    def __init__(self, **values: Any) -> None:
        if unknown := values.keys() - set(OPTION_NAMES):
            raise InvalidInput(
                f"There is no setting '{min(unknown)}' of a source. There are {', '.join(OPTION_NAMES)}."
            )
        given = {name: value for name, value in values.items() if value is not None}
        self._values = {option: option.read(given[option.name]) for option in SOURCE_OPTIONS if option.name in given}
        self._clears_headers = "header" in given and not self._values[_OPTIONS["header"]]
        self._clears_cookie = "cookie" in given and not self._values[_OPTIONS["cookie"]]

    def __bool__(self) -> bool:
        return bool(self._values)

    @property
    def watch(self) -> bool:
        """Whether the caller asks to stay and watch a folder."""
        return bool(self._values.get(_OPTIONS["watch"]))

    @property
    def names(self) -> list[str]:
        """The names of the settings that were given. A cookie is a header."""
        return list(dict.fromkeys("header" if option.name == "cookie" else option.name for option in self._values))

    @property
    def named_values(self) -> dict[str, list[str]]:
        """The values that may name something of this machine: a file, a variable, a secret, a proxy."""
        return {
            option.name: [one.value for one in value] if option.field == "access.headers" else [value]
            for option, value in self._values.items()
            if option.is_machine_local or option.may_hold_secret
        }

    def changes(self, settings: SourceSettings) -> list[str]:
        """Return the names of the settings that these options would change."""
        return [
            "header" if option.name == "cookie" else option.name
            for option, value in self._values.items()
            if (
                self._merge_headers(settings.access.headers) != settings.access.headers
                if option.field == "access.headers"
                else _with_value(settings, option.field, value) != settings
            )
        ]

    def apply_to(self, settings: SourceSettings) -> SourceSettings:
        """Return the settings with those that were given."""
        for option, value in self._values.items():
            if option.field != "access.headers":
                settings = _with_value(settings, option.field, value)
        return replace(settings, access=replace(settings.access, headers=self._merge_headers(settings.access.headers)))

    def _merge_headers(self, headers: tuple[Header, ...]) -> tuple[Header, ...]:
        """Return the headers with those that were given: one without a value is dropped."""
        merged = {
            one.name.lower(): one
            for one in headers
            if not (self._clears_cookie if one.name.lower() == "cookie" else self._clears_headers)
        }
        given = [self._values.get(_OPTIONS[name], ()) for name in ("header", "cookie")]
        merged |= {one.name.lower(): one for one in (*given[0], *given[1])}
        return tuple(one for one in merged.values() if one.value)


_OPTIONS = {option.name: option for option in SOURCE_OPTIONS}


def check_stored_settings(settings: SourceSettings) -> None:
    """Raise InvalidInput for settings of the right types whose values no interface would have stored."""
    access = settings.access
    for header in access.headers:
        _parse_header(f"{header.name}: {header.value}")
    for option in SOURCE_OPTIONS:
        value: Any = settings
        for part in option.field.split("."):
            value = getattr(value, part)
        if option.field == "access.headers" or value == option.default:
            continue
        stored = option.read(f"{value}s" if option.name == "max_time" else value)
        if stored != value:
            raise InvalidInput(f"{option_flag(option.name)} would be stored as '{stored}'; it is '{value}'.")
    if min(access.connect_seconds, access.first_byte_seconds, access.whole_seconds) <= 0:
        raise InvalidInput("A request needs more than 0 seconds.")
    if any(canonicalize_url(page) != page for page in settings.scope.pages):
        raise InvalidInput("The pages of a list should be canonical URLs.")


def _with_value(settings: SourceSettings, field: str, value: Any) -> SourceSettings:
    group, _, name = field.rpartition(".")
    if not group:
        return replace(settings, **{name: value})
    return replace(settings, **{group: replace(getattr(settings, group), **{name: value})})


def _parse_render(text: str) -> RenderMode:
    if text not in RenderMode.__members__.values():
        raise InvalidInput(f"--render should be auto, never or always; it is '{text}'.")
    return RenderMode(text)


def _normalize_schedule(text: str) -> str:
    """Return a schedule in one spelling, or "" for off. Raises InvalidInput."""
    return " ".join(text.split()) if parse_schedule(text) else ""


def _check_webhook(text: str) -> str:
    """Return a URL without a password, or a reference. Raises InvalidInput, without the text: it may be a secret."""
    if (parse_secret_reference(text) or ())[:2] == ("", "env"):
        return text
    if not text.startswith(("http://", "https://")) or canonicalize_url(text) is None or split_login(text)[1]:
        raise InvalidInput("--webhook should be a web address without a password, or env:NAME.")
    return text


def _parse_header(text: str) -> Header:
    """Parse 'Name: value'. Raises InvalidInput, without the value: it may be a secret."""
    name, colon, value = text.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name.strip()):
        raise InvalidInput("--header should look like 'Name: value'; what was given has no name before a colon.")
    if name.strip().lower() in _RESERVED_HEADERS:
        raise InvalidInput(f"--header cannot be {name.strip()}: Kept sends that itself.")
    return Header(name=name.strip(), value=_check_value(value, f"--header {name.strip()}"))


def _check_value(text: str, option: str) -> str:
    if _CONTROL.search(text):
        raise InvalidInput(f"The value of {option} has line breaks or control characters in it.")
    return text.strip()
