"""Loads the settings, once: defaults < file < environment < arguments.

The file is ``kept.toml`` in the user's config folder, or the one that ``--config`` names. Over the former, the
``kept.toml`` of the working folder sets what can do no harm, and everything once the user trusts it: it may have come
with a checkout. Every setting is also an environment variable: ``crawl.grace_days`` is ``KEPT_CRAWL__GRACE_DAYS``, the
database ``KEPT_DATABASE``.
"""

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeAlias

from kept.errors import InvalidInput
from kept.model.authority import OWNER_PERMISSIONS, Permissions
from kept.model.source import Authority


@dataclass(frozen=True, kw_only=True)
class CrawlSettings:
    """When a missing document is deleted, when the brake holds a generation, and when a crawl gives up."""

    grace_crawls: int = 2
    grace_days: float = 7.0
    brake_percent: float = 20.0
    brake_documents: int = 5
    give_up_seconds: float = 60.0  # without an answer from the site a crawl fails; 0: it never gives up
    browser: str = ""  # path of the Chromium that renders pages; empty: the one that is installed


@dataclass(frozen=True, kw_only=True)
class WorkSettings:
    """Heartbeats of workers, and when a silent one counts as dead."""

    heartbeat_seconds: float = 10.0
    silent_seconds: float = 120.0


@dataclass(frozen=True, kw_only=True)
class HistorySettings:
    """How much history garbage collection leaves: of generations, whichever of the two keeps more."""

    generations: int = 10
    days: float = 30.0
    jobs: int = 100  # of each source, besides the one whose frontier is the ledger


@dataclass(frozen=True, kw_only=True)
class ScheduleSettings:
    """Bounds of adaptive schedules, and how often a scheduled crawl is a full one."""

    shortest_hours: float = 1.0  # between refreshes of an adaptive schedule
    longest_days: float = 30.0
    full_every: int = 10  # runs; 0: never


@dataclass(frozen=True, kw_only=True)
class WebhookSettings:
    """The operator's webhook, which receives the events of every source."""

    url: str = ""  # or a reference: "env:NAME"
    secret: str = field(default="", repr=False)  # signs the requests; better "env:NAME"
    allow: str = ""  # "host:port host:port": private addresses that webhooks may be sent to


@dataclass(frozen=True, kw_only=True)
class NetworkSettings:
    """Which sources clients of the server may add: 1 is yes, 0 is no."""

    allow_private: int = 0  # on private addresses
    allow_files: int = 0  # files and folders of the server's machine, and values from its environment
    allow_packages: int = 0  # npm: and pypi:, without the operator's configuration and credentials


@dataclass(frozen=True, kw_only=True)
class EmbedSettings:
    """The embedding model for vector search."""

    provider: str = "auto"  # static, openai (any compatible server), none; auto: static if search.mode needs vectors
    model: str = ""  # name of the server's model
    url: str = ""  # base URL of the server, ending in /v1
    key: str = field(default="", repr=False)  # API key of the server; better "env:NAME"
    batch_size: int = 64  # texts in one request
    dimensions: int = 0  # of a vector; 0: the model's own


@dataclass(frozen=True, kw_only=True)
class SearchSettings:
    """How sections are searched."""

    mode: str = "lexical"  # lexical, meaning (vectors), or fused (both)


@dataclass(frozen=True, kw_only=True)
class RerankSettings:
    """The reranking server; without a URL, hits are not reranked."""

    url: str = ""  # base URL of the server, without /rerank
    model: str = ""
    key: str = field(default="", repr=False)  # better "env:NAME"
    hits: int = 30  # sent to the reranker
    seconds: float = 2.0  # timeout; then the hits stay as they are


@dataclass(frozen=True, kw_only=True)
class ServeSettings:
    """Limits of the server. 0: no limit."""

    hosts: str = ""  # "docs.example.com wiki.example.com": accepted Host names; with any, requests need a key
    proxies: str = "127.0.0.1 ::1"  # addresses and networks of reverse proxies, which name the client's address
    connections: int = 1000
    per_address: int = 100  # connections, and requests at once, of one client
    requests_per_minute: int = 600  # per key, or per address without a key
    at_once: int = 64  # concurrent requests
    streams: int = 200  # open event streams
    seconds: float = 60.0  # until a response begins; longer for large uploads
    upload_mb: int = 100
    uploads_mb: int = 10_000  # of all uploads together
    uploads: str = ""  # folder for uploads; empty: in the user's data folder
    live_jobs: int = 20  # per key
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
    secrets_file: Path  # in the user's data folder; not a setting
    cache_folder: Path  # for data that can be fetched again
    environment: Mapping[str, str] = field(repr=False)  # resolves "env:NAME"
    value_origins: Mapping[str, str] = field(default_factory=dict)  # setting name -> default, file, variable or option
    config_file: str | None = None  # that --config names
    warning: str = ""  # about a file in the working folder that is not trusted

    @property
    def uploads_folder(self) -> Path:
        folder = self.serve.uploads
        return Path(folder).expanduser().resolve() if folder else self.secrets_file.with_name("uploads")

    def permissions_of(self, authority: Authority) -> Permissions:
        """Return what sources may use that the owner of this machine, or a caller, has named."""
        if authority is Authority.OWNER:
            return OWNER_PERMISSIONS
        network = self.network
        return Permissions(
            local_files=bool(network.allow_files),
            private_hosts=bool(network.allow_private),
            packages=bool(network.allow_packages),
        )

    def effective(self) -> dict[str, Any]:
        """Return every setting by its full name."""
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


def load(
    *, environment: Mapping[str, str], folder: Path, database: str | None = None, config_file: str | None = None
) -> Settings:
    """Return the effective settings. Raises InvalidInput with the name of the first invalid one."""
    defaults = _defaults()
    values, value_origins = dict(defaults), dict.fromkeys(defaults, "default")
    from_files, warning = _from_files(folder, config_file)
    for where, name, value in [*from_files, *_from_environment(environment), *_from_arguments(database)]:
        if name not in defaults:
            raise InvalidInput(f"{where}: there is no setting '{name}'. 'kept config' lists them.")
        values[name], value_origins[name] = _convert_and_check(name, value, defaults[name], where), where
    sections = {
        section: kind(**{one.name: values[f"{section}.{one.name}"] for one in fields(kind)})
        for section, kind in _SECTIONS.items()
    }
    if values["embed.provider"] == "openai" and not (values["embed.url"] and values["embed.model"]):
        where = value_origins["embed.provider"]
        raise InvalidInput(f"{where}: embed.provider is openai, so embed.url and embed.model have to say which.")
    _check_work(sections["work"], value_origins)
    return Settings(
        database=values["database"],
        secrets_file=_data_folder() / "secrets.json",
        cache_folder=_cache_folder(),
        environment=environment,
        value_origins=value_origins,
        config_file=config_file,
        warning=warning,
        **sections,
    )


def _check_work(work: WorkSettings, value_origins: Mapping[str, str]) -> None:
    """Raise InvalidInput unless two heartbeats fit into the silence after which a worker counts as dead."""
    if work.heartbeat_seconds <= 0:
        raise InvalidInput(f"{value_origins['work.heartbeat_seconds']}: work.heartbeat_seconds should be more than 0.")
    if work.silent_seconds < 2 * work.heartbeat_seconds:
        changed = [value_origins[f"work.{name}"] for name in ("silent_seconds", "heartbeat_seconds")]
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


# They change how hits are found and shown. Everything else names a program, a file, a host or a secret, or changes
# what is stored, sent or deleted.
HARMLESS_SETTINGS = frozenset({"search.mode", "rerank.hits", "rerank.seconds"})

GivenValue: TypeAlias = tuple[str, str, Any]  # where it was given, the setting, the value


def _from_files(folder: Path, config_file: str | None) -> tuple[list[GivenValue], str]:
    """Return the values in the user's file and in that of the working folder, and a warning about the latter."""
    from platformdirs import user_config_path

    if config_file:
        file = Path(config_file)
        if not file.is_file():
            raise InvalidInput(f"There is no file {config_file}, which --config names.")
        return _read_file(file, file.read_bytes()), ""
    user_file, local_file = user_config_path("kept", appauthor=False) / "kept.toml", folder / "kept.toml"
    values = _read_file(user_file, user_file.read_bytes()) if user_file.is_file() else []
    if not local_file.is_file() or local_file.resolve() == user_file.resolve():
        return values, ""
    content = local_file.read_bytes()  # once: it must not change between the check and the use
    if is_trusted(local_file, content):
        return values + _read_file(local_file, content), ""
    try:
        local_values = _read_file(local_file, content)
    except InvalidInput as error:
        return values, str(error)
    refused = sorted(name for _, name, _ in local_values if name not in HARMLESS_SETTINGS)
    warning = (
        f"{local_file} is not trusted, so it does not set {', '.join(refused)}. If it is yours: kept config --trust"
    )
    return values + [one for one in local_values if one[1] in HARMLESS_SETTINGS], warning if refused else ""


def _read_file(file: Path, content: bytes) -> list[GivenValue]:
    import tomllib  # late: most runs have no file

    try:
        sections = tomllib.loads(content.decode("utf-8"))
    except ValueError as error:
        raise InvalidInput(f"{file} cannot be read as settings: {error}") from None
    values: list[GivenValue] = []
    for name, value in sections.items():
        if isinstance(value, dict):
            values += ((str(file), f"{name}.{inner}", one) for inner, one in value.items())
        else:
            values.append((str(file), name, value))
    return values


def is_trusted(file: Path, content: bytes) -> bool:
    """Return whether the user trusts this file with exactly this content."""
    return _read_trusted().get(str(file.resolve())) == _hash(content)


def set_trust(folder: Path, *, trusted: bool) -> Path:
    """Trust the ``kept.toml`` of a folder as it is now, or no longer. Returns its path. Raises InvalidInput."""
    file = (folder / "kept.toml").resolve()
    if trusted and not file.is_file():
        raise InvalidInput(f"There is no {file} to trust.")
    known = {path: digest for path, digest in _read_trusted().items() if path != str(file)}
    if trusted:
        known[str(file)] = _hash(file.read_bytes())
    store = _trust_file()
    store.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    draft = store.with_suffix(".new")
    draft.write_text(json.dumps(known, indent=1), "utf-8")
    draft.replace(store)
    return file


def _read_trusted() -> dict[str, str]:
    try:
        found = json.loads(_trust_file().read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _trust_file() -> Path:
    return _data_folder() / "trusted.json"


def _hash(content: bytes) -> str:
    import hashlib  # late: most runs have no file to check

    return hashlib.sha256(content).hexdigest()


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
    """Return the value in the type of its default. Raises InvalidInput for another type, negative or infinite."""
    kind = type(default)
    allowed = (str,) if kind is str else (str, int, float)  # environment variables are strings
    try:
        converted = kind(value) if isinstance(value, allowed) and not isinstance(value, bool) else None
    except (ValueError, OverflowError):
        converted = None
    if isinstance(value, float) and converted != value:  # a fraction for a whole number
        converted = None
    if name in _SECRET_NAMES and converted is None:
        raise InvalidInput(f"{where}: {name} should be a text.")
    if converted is None or (kind is not str and not (math.isfinite(converted) and converted >= 0)):
        wanted = {int: "a whole number", float: "a number"}.get(kind, "a text")
        raise InvalidInput(f"{where}: {name} should be {wanted} and not negative; it is {value!r}.")
    if converted not in (choices := _CHOICES.get(name, (converted,))):
        raise InvalidInput(f"{where}: {name} should be one of {', '.join(choices)}; it is {value!r}.")
    return converted
