"""Decides what a source may reach by who named it: the one table for every interface, and for every crawl.

    Permissions          what may be used besides public hosts: by the owner everything, by callers what is allowed
    why_root_refused     a root, by its transport
    why_value_refused    the value of a setting
    why_change_refused   a change of a source that is there already
    restrict_settings    the settings of a source, when it is crawled

A request is checked by these when it is made. A crawl asks them again, because the operator may allow less by then.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from kept.errors import SourceUnavailable
from kept.model.source import Authority, Source, SourceKind, SourceSettings, parse_secret_reference
from kept.model.url import file_path

_GATED_TRANSPORTS = ("http", "https", "git")  # every address is checked before it is dialled, and no key is used
_HARMLESS_SETTINGS = frozenset({"tag", "schedule"})  # they change nothing that a source reaches or sends
_SECRET_SETTINGS = frozenset({"header", "cookie", "proxy", "webhook", "webhook_secret", "hook_secret"})
_WEBHOOK_SETTINGS = frozenset({"webhook", "webhook_secret", "hook_secret"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """The things that may be used besides public hosts."""

    local_files: bool = False  # folders, files and environment variables of this machine
    private_hosts: bool = False  # hosts whose addresses are not public
    packages: bool = False  # npm: and pypi:
    user_tools: bool = False  # the user's ssh, and the configuration and credentials of their git, npm and pip


class WebhookReach(StrEnum):
    """Which addresses a webhook may be sent to besides public ones."""

    OPERATOR = "operator"  # that of the operator's own URL, and the allowed ones
    ALLOWED = "allowed"  # those that the operator allows, for a URL that the owner gave
    PUBLIC = "public"  # none


OWNER_PERMISSIONS = Permissions(local_files=True, private_hosts=True, packages=True, user_tools=True)


def remote_transport(remote: str) -> str:
    """Return how git reaches a remote: http, https, git, ssh, file, or the name of another helper."""
    scheme, separator, _ = remote.partition("://")
    return scheme.lower() if separator and "::" not in scheme else "ssh"


def why_root_refused(permissions: Permissions, kind: SourceKind, root: str, *, uploads_folder: str = "") -> str | None:
    """Return why this root may not be kept; None where it may. What was uploaded is in ``uploads_folder``."""
    if kind is SourceKind.PACKAGE:
        return None if permissions.packages else _PACKAGES_REFUSED
    if kind is SourceKind.GIT:
        from kept.model.repository import repository_from_root  # late: a search needs none of it

        transport = remote_transport(repository_from_root(root).remote)
        if transport in _GATED_TRANSPORTS or (transport == "file" and permissions.local_files):
            return None
        return None if permissions.user_tools else _FILES_REFUSED
    is_uploaded = bool(uploads_folder) and root.startswith("file:") and _is_below(file_path(root), uploads_folder)
    if permissions.local_files or is_uploaded or not root.startswith("file:"):
        return None
    return _FILES_REFUSED


_FILES_REFUSED = "Files and keys of the server can only be used from its command line: kept add ROOT."
_PACKAGES_REFUSED = (
    "Packages are fetched by programs of the server, so callers may keep them only if its operator allows it "
    "(network.allow_packages), or at its command line: kept add ROOT."
)


def _is_below(path: str, folder: str) -> bool:
    return ".." not in path.split("/") and path.startswith(folder.rstrip("/") + "/")


def why_value_refused(permissions: Permissions, setting: str, values: Iterable[str]) -> str | None:
    """Return why a setting may not have these values: they name a file, a variable or a secret of this machine."""
    if permissions.local_files:
        return None
    is_local = setting in ("proxy", "ca_file") or (
        setting in _SECRET_SETTINGS and any(map(parse_secret_reference, values))
    )
    if not is_local or not any(values):
        return None
    name = "header" if setting == "cookie" else setting
    return f"{name} names something of the server's own machine: that can only be set from there."


def why_change_refused(permissions: Permissions, source: Source, settings: Iterable[str]) -> str | None:
    """Return why these settings of a source may not be changed; None where they may.

    A caller may change what a caller could have asked for. Where the owner gave a source more than that (a private
    host, a file, a key, a credential), a caller could widen what the owner has allowed.
    """
    changed = set(settings) - _HARMLESS_SETTINGS
    if permissions == OWNER_PERMISSIONS or not changed:
        return None
    if _reaches_more(source, permissions) or (changed & _WEBHOOK_SETTINGS and _has_webhook_of_owner(source)):
        return (
            f"{min(changed)} of {source.label} can only be changed at the command line of the server "
            f"(kept set {source.label}): its owner has given it access to more than a caller may use."
        )
    return None


def _reaches_more(source: Source, permissions: Permissions) -> bool:
    """Return whether the owner gave a source more than these permissions allow."""
    access = source.settings.access
    from_owner = [name for name in ("header", "cookie", "proxy", "ca_file") if _is_of_owner(source, name)]
    return (
        (source.authority is Authority.OWNER and why_root_refused(permissions, source.kind, source.root) is not None)
        or bool(access.allowed and not permissions.private_hosts)
        or bool(access.headers and {"header", "cookie"} & set(from_owner))
        or bool(access.proxy and "proxy" in from_owner)
        or bool(access.ca_file and "ca_file" in from_owner)
    )


def _has_webhook_of_owner(source: Source) -> bool:
    settings = source.settings
    given = {
        "webhook": settings.webhook,
        "webhook_secret": settings.webhook_secret,
        "hook_secret": settings.hook_secret,
    }
    return any(value and _is_of_owner(source, name) for name, value in given.items())


def _is_of_owner(source: Source, setting: str) -> bool:
    return source.authority_of(setting) is Authority.OWNER


def restrict_settings(
    permissions_of: Callable[[Authority], Permissions], authority: Authority, settings: SourceSettings
) -> SourceSettings:
    """Return the settings that a crawl may use. Raises SourceUnavailable for a value that is not permitted any more.

    ``authority`` named the source; each of its settings may have been given by the other.
    """
    given_by = dict(settings.given_by)
    access = settings.access
    values = {
        "header": [header.value for header in access.headers if parse_secret_reference(header.value)],
        "proxy": [access.proxy],
        "ca_file": [access.ca_file],
    }
    for name, texts in values.items():
        plain = [text for text in texts if not (name == "header" and _is_sealed(text))]
        if reason := why_value_refused(permissions_of(given_by.get(name, authority)), name, plain):
            raise SourceUnavailable(reason)
    if access.allowed and not permissions_of(authority).private_hosts:
        return replace(settings, access=replace(access, allowed=()))
    return settings


def _is_sealed(value: str) -> bool:
    return (parse_secret_reference(value) or ("", "", ""))[1] == "secret"
