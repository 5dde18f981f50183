"""What somebody asks for, understood: a root as it was typed, and the settings that were given, become a Wish.

Who asks decides what may be asked. A person at the command line names their own files, hosts and variables; a caller
of the server may name only what its operator allows. No store is looked at here.
"""

from kept.errors import NoSuchThing, WrongCall
from kept.model.nouns import dataclass
from kept.model.repository import address_of, repository_of
from kept.model.root import derive_version, parse_root, split_login
from kept.model.source import Access, Scope, SourceKind, SourceSettings, host_and_port
from kept.model.url import canonical, file_path
from kept.service.given import Given


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """What somebody may name as a source."""

    files: bool = False  # folders and files of this machine, and its environment
    private: bool = False  # hosts that are not public


NOTHING_SET = SourceSettings()

PERSON = Caller(files=True, private=True)
"""Somebody at the command line of this machine."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A source as somebody asks for it."""

    kind: SourceKind
    root: str
    begin: SourceSettings  # what the root itself says
    given: Given

    @property
    def settings(self) -> SourceSettings:
        return self.given.over(self.begin)

    @property
    def version(self) -> str:
        """What the root itself says: a tag, the version of a package."""
        return derive_version(self.root, self.kind)


def understand(root: str, given: Given, caller: Caller = PERSON, *, as_: str | None = None) -> Wish:
    """WrongCall for a root or settings that make no sense, or that this caller may not name.

    ``as_``: "web" or "git", for a URL that could be either.
    """
    if as_ not in (None, "web", "git"):
        raise WrongCall(f"--as should be web or git; it is '{as_}'.")
    kind, url = parse_root(root, as_)
    if not caller.files and (kind is SourceKind.FOLDER or url.startswith(("file:", "ssh:"))):
        raise WrongCall("Files and keys of the server can only be used from its command line: kept add ROOT.")
    wish = Wish(kind=kind, root=url, begin=_first_settings(root, kind, url, caller), given=given)
    if given.watch and kind is not SourceKind.FOLDER:
        raise WrongCall("--watch is for folders of this machine. What is elsewhere takes a --schedule.")
    check_settings(wish.settings, given, caller)
    return wish


def _first_settings(root: str, kind: SourceKind, url: str, caller: Caller) -> SourceSettings:
    """What the root itself says: who may be asked, as whom, for which pages.

    A person who names a root has allowed exactly that host and port, public or not.
    """
    if kind not in (SourceKind.WEB, SourceKind.GIT):
        return SourceSettings()
    pages = _pages(file_path(url)) if kind is SourceKind.WEB and url.startswith("file:") else ()
    asked = [address_of(repository_of(url).remote)] if kind is SourceKind.GIT else map(host_and_port, pages or (url,))
    allowed = tuple(dict.fromkeys(filter(None, asked))) if caller.private else ()
    _, login = split_login(root)
    return SourceSettings(scope=Scope(pages=pages), access=Access(allowed=allowed, headers=(login,) if login else ()))


def check_settings(settings: SourceSettings, given: Given, caller: Caller) -> None:
    """WrongCall for settings that make no sense together, or of which this caller may not give some."""
    if settings.access.headers and len({host_and_port(page) for page in settings.scope.pages}) > 1:
        raise WrongCall("A header or cookie is for one site only, and these pages are of several: make a list of each.")
    if not caller.files and (what := given.of_this_machine):
        raise WrongCall(f"{what} names something of the server's own machine: that can only be set from there.")


def _pages(file: str) -> tuple[str, ...]:
    """The URLs in a file, one a line. Empty lines, and those that begin with #, do not count."""
    try:
        with open(file, encoding="utf-8", errors="replace") as lines:
            texts = [(number, line.strip()) for number, line in enumerate(lines, 1)]
    except FileNotFoundError:
        raise NoSuchThing(f"There is no file {file}.") from None
    found: dict[str, None] = {}
    for number, text in texts:
        if not text or text.startswith("#"):
            continue
        bare, login = split_login(text)
        url = canonical(bare)
        if url is None or not url.startswith("http") or login:
            what = "has a password in it" if login else "is not the URL of a web page"
            raise WrongCall(f"Line {number} of {file} {what}. It takes one URL a line.")
        found[url] = None
    if not found:
        raise WrongCall(f"{file} has no URL in it. It takes one URL a line.")
    return tuple(found)
