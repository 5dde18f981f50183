"""A source: one thing that is kept, and how far its crawls may go."""

import re
from dataclasses import asdict, dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any


class SourceKind(StrEnum):
    WEB = "web"
    FOLDER = "folder"
    GIT = "git"
    PACKAGE = "package"


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
    """Which part of an HTML page is read, where a person knows better than the reader. CSS selectors."""

    select: str = ""  # empty: the reader decides
    drop: tuple[str, ...] = ()


DEFAULT_REGION = Region()
"""Nobody knows better."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Where a crawl stops admitting new documents. Known ones are always visited. None: no limit."""

    max_pages: int | None = None
    max_depth: int | None = None
    max_seconds: float | None = None
    max_bytes: int = 32 * 1024 * 1024  # of one document


@dataclass(frozen=True, slots=True, kw_only=True)
class Header:
    """A header that the site of the root gets, and no other. Its value is never shown."""

    name: str
    value: str = field(repr=False)  # as it is sent; or where to find it: "env:NAME", "Bearer env:NAME", "secret:NAME"


_SECRET_REFERENCE = re.compile(r"((?:[A-Za-z][\w-]*[ =])?)(env|secret):([A-Za-z_][\w.-]*)")


def parse_secret_reference(value: str) -> tuple[str, str, str] | None:
    """Where a value is to be found: what stands before it ("Bearer "), env or secret, the name. None: it is said."""
    found = _SECRET_REFERENCE.fullmatch(value)
    return (found[1], found[2], found[3]) if found else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Access:
    """How the site of a source is asked."""

    user_agent: str = ""  # empty: Kept's own
    headers: tuple[Header, ...] = ()
    proxy: str = field(default="", repr=False)  # a URL, or where to find it, as in a header
    ca_file: str = ""  # certificates to trust besides the system's
    ignore_robots: bool = False
    render: RenderMode = RenderMode.AUTO
    concurrency: int = 8  # requests to one host at once
    delay: float = 0.0  # seconds between them
    connect_seconds: float = 10.0
    first_byte_seconds: float = 30.0  # and between any two bytes
    whole_seconds: float = 120.0
    allowed: tuple[str, ...] = ()  # "host:port" of addresses that are not public, as its owner named them


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSettings:
    """What a person has set for one source."""

    scope: Scope = field(default_factory=Scope)
    limits: Limits = field(default_factory=Limits)
    access: Access = field(default_factory=Access)
    region: Region = field(default_factory=Region)
    tags: tuple[str, ...] = ()
    schedule: str = ""  # see kept.model.schedule; empty: only when somebody asks
    webhook: str = ""  # a URL that is told what came of its crawls, or where to find it: "env:NAME"
    watch: bool = False  # a folder: refreshed whenever its files change, by whoever serves
    hook_secret: str = field(default="", repr=False)  # signs what asks for a refresh of it; where to find it

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "SourceSettings":
        """What as_json() gave, of this Kept or an older one: what is not in it is as if it had never been set."""
        scope, access = stored.get("scope", {}), stored.get("access", {})
        headers = tuple(Header(**header) for header in access.get("headers", ()))
        known = {
            "headers": headers,
            "allowed": tuple(access.get("allowed", ())),
            "render": RenderMode(access.get("render", "auto")),
        }
        region = stored.get("region", {})
        return cls(
            scope=Scope(**{name: tuple(value) for name, value in scope.items()}),
            limits=Limits(**stored.get("limits", {})),
            access=Access(**access | known),
            region=Region(select=region.get("select", ""), drop=tuple(region.get("drop", ()))),
            tags=tuple(stored.get("tags", ())),
            schedule=stored.get("schedule", ""),
            webhook=stored.get("webhook", ""),
            watch=bool(stored.get("watch", False)),
            hook_secret=stored.get("hook_secret", ""),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """One thing that is kept. Known to people as ``name`` or ``name@version``."""

    id: str
    name: str
    version: str  # a label such as "18"; empty when there is none
    kind: SourceKind
    root: str
    settings: SourceSettings
    active_generation: int | None
    created_at: datetime
    next_run_at: datetime | None = None  # of its schedule
    schedule_paused_at: datetime | None = None  # by a rollback, until somebody asks for a refresh
    runs: int = 0  # how often its schedule has asked for a crawl
    validators_wrong_at: datetime | None = None  # when a page had changed and its validators had not
    sitemap_wrong_at: datetime | None = None  # when pages had not changed and its sitemap said that they had
    root_identity: str | None = None  # what told its root from another in its place, at its last crawl

    @property
    def label(self) -> str:
        return format_label(self.name, self.version)


def format_label(name: str, version: str) -> str:
    """What people call a source: ``django@5.2``, or ``django`` if it has no version."""
    return f"{name}@{version}" if version else name


def host_and_port(root: str) -> str:
    """What ``Access.allowed`` calls the site of a canonical web root: ``docs.test:443``, ``[::1]:8000``."""
    scheme, _, rest = root.partition("://")
    authority = rest.partition("/")[0]
    host, colon, port = authority.rpartition(":")
    if colon and port.isdigit() and not host.count("[") > host.count("]"):
        return f"{host}:{port}"
    return f"{authority}:{443 if scheme == 'https' else 80}"


def parse_label(label: str) -> tuple[str, str]:
    """``"django@5"`` is the name ``django`` with the version label ``5``; no ``@`` means no label."""
    name, _, version = label.partition("@")
    return name, version
