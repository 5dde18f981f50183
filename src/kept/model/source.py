"""A source: a site, folder, repository or package, and its settings."""

import re
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from enum import StrEnum
from typing import Any


class SourceKind(StrEnum):
    WEB = "web"
    FOLDER = "folder"
    GIT = "git"
    PACKAGE = "package"


class Authority(StrEnum):
    """Who named a source, or gave one of its settings. ``model.authority`` says what follows from it."""

    OWNER = "owner"  # of the machine: at the command line, or in their own configuration
    CALLER = "caller"  # of the server or of MCP, with any key or none; an import that was not confirmed


@dataclass(frozen=True, slots=True, kw_only=True)
class Scope:
    """Which documents of the root belong to the source. Patterns are globs over the path below the root."""

    include: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    within: tuple[str, ...] = ()  # on the web: "folder" (the root's, as when empty), "host", beginnings of URLs
    pages: tuple[str, ...] = ()  # on the web: exactly these and no link beyond them; the root is the file they came in


class RenderMode(StrEnum):
    """When a page is opened in a browser before it is read."""

    AUTO = "auto"  # when without one it is an empty shell
    NEVER = "never"
    ALWAYS = "always"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """The part of an HTML page that is read, as CSS selectors, where the reader should not decide."""

    select: str = ""  # empty: the reader decides
    drop: tuple[str, ...] = ()


DEFAULT_REGION = Region()
"""The reader decides."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Limits of a crawl. A lowered one removes documents at the next refresh. None: no limit."""

    max_pages: int | None = None
    max_depth: int | None = None
    max_seconds: float | None = None
    max_bytes: int = 32 * 1024 * 1024  # of one document
    no_traps: bool = False  # visit also what looks like an endless family of pages
    not_traps: tuple[str, ...] = ()  # patterns of paths that are no trap, whatever they look like


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A header that is sent to the site of the root, and to no other. Its value is never shown."""

    name: str
    value: str = field(repr=False)  # as it is sent, or a reference: "env:NAME", "Bearer env:NAME", "secret:NAME"


_SECRET_REFERENCE = re.compile(r"((?:[A-Za-z][\w-]*[ =])?)(env|secret):([A-Za-z_][\w.-]*)")


def parse_secret_reference(value: str) -> tuple[str, str, str] | None:
    """Parse a reference to a secret: its prefix ("Bearer "), "env" or "secret", the name. None: a plain value."""
    found = _SECRET_REFERENCE.fullmatch(value)
    return (found[1], found[2], found[3]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How requests to the site of a source are made."""

    user_agent: str = ""  # empty: Kept's own
    headers: tuple[Header, ...] = ()
    proxy: str = field(default="", repr=False)  # a URL, or a reference, as in a header
    ca_file: str = ""  # certificates to trust besides the system's
    ignore_robots: bool = False
    render: RenderMode = RenderMode.AUTO
    concurrency: int = 8  # concurrent requests to one host
    delay: float = 0.0  # seconds between them
    connect_seconds: float = 10.0
    first_byte_seconds: float = 30.0  # and between any two bytes
    whole_seconds: float = 120.0
    # Hosts that were not public when they were named, and the class of address that they had: "wiki.test:80 private".
    allowed: tuple[str, ...] = ()

    @property
    def has_unpinned_hosts(self) -> bool:
        """Whether a name is allowed whose class of address is not recorded yet."""
        return any(not _PINNED_HOST.fullmatch(text) for text in self.allowed)


# A name with its class of address; an IP address needs none.
_PINNED_HOST = re.compile(r".* .*|(\d+\.){3}\d+:\d+|\[.*\]:\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """The settings of one source."""

    scope: Scope = field(default_factory=Scope)
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    region: Region = field(default_factory=Region)
    tags: tuple[str, ...] = ()
    schedule: str = ""  # see kept.model.schedule; empty: none
    webhook: str = ""  # a URL that gets the results of its crawls, or a reference: "env:NAME"
    webhook_secret: str = field(default="", repr=False)  # a reference; what is sent to the webhook is signed with it
    watch: bool = False  # a folder: a server refreshes it whenever its files change
    hook_secret: str = field(default="", repr=False)  # a reference; hooks that request a refresh are signed with it
    given_by: tuple[tuple[str, Authority], ...] = ()  # who gave a setting, by the name of its option

    def as_json(self) -> dict[str, Any]:
        return asdict(self) | {"given_by": dict(self.given_by)}

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "SourceSettings":
        """Read what as_json() wrote, also of an older version: settings that are missing have their defaults."""
        scope, limits, access = stored.get("scope", {}), stored.get("limits", {}), stored.get("access", {})
        headers = tuple(Header(**header) for header in access.get("headers", ()))
        known = {
            "headers": headers,
            "allowed": tuple(access.get("allowed", ())),
            "render": RenderMode(access.get("render", "auto")),
        }
        region = stored.get("region", {})
        return cls(
            scope=Scope(**{name: tuple(value) for name, value in scope.items()}),
            limits=Limits(**limits | {"not_traps": tuple(limits.get("not_traps", ()))}),
            access=Access(**access | known),
            region=Region(select=region.get("select", ""), drop=tuple(region.get("drop", ()))),
            tags=tuple(stored.get("tags", ())),
            schedule=stored.get("schedule", ""),
            webhook=stored.get("webhook", ""),
            watch=bool(stored.get("watch", False)),
            webhook_secret=stored.get("webhook_secret", ""),
            hook_secret=stored.get("hook_secret", ""),
            given_by=tuple((name, Authority(who)) for name, who in stored.get("given_by", {}).items()),
        )

    def record_given(self, names: Iterable[str], authority: Authority) -> "SourceSettings":
        """Return the settings with a note of who gave those of these names."""
        return replace(self, given_by=tuple((dict(self.given_by) | dict.fromkeys(names, authority)).items()))


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A source. People call it ``name`` or ``name@version``."""

    id: str
    name: str
    version: str  # a label such as "18"; empty when there is none
    kind: SourceKind
    root: str
    settings: SourceSettings
    active_generation: int | None
    created_at: datetime
    authority: Authority = Authority.OWNER  # that named its root
    next_run_at: datetime | None = None  # of its schedule
    schedule_paused_at: datetime | None = None  # by a rollback, until the next requested refresh
    runs: int = 0  # crawls that its schedule has started
    validators_wrong_at: datetime | None = None  # when a page had changed and its validators had not
    sitemap_wrong_at: datetime | None = None  # when its sitemap called pages modified that had not changed
    root_identity: str | None = None  # of the last crawl: tells the root from another one in its place

    @property
    def label(self) -> str:
        return format_label(self.name, self.version)

    def authority_of(self, setting: str) -> Authority:
        """Return who gave a setting; where that is not recorded, who named the source."""
        return dict(self.settings.given_by).get(setting, self.authority)


def format_label(name: str, version: str) -> str:
    """Return the label of a source: ``django@5.2``, or ``django`` without a version."""
    return f"{name}@{version}" if version else name


def host_and_port(root: str) -> str:
    """Return host and port of a canonical web root, as in ``Access.allowed``: ``docs.test:443``, ``[::1]:8000``."""
    scheme, _, rest = root.partition("://")
    authority = rest.partition("/")[0]
    host, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and not host.count("[") > host.count("]"):
        return f"{host}:{port}"
    return f"{authority}:{443 if scheme == 'https' else 80}"


def parse_label(label: str) -> tuple[str, str]:
    """Split ``"django@5"`` into name and version; without ``@`` the version is empty."""
    name, _, version = label.partition("@")
    return name, version
