"""What somebody asks for, understood: a root as it was typed, and the settings that were given, become a Wish.

Who asks decides what may be asked. A person at the command line names their own files, hosts and variables; a caller
of the server may name only what its operator allows. No store is looked at here.
"""

from dataclasses import dataclass

from kept.errors import InvalidInput, NotFound
from kept.model.repository import remote_host_and_port, repository_from_root
from kept.model.root import derive_version, parse_root, split_login
from kept.model.source import Access, Scope, SourceKind, SourceSettings, host_and_port
from kept.model.url import canonicalize_url, file_path
from kept.service.source_options import SourceOptions


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """What somebody may name as a source."""

    local_files: bool = False  # folders and files of this machine, and its environment
    private_hosts: bool = False  # hosts that are not public


DEFAULT_SOURCE_SETTINGS = SourceSettings()

LOCAL_PERMISSIONS = Permissions(local_files=True, private_hosts=True)
"""Somebody at the command line of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceRequest:
    """A source as somebody asks for it."""

    kind: SourceKind
    root: str
    root_settings: SourceSettings  # what the root itself says
    options: SourceOptions

    @property
    def settings(self) -> SourceSettings:
        return self.options.apply_to(self.root_settings)

    @property
    def version(self) -> str:
        """What the root itself says: a tag, the version of a package."""
        return derive_version(self.root, self.kind)


def parse_source_request(
    root: str, options: SourceOptions, permissions: Permissions = LOCAL_PERMISSIONS, *, as_: str | None = None
) -> SourceRequest:
    """WrongCall for a root or settings that make no sense, or that this caller may not name.

    ``as_``: "web" or "git", for a URL that could be either.
    """
    if as_ not in (None, "web", "git"):
        raise InvalidInput(f"--as should be web or git; it is '{as_}'.")
    kind, url = parse_root(root, as_)
    if not permissions.local_files and (kind is SourceKind.FOLDER or url.startswith(("file:", "ssh:"))):
        raise InvalidInput("Files and keys of the server can only be used from its command line: kept add ROOT.")
    wish = SourceRequest(
        kind=kind, root=url, root_settings=_settings_from_root(root, kind, url, permissions), options=options
    )
    if options.watch and kind is not SourceKind.FOLDER:
        raise InvalidInput("--watch is for folders of this machine. What is elsewhere takes a --schedule.")
    check_settings(wish.settings, options, permissions)
    return wish


def _settings_from_root(root: str, kind: SourceKind, url: str, permissions: Permissions) -> SourceSettings:
    """What the root itself says: who may be asked, as whom, for which pages.

    A person who names a root has allowed exactly that host and port, public or not.
    """
    if kind not in (SourceKind.WEB, SourceKind.GIT):
        return SourceSettings()
    pages = _read_url_list(file_path(url)) if kind is SourceKind.WEB and url.startswith("file:") else ()
    asked = (
        [remote_host_and_port(repository_from_root(url).remote)]
        if kind is SourceKind.GIT
        else map(host_and_port, pages or (url,))
    )
    allowed = tuple(dict.fromkeys(filter(None, asked))) if permissions.private_hosts else ()
    _, login = split_login(root)
    return SourceSettings(scope=Scope(pages=pages), access=Access(allowed=allowed, headers=(login,) if login else ()))


def check_settings(settings: SourceSettings, options: SourceOptions, permissions: Permissions) -> None:
    """WrongCall for settings that make no sense together, or of which this caller may not give some."""
    if settings.access.headers and len({host_and_port(page) for page in settings.scope.pages}) > 1:
        raise InvalidInput(
            "A header or cookie is for one site only, and these pages are of several: make a list of each."
        )
    if not permissions.local_files and (what := options.machine_local_option):
        raise InvalidInput(f"{what} names something of the server's own machine: that can only be set from there.")


def _read_url_list(file: str) -> tuple[str, ...]:
    """The URLs in a file, one a line. Empty lines, and those that begin with #, do not count."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            texts = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    except FileNotFoundError:
        raise NotFound(f"There is no file {file}.") from None
    found: dict[str, None] = {}
    for number, text in texts:
        if not text or text.startswith("#"):
            continue
        bare, login = split_login(text)
        url = canonicalize_url(bare)
        if url is None or not url.startswith("http") or login:
            what = "has a password in it" if login else "is not the URL of a web page"
            raise InvalidInput(f"Line {number} of {file} {what}. It takes one URL a line.")
        found[url] = None
    if not found:
        raise InvalidInput(f"{file} has no URL in it. It takes one URL a line.")
    return tuple(found)
