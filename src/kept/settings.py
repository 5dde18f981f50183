"""Settings: defaults < file < environment < arguments; read once, checked whole, handed over.

A file is ``kept.toml`` in the working folder, else in the user's config folder. Every setting is also an
environment variable: ``crawl.grace_days`` is ``KEPT_CRAWL__GRACE_DAYS``, the database ``KEPT_DATABASE``.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from kept.errors import InvalidInput


@dataclass(frozen=True, kw_only=True)
class CrawlSettings:
    """When a document that is not seen any more is given up, and when a person should look first."""

    grace_crawls: int = 2
    grace_days: float = 7.0
    brake_percent: float = 20.0
    brake_documents: int = 5
    browser: str = ""  # the Chromium for pages that need one; empty: whichever is installed


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """How workers keep their jobs."""

    heartbeat_seconds: float = 10.0
    silent_seconds: float = 120.0


@dataclass(frozen=True, kw_only=True)
class HistorySettings:
    """What is kept of the past: whichever keeps more."""

    generations: int = 10
    days: float = 30.0


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """What holds for every schedule."""

    shortest_hours: float = 1.0  # between refreshes, where Kept decides
    longest_days: float = 30.0
    full_every: int = 10  # runs; 0: none is full


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """Who is told what came of crawls."""

    url: str = ""  # of everything; or where to find it: "env:NAME"
    secret: str = field(default="", repr=False)  # signs what is told; better "env:NAME"
    allow: str = ""  # "host:port host:port": addresses that are not public and may be told all the same


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """What callers of the server may name as a source: 1 is yes, 0 is no."""

    allow_private: int = 0  # hosts that are not public
    allow_files: int = 0  # folders and files of the server's machine, and its environment


@dataclass(frozen=True, kw_only=True)
class EmbedSettings:
    """Who says what sections mean, as vectors."""

    provider: str = "auto"  # static, openai (any server that speaks so), none; auto: static where a search uses it
    model: str = ""  # of the server
    url: str = ""  # of the server, up to and including /v1
    key: str = field(default="", repr=False)  # of the server; better "env:NAME"
    batch_size: int = 64  # texts in one request
    dimensions: int = 0  # of a vector; 0: as the model has it


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """What a search goes by."""

    mode: str = "lexical"  # words; or meaning, or fused: both


@dataclass(frozen=True, kw_only=True)
class RerankSettings:
    """Who takes a second look at the first hits; nobody, unless a server is named."""

    url: str = ""  # of the server, up to /rerank
    model: str = ""
    key: str = field(default="", repr=False)  # better "env:NAME"
    hits: int = 30  # that it is shown
    seconds: float = 2.0  # until the hits come without it


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """What the server lets in, and how much of it. 0: no limit."""

    hosts: str = ""  # "docs.example.com wiki.example.com": what else it is called; with any, keys are needed
    requests_per_minute: int = 600  # of one key, or of one address without a key
    at_once: int = 64  # requests
    streams: int = 200  # connections that stay open to be told what happens
    seconds: float = 60.0  # until an answer begins; longer only for a request that is long
    upload_mb: int = 100
    uploads: str = ""  # the folder for them; empty: in the user's data folder
    live_jobs: int = 20  # of one key
    sources: int = 1000
    pages: int = 100_000


@dataclass(frozen=True, kw_only=True)
class Settings:
    database: str
    crawl: CrawlSettings
    work: WorkSettings
    history: HistorySettings
    schedule: ScheduleSettings
    webhooks: WebhookSettings
    network: NetworkSettings
    embed: EmbedSettings
    search: SearchSettings
    rerank: RerankSettings
    serve: ServeSettings
    secrets_file: Path  # of this user; no setting: it lies in the user's data folder
    cache_folder: Path  # for what can be fetched again
    environment: Mapping[str, str] = field(repr=False)  # where "env:NAME" is looked up
    value_origins: Mapping[str, str] = field(default_factory=dict)  # the name of a setting -> where its value came from

    @property
    def uploads_folder(self) -> Path:
        said = self.serve.uploads
        return Path(said).expanduser().resolve() if said else self.secrets_file.with_name("uploads")

    def effective(self) -> dict[str, Any]:
        """Every setting by its name."""
        sections = {name: getattr(self, name) for name in _SECTIONS}
        return {"database": self.database} | {
            f"{name}.{one.name}": getattr(section, one.name)
            for name, section in sections.items()
            for one in fields(section)
        }


_SECTIONS: dict[str, type] = {
    "crawl": CrawlSettings,
    "work": WorkSettings,
    "history": HistorySettings,
    "schedule": ScheduleSettings,
    "webhooks": WebhookSettings,
    "network": NetworkSettings,
    "embed": EmbedSettings,
    "search": SearchSettings,
    "rerank": RerankSettings,
    "serve": ServeSettings,
}

_SECRET_NAMES = {f"{name}.{one.name}" for name, kind in _SECTIONS.items() for one in fields(kind) if not one.repr}
_CHOICES = {"embed.provider": ("auto", "static", "openai", "none"), "search.mode": ("lexical", "meaning", "fused")}


def load(*, environment: Mapping[str, str], folder: Path, database: str | None = None) -> Settings:
    """The effective settings. Raises WrongCall with the name of whatever is wrong."""
    defaults = _defaults()
    values, came_from = dict(defaults), dict.fromkeys(defaults, "default")
    for where, name, value in [*_from_file(folder), *_from_environment(environment), *_from_arguments(database)]:
        if name not in defaults:
            raise InvalidInput(f"{where}: there is no setting '{name}'. 'kept config' lists them.")
        values[name], came_from[name] = _convert_and_check(name, value, defaults[name], where), where
    made = {
        section: kind(**{one.name: values[f"{section}.{one.name}"] for one in fields(kind)})
        for section, kind in _SECTIONS.items()
    }
    if values["embed.provider"] == "openai" and not (values["embed.url"] and values["embed.model"]):
        where = came_from["embed.provider"]
        raise InvalidInput(f"{where}: embed.provider is openai, so embed.url and embed.model have to say which.")
    _check_work(made["work"], came_from)
    return Settings(
        database=values["database"],
        secrets_file=_data_folder() / "secrets.json",
        cache_folder=_cache_folder(),
        environment=environment,
        value_origins=came_from,
        **made,
    )


def _check_work(work: WorkSettings, came_from: Mapping[str, str]) -> None:
    """A worker has to be heard of twice before anybody may take it for dead: one heartbeat may come late."""
    if work.heartbeat_seconds <= 0:
        raise InvalidInput(f"{came_from['work.heartbeat_seconds']}: work.heartbeat_seconds should be more than 0.")
    if work.silent_seconds < 2 * work.heartbeat_seconds:
        changed = [came_from[f"work.{name}"] for name in ("silent_seconds", "heartbeat_seconds")]
        where = next((one for one in changed if one != "default"), "default")
        raise InvalidInput(
            f"{where}: work.silent_seconds ({work.silent_seconds:g}) should be at least twice work.heartbeat_seconds"
            f" ({work.heartbeat_seconds:g}): workers would be taken for dead between two heartbeats."
        )


def _data_folder() -> Path:
    from platformdirs import user_data_path

    return user_data_path("kept", appauthor=False)


def _cache_folder() -> Path:
    from platformdirs import user_cache_path

    return user_cache_path("kept", appauthor=False)


def _defaults() -> dict[str, Any]:
    sections = {f"{name}.{one.name}": one.default for name, kind in _SECTIONS.items() for one in fields(kind)}
    return {"database": f"sqlite:///{_data_folder() / 'kept.db'}"} | sections


def _from_file(folder: Path) -> Iterator[tuple[str, str, Any]]:
    from platformdirs import user_config_path

    for file in (folder / "kept.toml", user_config_path("kept", appauthor=False) / "kept.toml"):
        if not file.is_file():
            continue
        import tomllib  # only who has a file needs it

        try:
            content = tomllib.loads(file.read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InvalidInput(f"{file} cannot be read as settings: {error}") from None
        for name, value in content.items():
            if isinstance(value, dict):
                yield from ((str(file), f"{name}.{inner}", one) for inner, one in value.items())
            else:
                yield str(file), name, value
        return


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, str, Any]]:
    for variable, value in sorted(environment.items()):
        section, separator, name = variable.removeprefix("KEPT_").lower().partition("__")
        if variable == "KEPT_DATABASE":
            yield variable, "database", value
        elif variable.startswith("KEPT_") and separator:
            yield variable, f"{section}.{name}", value


def _from_arguments(database: str | None) -> Iterator[tuple[str, str, Any]]:
    if database:
        yield "--database", "database", database


def _convert_and_check(name: str, value: Any, default: Any, where: str) -> Any:
    """The value in the kind of its default; no setting may be negative, infinite or of another kind."""
    kind = type(default)
    allowed = (str,) if kind is str else (str, int, float)  # the environment has only texts
    try:
        made = kind(value) if isinstance(value, allowed) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        made = None
    if isinstance(value, float) and made != value:  # not the same any more: a part of a whole number
        made = None
    if name in _SECRET_NAMES and made is None:
        raise InvalidInput(f"{where}: {name} should be a text.")
    if made is None or (kind is not str and not (math.isfinite(made) and made >= 0)):
        wanted = {int: "a whole number", float: "a number"}.get(kind, "a text")
        raise InvalidInput(f"{where}: {name} should be {wanted} and not negative; it is {value!r}.")
    if made not in (choices := _CHOICES.get(name, (made,))):
        raise InvalidInput(f"{where}: {name} should be one of {', '.join(choices)}; it is {value!r}.")
    return made
