"""A git repository: what git is told, what of it is kept, and the URLs that people open.

    parse_repository    what was typed, or a root    -> the repository, or None where it names none
    Repository.root     the one spelling that a source is known by; parsed again it is the same repository

Every host has its own way to show a file, so a root in the form of its host says which. Elsewhere a branch or tag is
written behind the remote: 'https://git.test/manual.git#v1.2'.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import quote, unquote

from kept.errors import InvalidInput
from kept.model.url import canonicalize_url


class Forge(StrEnum):
    """How a host shows repositories."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"
    BITBUCKET = "bitbucket"
    PLAIN = "plain"  # it does not, or nobody knows how


class RefKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A state of a repository, by its name."""

    kind: RefKind
    name: str


_FORGES_BY_HOST = {
    "github.com": Forge.GITHUB,
    "gitlab.com": Forge.GITLAB,
    "codeberg.org": Forge.GITEA,
    "gitea.com": Forge.GITEA,
    "bitbucket.org": Forge.BITBUCKET,
}
_SHORTHAND_HOSTS = {
    "github": "github.com",
    "gitlab": "gitlab.com",
    "codeberg": "codeberg.org",
    "bitbucket": "bitbucket.org",
}
_FILE_URL_PATHS = {
    Forge.GITHUB: "blob/{name}",
    Forge.GITLAB: "-/blob/{name}",
    Forge.GITEA: "src/{kind}/{name}",
    Forge.BITBUCKET: "src/{name}",
    Forge.PLAIN: "{name}",
}
_TREE_URL_PATHS = {
    Forge.GITHUB: "tree/",
    Forge.GITLAB: "-/tree/",
    Forge.GITEA: "src/branch/",
    Forge.BITBUCKET: "src/",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Repository:
    remote: str  # what git is told; without a password
    web_url: str  # what its documents' URLs begin with
    forge: Forge = Forge.PLAIN
    ref_and_path: str = (
        ""  # a branch, tag or commit, and perhaps a path in it: 'v1.2/docs'. Empty: all of the default branch
    )

    @property
    def root(self) -> str:
        at = quote(self.ref_and_path, safe=_URL_SAFE)
        if self.forge is Forge.PLAIN or not self.remote.startswith("http"):
            return f"{self.remote}#{at}" if at else self.remote
        return f"{self.web_url}/{_TREE_URL_PATHS[self.forge]}{at}" if at else self.web_url

    @property
    def name(self) -> str:
        return unquote(re.split(r"[/:]", self.remote.removesuffix(".git"))[-1])

    @property
    def version(self) -> str:
        """What looks like a version in front of ``at``: 'v1.2', '5.0-rc1'. Other branches have no label."""
        first = self.ref_and_path.partition("/")[0]
        return first if re.fullmatch(r"v?\d[\w.+-]{0,39}", first) and not _COMMIT.fullmatch(first) else ""

    @property
    def wiki(self) -> "Repository | None":
        """The repository of its wiki, which may not be there."""
        if self.forge is not Forge.GITHUB or self.ref_and_path:
            return None
        remote = f"{self.remote.removesuffix('.git')}.wiki.git"
        return Repository(remote=remote, web_url=f"{self.web_url}/wiki")

    def file_base_url(self, ref: Ref) -> str:
        """What the URLs of all files of this state begin with."""
        name = quote(ref.name, safe=_URL_SAFE)
        return f"{self.web_url}/{_FILE_URL_PATHS[self.forge].format(kind=ref.kind, name=name)}/"


_URL_SAFE = "/@!$&'()*+,;=:~"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SCP_REMOTE = re.compile(r"(\w[\w.-]*)@([\w][\w.-]*):(?!/{2})([^#]+?)")
_REMOTE_AND_REF = re.compile(r"(.+?\.git)/?(?:[@#](.*))?|([^#]+)(?:#(.*))?")
_INVALID_IN_REF = re.compile(r"[\x00-\x20~^:?*\[\\\x7f]|\.\.|@\{|(?:\A|/)[-/.]|//")
# What the first part of a path on such a host is when it is no owner of repositories.
_RESERVED_OWNERS = frozenset({
    "about", "account", "apps", "blog", "collections", "contact", "customer-stories", "dashboard", "enterprise",
    "events", "explore", "features", "groups", "help", "issues", "login", "marketplace", "new", "notifications", "org",
    "organizations", "orgs", "pricing", "product", "projects", "pulls", "readme", "resources", "search", "security",
    "settings", "site", "solutions", "sponsors", "stars", "topics", "trending", "user", "users",
})  # fmt: skip


def parse_repository(text: str, *, assume_git: bool = False) -> Repository | None:
    """The repository behind a root as it was typed, without a login; None: it names none.

    ``asked``: somebody said that it is one, so whatever git could be told is one.
    """
    text = text.removeprefix("git+")
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in _SHORTHAND_HOSTS and not rest.startswith("//"):
        return _parse_shorthand(_SHORTHAND_HOSTS[scheme.lower()], rest, text)
    if found := re.fullmatch(rf"({_SCP_REMOTE.pattern})(?:(?<=\.git)@|#|\Z)(.*)", text):
        user_host_path, host, path = found[1], found[3], found[4]
        return _ssh_or_git_repository(user_host_path, host, path, found[5])
    if found := re.fullmatch(r"(ssh|git)://(?:([\w.+-]+)@)?([\w.-]+|\[[0-9a-f:]+\])(:\d+)?/([^#]+?)(?:#(.*))?", text):
        path, _, at = found[5].partition(".git@")
        user = f"{found[2]}@" if found[2] else ""
        remote = f"{found[1]}://{user}{found[3]}{found[4] or ''}/{path}{'.git' if at else ''}"
        return _ssh_or_git_repository(remote, found[3], path, at or found[6] or "")
    if scheme.lower() in ("http", "https"):
        return _parse_web_url(text, assume_git=assume_git)
    return None


def repository_from_root(root: str) -> Repository:
    """The repository that the root of a source stands for."""
    return parse_repository(root, assume_git=True) or local_repository(*split_ref(root))


def local_repository(url: str, at: str = "") -> Repository:
    """One in a folder of this machine."""
    return Repository(remote=url, web_url=url, ref_and_path=_check_ref(at))


def split_ref(text: str) -> tuple[str, str]:
    """A remote, and the branch or tag behind it: '/srv/manual.git@v1.2'."""
    found = _REMOTE_AND_REF.fullmatch(text)
    return (found[1] or found[3], found[2] or found[4] or "") if found else (text, "")


def remote_host_and_port(remote: str) -> str:
    """What ``Access.allowed`` calls the host that is asked: 'git.test:443'; empty for one on this machine."""
    if found := _SCP_REMOTE.fullmatch(remote):
        return f"{found[2].lower()}:22"
    scheme, _, rest = remote.partition("://")
    authority = rest.partition("/")[0].rpartition("@")[2].lower()
    has_port = re.search(r":\d+\Z", authority) and not authority.endswith("]")
    return authority if has_port or scheme == "file" else f"{authority}:{_DEFAULT_PORTS[scheme]}"


_DEFAULT_PORTS = {"http": 80, "https": 443, "ssh": 22, "git": 9418}


def _parse_shorthand(host: str, rest: str, text: str) -> Repository:
    path, _, at = rest.strip("/").partition("@")
    parts = path.removesuffix(".git").split("/")
    if len(parts) < 2 or not all(re.fullmatch(r"[\w.-]+", part) for part in parts):
        raise InvalidInput(f"{text} is no repository. It should look like github:owner/repository, or …@branch.")
    return _forge_repository("https", host, "/".join(parts), _FORGES_BY_HOST[host], at)


def _parse_web_url(text: str, *, assume_git: bool) -> Repository | None:
    page, at = split_ref(text)
    url = canonicalize_url(page)
    if url is None:
        return None
    scheme, _, rest = url.partition("?")[0].partition("://")
    host, _, path = rest.partition("/")
    path = path.strip("/")
    for forge, pattern in _BROWSE_PATHS.items():
        if found := pattern.fullmatch(path):
            own = _forge_from_host(host)
            known = own is forge or (own is Forge.PLAIN and forge in (Forge.GITLAB, Forge.GITEA))
            if known and found[1].partition("/")[0] not in _RESERVED_OWNERS:
                return _forge_repository(scheme, host, found[1], forge, unquote(found[2]))
    forge, parts = _forge_from_host(host), path.removesuffix(".git").split("/")
    named = len(parts) == 2 or (forge is Forge.GITLAB and len(parts) > 1 and "-" not in parts)
    if forge is not Forge.PLAIN and named and (parts[0] not in _RESERVED_OWNERS or path.endswith(".git")):
        # Without '.git' it was copied from a browser, and what stands behind '#' is a heading.
        return _forge_repository(scheme, host, "/".join(parts), forge, at if path.endswith(".git") else "")
    if path.endswith(".git") or (assume_git and path):
        remote = f"{scheme}://{host}/{path}"
        return Repository(remote=remote, web_url=remote, ref_and_path=_check_ref(at))
    return None


_BROWSE_PATHS = {
    Forge.GITLAB: re.compile(r"((?:[^/]+/)+[^/]+)/-/(?:tree|blob)/(.+)"),
    Forge.GITEA: re.compile(r"([^/]+/[^/]+)/src/(?:branch|tag|commit)/(.+)"),
    Forge.GITHUB: re.compile(r"([^/]+/[^/]+)/(?:tree|blob)/(.+)"),
    Forge.BITBUCKET: re.compile(r"([^/]+/[^/]+)/src/(.+)"),
}


def _forge_from_host(host: str) -> Forge:
    """By the host's name: 'github.com', or one of one's own: 'gitlab.example.com'."""
    first = host.partition(".")[0]
    own = {"github": Forge.GITHUB, "gitlab": Forge.GITLAB, "gitea": Forge.GITEA, "forgejo": Forge.GITEA}
    return _FORGES_BY_HOST.get(host) or (own.get(first, Forge.PLAIN) if host.count(".") > 1 else Forge.PLAIN)


def _forge_repository(scheme: str, host: str, path: str, forge: Forge, at: str) -> Repository:
    web = f"{scheme}://{host}/{path.removesuffix('.git')}"
    return Repository(remote=f"{web}.git", web_url=web, forge=forge, ref_and_path=_check_ref(at.strip("/")))


def _ssh_or_git_repository(remote: str, host: str, path: str, at: str) -> Repository:
    """By ssh or git's own protocol. People open it on the web, if its host shows it there."""
    shown = _forge_repository("https", host.lower(), path.strip("/"), _forge_from_host(host.lower()), at)
    plain = shown.forge is Forge.PLAIN
    return replace(
        shown, remote=remote, web_url=shown.web_url if not plain else f"https://{host.lower()}/{path.strip('/')}"
    )


def _check_ref(at: str) -> str:
    at = unquote(at).strip("/")
    if at and _INVALID_IN_REF.search(at):
        raise InvalidInput(f"'{at}' cannot be a branch or a tag, nor a path in it.")
    return at
