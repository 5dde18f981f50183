"""Requests for a source: a root as it was typed and the settings that were given, resolved to what is to be crawled.

A principal decides what may be requested. The user at the command line names their own files, hosts and variables; a
caller of the server may name only what its operator allows. The database is not read here.
"""

import os
from dataclasses import dataclass

from kept.errors import InvalidInput, NotFound
from kept.model.authority import Permissions, why_root_refused, why_value_refused
from kept.model.repository import remote_host_and_port, repository_from_root
from kept.model.root import add_scheme, derive_version, parse_root, split_login
from kept.model.source import Access, Authority, Scope, SourceKind, SourceSettings, host_and_port
from kept.model.url import canonicalize_url, file_path
from kept.service.access import OWNER, Principal
from kept.service.source_options import SourceOptions

DEFAULT_SOURCE_SETTINGS = SourceSettings()


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """A source as a caller asks for it. Every interface makes one of these and calls ``sources.add_source``."""

    root: str  # as it was typed
    options: SourceOptions
    name: str | None = None  # None: one is derived from the root
    version: str | None = None  # None: one is derived from the root, where it is a tag or a package
    priority: int = 0
    as_: str | None = None  # "web" or "git", for a URL that could be either


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedSource:
    """The kind, root and settings that a request comes to."""

    kind: SourceKind
    root: str  # canonical
    root_settings: SourceSettings  # those that follow from the root
    options: SourceOptions
    authority: Authority = Authority.OWNER  # of the request

    @property
    def settings(self) -> SourceSettings:
        return self.options.apply_to(self.root_settings).record_given(self.given_names, self.authority)

    @property
    def given_names(self) -> list[str]:
        """The settings that were given, with the login in the root."""
        return [*(["header"] if self.root_settings.access.headers else []), *self.options.names]

    @property
    def version(self) -> str:
        """The version that the root names: a tag, or the version of a package."""
        return derive_version(self.root, self.kind)


def resolve_request(request: SourceRequest, principal: Principal = OWNER) -> ResolvedSource:
    """Return what a request comes to. Raises InvalidInput where it is not valid, or not permitted."""
    if request.as_ not in (None, "web", "git"):
        raise InvalidInput(f"--as should be web or git; it is '{request.as_}'.")
    permissions = principal.permissions
    typed = request.root
    if not (permissions.local_files and os.path.lexists(typed)):  # a caller is not told which files there are
        typed = add_scheme(typed)
    kind, url = parse_root(typed, request.as_)
    if refusal := why_root_refused(permissions, kind, url):
        if kind is SourceKind.FOLDER and not typed.startswith(("/", ".", "~", "file:")):
            raise InvalidInput(f"'{typed}' is not a URL. Expected something like https://docs.example.com/.")
        raise InvalidInput(refusal)
    options = request.options
    if options.watch and kind is not SourceKind.FOLDER:
        raise InvalidInput("--watch is for folders of this machine. What is elsewhere takes a --schedule.")
    root_settings = _settings_from_root(typed, kind, url, permissions)
    resolved = ResolvedSource(
        kind=kind, root=url, root_settings=root_settings, options=options, authority=principal.authority
    )
    check_settings(resolved.settings, options, permissions)
    return resolved


def _settings_from_root(root: str, kind: SourceKind, url: str, permissions: Permissions) -> SourceSettings:
    """Return the settings that follow from the root: the pages of a list, its login, the hosts that may be private.

    Naming a root allows exactly its host and port, whether its address is public or not.
    """
    if kind not in (SourceKind.WEB, SourceKind.GIT):
        return SourceSettings()
    pages = _read_url_list(file_path(url)) if kind is SourceKind.WEB and url.startswith("file:") else ()
    hosts = (
        [remote_host_and_port(repository_from_root(url).remote)]
        if kind is SourceKind.GIT
        else map(host_and_port, pages or (url,))
    )
    allowed = tuple(dict.fromkeys(filter(None, hosts))) if permissions.private_hosts else ()
    _, login = split_login(root)
    return SourceSettings(scope=Scope(pages=pages), access=Access(allowed=allowed, headers=(login,) if login else ()))


def check_settings(settings: SourceSettings, options: SourceOptions, permissions: Permissions) -> None:
    """Raise InvalidInput for settings that contradict each other, or that this principal may not set."""
    if settings.access.headers and len({host_and_port(page) for page in settings.scope.pages}) > 1:
        raise InvalidInput(
            "A header or cookie is for one site only, and these pages are of several: make a list of each."
        )
    for name, values in options.named_values.items():
        if refusal := why_value_refused(permissions, name, values):
            raise InvalidInput(refusal)


def _read_url_list(file: str) -> tuple[str, ...]:
    """Return the URLs in a file, one a line. Empty lines and those that begin with # are skipped."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            texts = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.") from None
    urls: dict[str, None] = {}
    for number, text in texts:
        if not text or text.startswith("#"):
            continue
        bare, login = split_login(text)
        url = canonicalize_url(bare)
        if url is None or not url.startswith("http") or login:
            problem = "has a password in it" if login else "is not the URL of a web page"
            raise InvalidInput(f"Line {number} of {file} {problem}. It takes one URL a line.")
        urls[url] = None
    if not urls:
        raise InvalidInput(f"{file} has no URL in it. It takes one URL a line.")
    return tuple(urls)
