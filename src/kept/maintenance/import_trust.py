"""Which parts of an imported source need the word of the machine's owner.

A manifest is text that anybody may have written. What only reads public pages is imported as it is; what reaches into
this machine or its network, sends something out, or acts later without being asked, is left out until the owner
confirms it.
"""

from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import replace

from kept.model.export import ManifestSource
from kept.model.repository import repository_from_root
from kept.model.source import Access, SourceKind, SourceSettings, parse_secret_reference

Confirm = Callable[[Mapping[str, list[str]]], bool]  # by label, what would be left out -> whether to take it
_DEFAULT_ACCESS = Access()


def refuse_all(_found: Mapping[str, list[str]]) -> bool:
    """Confirm nothing."""
    return False


def find_authority(source: ManifestSource) -> list[str]:
    """Name everything in a source that needs confirmation."""
    settings = source.settings
    found = list(_reach_of_root(source))
    for header in settings.access.headers:
        if parse_secret_reference(header.value):
            found.append(f"header {header.name} ({header.value})")
    found += [f"private host {host}" for host in settings.access.allowed]
    found += ["proxy"] if settings.access.proxy else []
    found += [f"CA file {settings.access.ca_file}"] if settings.access.ca_file else []
    found += ["ignoring robots.txt"] if settings.access.ignore_robots else []
    found += [f"schedule {settings.schedule}"] if settings.schedule else []
    found += [f"webhook {settings.webhook}"] if settings.webhook else []
    found += ["watching its files"] if settings.watch else []
    found += [f"webhook secret {settings.webhook_secret}"] if settings.webhook_secret else []
    found += [f"hook secret {settings.hook_secret}"] if settings.hook_secret else []
    return found


def without_authority(settings: SourceSettings) -> SourceSettings:
    """Return the settings without those that need confirmation, and without its word on who gave them."""
    access = replace(
        settings.access,
        headers=tuple(header for header in settings.access.headers if not parse_secret_reference(header.value)),
        proxy=_DEFAULT_ACCESS.proxy,
        ca_file=_DEFAULT_ACCESS.ca_file,
        ignore_robots=_DEFAULT_ACCESS.ignore_robots,
        allowed=_DEFAULT_ACCESS.allowed,
    )
    return replace(
        settings,
        access=access,
        schedule="",
        webhook="",
        webhook_secret="",
        watch=False,
        hook_secret="",
        given_by=(),
    )


def without_secrets(settings: SourceSettings, names: Collection[str]) -> SourceSettings:
    """Return the settings without references to these entries of the secrets file."""
    access = settings.access
    headers = tuple(header for header in access.headers if _secret_name(header.value) not in names)
    proxy = "" if _secret_name(access.proxy) in names else access.proxy
    hook_secret = "" if _secret_name(settings.hook_secret) in names else settings.hook_secret
    webhook_secret = "" if _secret_name(settings.webhook_secret) in names else settings.webhook_secret
    return replace(
        settings,
        access=replace(access, headers=headers, proxy=proxy),
        webhook_secret=webhook_secret,
        hook_secret=hook_secret,
    )


def secret_names(settings: SourceSettings) -> set[str]:
    """Return the entries of the secrets file that settings refer to."""
    values = [
        *(header.value for header in settings.access.headers),
        *(settings.access.proxy, settings.webhook_secret, settings.hook_secret),
    ]
    return {name for value in values if (name := _secret_name(value))}


def _secret_name(value: str) -> str | None:
    reference = parse_secret_reference(value)
    return reference[2] if reference and reference[1] == "secret" else None


def _reach_of_root(source: ManifestSource) -> Iterator[str]:
    if source.root.startswith("file:"):
        yield f"reading {source.root}"
    elif source.kind is SourceKind.GIT and not repository_from_root(source.root).remote.startswith("http"):
        yield f"reading {source.root} with the keys of this machine"
    elif source.kind is SourceKind.PACKAGE:
        yield f"downloading {source.root}"
