"""Git repositories: the remote, the ref and path that are stored, and the URLs that people open.

    parse_repository    user input, or a root    -> the repository, or None if it names none
    Repository.root     the canonical root of a source; parsing it gives the same repository

Each forge has its own URLs for files, so a root in the form of its forge implies which. Elsewhere a branch or tag
follows the remote: 'https://git.test/manual.git#v1.2'.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum
from urllib.parse import quote, unquote

from kept.errors import InvalidInput
from kept.model.url import canonicalize_url


class Forge(StrEnum):
    """The software of a host, which decides what URLs of files look like."""

    GITHUB = "github"
    GITLAB = "gitlab"
    GITEA = "gitea"
    BITBUCKET = "bitbucket"
    PLAIN = "plain"  # none, or unknown


class RefKind(StrEnum):
    BRANCH = "branch"
    TAG = "tag"
    COMMIT = "commit"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ref:
    """A branch, a tag or a commit."""

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
    remote: str  # for git, without a password
    web_url: str  # the start of its documents' URLs
    forge: Forge = Forge.PLAIN
    ref_and_path: str = ""  # a ref, perhaps with a path: 'v1.2/docs'. Empty: all of the default branch

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
        """Return the ref if it looks like a version, as 'v1.2' and '5.0-rc1' do, else an empty string."""
        first = self.ref_and_path.partition("/")[0]
        return first if re.fullmatch(r"v?\d[\w.+-]{0,39}", first) and not _COMMIT.fullmatch(first) else ""

    @property
    def wiki(self) -> "Repository | None":
        """Return the repository of its wiki, which may not exist."""
        if self.forge is not Forge.GITHUB or self.ref_and_path:
            return None
        remote = f"{self.remote.removesuffix('.git')}.wiki.git"
        return Repository(remote=remote, web_url=f"{self.web_url}/wiki")

    def file_base_url(self, ref: Ref) -> str:
        """Return the start of the URLs of all files at this ref."""
        name = quote(ref.name, safe=_URL_SAFE)
        return f"{self.web_url}/{_FILE_URL_PATHS[self.forge].format(kind=ref.kind, name=name)}/"


_URL_SAFE = "/@!$&'()*+,;=:~"
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_SCP_REMOTE = re.compile(r"(\w[\w.-]*)@([\w][\w.-]*):(?!/{2})([^#]+?)")
_REMOTE_AND_REF = re.compile(r"(.+?\.git)/?(?:[@#](.*))?|([^#]+)(?:#(.*))?")
_INVALID_IN_REF = re.compile(r"[\x00-\x20~^:?*\[\\\x7f]|\.\.|@\{|(?:\A|/)[-/.]|//")
# First path segments on a forge that are not owners of repositories.
_RESERVED_OWNERS = frozenset({
    "about", "account", "apps", "blog", "collections", "contact", "customer-stories", "dashboard", "enterprise",
    "events", "explore", "features", "groups", "help", "issues", "login", "marketplace", "new", "notifications", "org",
    "organizations", "orgs", "pricing", "product", "projects", "pulls", "readme", "resources", "search", "security",
    "settings", "site", "solutions", "sponsors", "stars", "topics", "trending", "user", "users",
})  # fmt: skip


def parse_repository(text: str, *, assume_git: bool = False) -> Repository | None:
    """Return the repository that a root without a login names, or None if it names none.

    ``assume_git``: the user said that it is a repository, so every remote that git accepts is one.
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
    """Return the repository of a git source."""
    return parse_repository(root, assume_git=True) or local_repository(*split_ref(root))


def local_repository(url: str, at: str = "") -> Repository:
    """Return a repository in a folder of this machine."""
    return Repository(remote=url, web_url=url, ref_and_path=_check_ref(at))


def split_ref(text: str) -> tuple[str, str]:
    """Split a remote and the ref that follows it: '/srv/manual.git@v1.2'."""
    found = _REMOTE_AND_REF.fullmatch(text)
    return (found[1] or found[3], found[2] or found[4] or "") if found else (text, "")


def remote_host_and_port(remote: str) -> str:
    """Return the host as ``Access.allowed`` names it: 'git.test:443'; empty for a local repository."""
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
            is_known = own is forge or (own is Forge.PLAIN and forge in (Forge.GITLAB, Forge.GITEA))
            if is_known and found[1].partition("/")[0] not in _RESERVED_OWNERS:
                return _forge_repository(scheme, host, found[1], forge, unquote(found[2]))
    forge, parts = _forge_from_host(host), path.removesuffix(".git").split("/")
    names_repository = len(parts) == 2 or (forge is Forge.GITLAB and len(parts) > 1 and "-" not in parts)
    if forge is not Forge.PLAIN and names_repository and (parts[0] not in _RESERVED_OWNERS or path.endswith(".git")):
        # Without '.git' it was copied from a browser, and the fragment is a heading, not a ref.
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
    """Return the forge by its host name: 'github.com', or self-hosted: 'gitlab.example.com'."""
    first = host.partition(".")[0]
    own = {"github": Forge.GITHUB, "gitlab": Forge.GITLAB, "gitea": Forge.GITEA, "forgejo": Forge.GITEA}
    return _FORGES_BY_HOST.get(host) or (own.get(first, Forge.PLAIN) if host.count(".") > 1 else Forge.PLAIN)


def _forge_repository(scheme: str, host: str, path: str, forge: Forge, at: str) -> Repository:
    web = f"{scheme}://{host}/{path.removesuffix('.git')}"
    return Repository(remote=f"{web}.git", web_url=web, forge=forge, ref_and_path=_check_ref(at.strip("/")))


def _ssh_or_git_repository(remote: str, host: str, path: str, at: str) -> Repository:
    """Return a repository that is fetched by ssh or git, with the web URL of its forge if it has one."""
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
