"""Parses the root of a source as the user typed it, and derives a name and a version from it.

    add_scheme      docs.example.com/x    -> https://docs.example.com/x; any other user input as it is
    parse_root      user input            -> the kind of source, and its root as a URL
    split_login     user input            -> the same without user:password@, and the header to send instead
    derive_name     a root as a URL       -> the default name of the source
    derive_version  a root as a URL       -> the version in it: a tag's, or a package's
    check_label     a name and a version  -> InvalidInput unless ``name@version`` can be typed and parsed

A new kind of source begins here: only parse_root knows the syntax of roots.
"""

import base64
import os
import re
import unicodedata
from urllib.parse import unquote

from kept.errors import InvalidInput
from kept.model.package import parse_package
from kept.model.repository import local_repository, parse_repository, repository_from_root, split_ref
from kept.model.source import Header, SourceKind
from kept.model.url import canonicalize_url, file_path, file_url

# Not a path: a URL, 'github:owner/repo' and the like, 'git@host:repo'. A folder with such a name can still be given
# as './github:…'.
_NOT_A_PATH = re.compile(
    r"[a-z][a-z0-9+.-]*://|(?:github|gitlab|codeberg|bitbucket|git|npm|pypi):|[\w.-]+@[\w.-]+:", re.IGNORECASE
)
_LOGIN = re.compile(r"((?!(?:git\+)?ssh:)[a-z][a-z0-9+.-]*:/+|https?:)([^/?#\\]*)@", re.IGNORECASE)
_SSH_PASSWORD = re.compile(r"(?:git\+)?ssh://[^/@]*:[^/]*@", re.IGNORECASE)

# As a browser's address bar takes it: labels, a top-level domain that is no usual suffix of a file, a port, a path.
_BARE_ADDRESS = re.compile(r"(?P<host>(?:[a-z0-9-]+\.)+(?P<last>[a-z]{2,}))(?::\d+)?(?P<path>[/?#].*)?", re.IGNORECASE)
_FILE_SUFFIXES = frozenset({
    "adoc", "asciidoc", "docm", "docx", "epub", "git", "gz", "htm", "html", "ipynb", "json", "markdown", "md", "mdx",
    "odt", "org", "pdf", "pod", "pptx", "py", "rs", "rst", "rtf", "sh", "tar", "tgz", "toml", "txt", "xhtml", "xlsx",
    "xml", "yaml", "yml", "zip",
})  # fmt: skip

_SUFFIX = re.compile(r"(?<=.)\.(?:md|markdown|x?html?|txt|rst|pdf|ipynb)$", re.IGNORECASE)
_NAME = re.compile(r"\w[\w.+-]*")
_INVALID_IN_NAME = re.compile(r"[^\w.+-]+")
MAX_NAME_LENGTH = 60


def add_scheme(root: str) -> str:
    """Return the address of a web site that was typed without https:// with it; any other root as it is."""
    found = _BARE_ADDRESS.fullmatch(root)
    is_address = found and (found["path"] or found["last"].lower() not in _FILE_SUFFIXES)
    return f"https://{root}" if is_address else root


def parse_root(root: str, as_: str | None = None) -> tuple[SourceKind, str]:
    """Return the kind of source that the user named, and its root as a URL. Raises InvalidInput if it is none.

    '@urls.txt' is a list of web pages: its root is the file. ``as_`` 'web' or 'git' decides where both are possible.
    """
    root, _ = split_login(root)
    if not root.strip(" @"):
        raise InvalidInput("The root is empty. Say which folder or file to keep, as in: kept add docs")
    if "\0" in root:
        raise InvalidInput("A root has no NUL character in it.")
    if root.startswith("@"):
        return SourceKind.WEB, _absolute_file_url(root[1:])
    if _SSH_PASSWORD.match(root):
        raise InvalidInput("ssh takes no password from a URL. Give it a key, and leave the password out.")
    if package := parse_package(root):
        return SourceKind.PACKAGE, package.root
    if as_ != "web" and (repository := parse_repository(root, assume_git=as_ == "git")):
        return SourceKind.GIT, repository.root
    if root[:7].lower() == "file://":
        return _parse_file_url(root, as_)
    if root[:8].lower().startswith(("http://", "https://")) and as_ != "git":
        url = canonicalize_url(root)
        if url is None:
            raise InvalidInput(f"{root} is not the URL of a web page.")
        return SourceKind.WEB, url
    if _NOT_A_PATH.match(root):
        raise InvalidInput(
            f"{root} cannot be kept: it is no web site, git repository or package that Kept knows how to ask for, "
            "nor a folder or file of this machine."
        )
    if as_ == "git":
        path, ref = split_ref(root)
        return SourceKind.GIT, local_repository(_absolute_file_url(path), ref).root
    return SourceKind.FOLDER, _absolute_file_url(root)


def _parse_file_url(root: str, as_: str | None) -> tuple[SourceKind, str]:
    remote, ref = split_ref(root)
    is_git = as_ == "git" or (as_ is None and remote.endswith(".git"))
    url = canonicalize_url(remote if is_git else root)
    if url is None:
        raise InvalidInput(f"{root} is not the URL of a file or folder on this machine.")
    folder = _absolute_file_url(file_path(url))
    return (SourceKind.GIT, local_repository(folder, ref).root) if is_git else (SourceKind.FOLDER, folder)


def split_login(root: str) -> tuple[str, Header | None]:
    """Return a root without user and password, and the Authorization header for them."""
    found = _LOGIN.match(root)
    if not found:
        return root, None
    login = unquote(found[2]) if ":" in found[2] else f"{unquote(found[2])}:"
    value = f"Basic {base64.b64encode(login.encode()).decode()}"
    return found[1] + root[found.end() :], Header(name="Authorization", value=value)


def derive_name(root: str, kind: SourceKind = SourceKind.FOLDER) -> str:
    """Return a name from the last part of a path, or from a site, a repository or a package, that is easy to type.

    'file:///srv/User%20Guide.md' is 'user-guide', 'https://www.example.com/docs/' is 'example.com-docs'.
    """
    scheme, _, rest = root.partition("://")
    last = unquote(rest.rstrip("/") if scheme != "file" else rest.rstrip("/").rpartition("/")[2]).removeprefix("www.")
    if kind is SourceKind.GIT:
        last = repository_from_root(root).name
    elif package := parse_package(root):
        last = package.name.rpartition("/")[2]
    slug = _INVALID_IN_NAME.sub("-", unicodedata.normalize("NFKC", _SUFFIX.sub("", last)).lower())
    return slug.lstrip("-.+_")[:MAX_NAME_LENGTH].rstrip("-._") or "files"


def derive_version(root: str, kind: SourceKind) -> str:
    """Return the version in a root, a tag's or a package's, or an empty string."""
    package = parse_package(root)
    version = repository_from_root(root).version if kind is SourceKind.GIT else package.version if package else ""
    return version if _NAME.fullmatch(version) else ""


def check_label(name: str, version: str = "") -> None:
    """Raise InvalidInput unless both can be parts of a label."""
    for what, text in (("name", name), ("version", version)):
        if (text or what == "name") and (not _NAME.fullmatch(text) or len(text) > MAX_NAME_LENGTH):
            raise InvalidInput(
                f"'{text}' cannot be the {what} of a source: it takes letters, digits and . _ + - "
                f"(a letter or digit first, at most {MAX_NAME_LENGTH})."
            )


def _absolute_file_url(path: str) -> str:
    """Return the URL of an absolute, normalized path. Symbolic links are not resolved: the user chose them."""
    return file_url("/" + os.path.abspath(path).lstrip("/"))
