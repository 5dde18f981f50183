"""Roots of repositories and packages as people type them: the remote for git, and the URLs of files."""

import pytest

from kept.errors import InvalidInput
from kept.model.package import parse_package
from kept.model.repository import Forge, Ref, RefKind, Repository, parse_repository, repository_from_root
from kept.model.root import derive_name, derive_version, parse_root, split_login
from kept.model.source import SourceKind

MAIN = Ref(kind=RefKind.BRANCH, name="main")
TAG = Ref(kind=RefKind.TAG, name="v1.2")

# typed -> the root it becomes, what git is told, what is wanted of it, where a file is opened
REPOSITORIES = [
    ("github:o/r", "https://github.com/o/r", "https://github.com/o/r.git", "", "https://github.com/o/r/blob/main/a"),
    ("https://github.com/o/r", "https://github.com/o/r", "https://github.com/o/r.git", "", None),
    ("https://github.com/o/r.git", "https://github.com/o/r", "https://github.com/o/r.git", "", None),
    ("https://GitHub.com/o/r/?tab=readme#x", "https://github.com/o/r", "https://github.com/o/r.git", "", None),
    ("git+https://github.com/o/r.git@v1", "https://github.com/o/r/tree/v1", "https://github.com/o/r.git", "v1", None),
    ("github:o/r@v1.2", "https://github.com/o/r/tree/v1.2", "https://github.com/o/r.git", "v1.2", None),
    ("https://github.com/o/r/tree/x/y/docs", "https://github.com/o/r/tree/x/y/docs", "https://github.com/o/r.git",
     "x/y/docs", None),
    ("https://github.com/o/r/blob/main/docs/a.md", "https://github.com/o/r/tree/main/docs/a.md",
     "https://github.com/o/r.git", "main/docs/a.md", None),
    ("https://gitlab.com/g/s/r/-/tree/main/docs", "https://gitlab.com/g/s/r/-/tree/main/docs",
     "https://gitlab.com/g/s/r.git", "main/docs", "https://gitlab.com/g/s/r/-/blob/main/a"),
    ("https://code.test/g/r/-/blob/main/a.md", "https://code.test/g/r/-/tree/main/a.md", "https://code.test/g/r.git",
     "main/a.md", "https://code.test/g/r/-/blob/main/a"),
    ("https://gitlab.gnome.test/GNOME/gtk", "https://gitlab.gnome.test/GNOME/gtk",
     "https://gitlab.gnome.test/GNOME/gtk.git", "", None),
    ("https://codeberg.org/o/r/src/branch/main/docs", "https://codeberg.org/o/r/src/branch/main/docs",
     "https://codeberg.org/o/r.git", "main/docs", "https://codeberg.org/o/r/src/branch/main/a"),
    ("https://bitbucket.org/o/r/src/main/docs/", "https://bitbucket.org/o/r/src/main/docs",
     "https://bitbucket.org/o/r.git", "main/docs", "https://bitbucket.org/o/r/src/main/a"),
    ("https://git.test/a/r.git", "https://git.test/a/r.git", "https://git.test/a/r.git", "",
     "https://git.test/a/r.git/main/a"),
    ("https://git.test/a/r.git#v1", "https://git.test/a/r.git#v1", "https://git.test/a/r.git", "v1", None),
    ("git@github.com:o/r.git", "git@github.com:o/r.git", "git@github.com:o/r.git", "",
     "https://github.com/o/r/blob/main/a"),
    ("git@git.test:r.git@v2", "git@git.test:r.git#v2", "git@git.test:r.git", "v2", "https://git.test/r.git/main/a"),
    ("ssh://git@git.test:2222/a/r.git#v1", "ssh://git@git.test:2222/a/r.git#v1", "ssh://git@git.test:2222/a/r.git",
     "v1", "https://git.test/a/r.git/main/a"),
    ("git://git.test/r.git", "git://git.test/r.git", "git://git.test/r.git", "", "https://git.test/r.git/main/a"),
    ("file:///srv/r.git@v1", "file:///srv/r.git#v1", "file:///srv/r.git", "v1", "file:///srv/r.git/main/a"),
]  # fmt: skip


@pytest.mark.parametrize(("typed", "root", "remote", "at", "opened"), REPOSITORIES)
def test_a_repository_is_recognised_as_typed_or_copied_from_a_browser(
    typed: str, root: str, remote: str, at: str, opened: str | None
) -> None:
    assert parse_root(typed) == (SourceKind.GIT, root)
    found = repository_from_root(root)
    assert (found.remote, found.ref_and_path) == (remote, at)
    assert found.root == root, "its root names it again"
    assert derive_name(root, SourceKind.GIT) in ("r", "gtk")
    assert opened is None or f"{found.file_base_url(MAIN)}a" == opened


@pytest.mark.parametrize(
    "typed",
    [
        "https://github.com/o",
        "https://github.com/o/r/wiki",
        "https://github.com/o/r/issues/5",
        "https://github.com/features/actions",
        "https://github.blog/a/b",
        "https://docs.github.com/en/rest",
        "https://docs.test/guide/tree/main",
        "https://docs.test/a/b",
    ],
)
def test_other_pages_are_pages(typed: str) -> None:
    assert parse_root(typed) == (SourceKind.WEB, typed)


def test_the_kind_of_a_root_may_be_given() -> None:
    assert parse_root("https://github.com/o/r/tree/main/docs", "web")[0] is SourceKind.WEB
    assert parse_root("https://git.test/r", "git") == (SourceKind.GIT, "https://git.test/r")
    assert parse_root("/srv/r", "git") == (SourceKind.GIT, "file:///srv/r")
    assert parse_root("file:///srv/r.git", "web")[0] is SourceKind.FOLDER


@pytest.mark.parametrize("typed", ["github:o", "github:o/r@a..b", "github:o/r@*", "github:o/r@-x", "gitlab:o/a b"])
def test_an_invalid_repository_is_refused(typed: str) -> None:
    with pytest.raises(InvalidInput):
        parse_root(typed)


@pytest.mark.parametrize(
    ("typed", "version"),
    [
        ("github:o/r@v1.2", "v1.2"),
        ("github:o/r@5.0-rc.1", "5.0-rc.1"),
        ("https://github.com/o/r/tree/v1.2/docs", "v1.2"),
        ("github:o/r@main", ""),
        ("github:o/r@" + "1" * 40, ""),
        ("github:o/r", ""),
        ("npm:left-pad@1.3.0", "1.3.0"),
        ("npm:@types/node", ""),
        ("https://docs.test/v1.2/", ""),
    ],
)
def test_a_tag_and_a_package_name_their_version(typed: str, version: str) -> None:
    kind, root = parse_root(typed)
    assert derive_version(root, kind) == version


def test_the_url_of_a_file_is_that_of_its_forge() -> None:
    shown = {
        forge: Repository(remote="https://h.test/o/r.git", web_url="https://h.test/o/r", forge=forge).file_base_url(TAG)
        for forge in Forge
    }
    assert {forge: url.removeprefix("https://h.test/o/r/") for forge, url in shown.items()} == {
        Forge.GITHUB: "blob/v1.2/",
        Forge.GITLAB: "-/blob/v1.2/",
        Forge.GITEA: "src/tag/v1.2/",
        Forge.BITBUCKET: "src/v1.2/",
        Forge.PLAIN: "v1.2/",
    }


def test_only_the_whole_of_a_repository_on_github_has_a_wiki() -> None:
    found = parse_repository("github:o/r")
    assert found is not None
    assert found.wiki == Repository(remote="https://github.com/o/r.wiki.git", web_url="https://github.com/o/r/wiki")
    for typed in ("github:o/r@v1", "gitlab:o/r"):
        assert (found := parse_repository(typed)) is not None
        assert found.wiki is None


def test_credentials_in_a_url_are_not_part_of_the_root() -> None:
    bare, header = split_login("https://tok:x@github.com/o/r")
    assert bare == "https://github.com/o/r"
    assert header is not None
    assert parse_root("https://tok:x@github.com/o/r") == (SourceKind.GIT, "https://github.com/o/r")
    assert split_login("ssh://git@github.com/o/r")[1] is None
    assert split_login("npm:@types/node@1")[1] is None


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("npm:left-pad@1.3.0", "npm:/left-pad@1.3.0/"),
        ("npm:@types/node", "npm:/@types/node/"),
        ("pypi:Zope.Interface", "pypi:/zope-interface/"),
    ],
)
def test_a_package_has_one_canonical_spelling(typed: str, url: str) -> None:
    assert (package := parse_package(typed)) is not None
    assert package.base_url == url
    assert parse_root(typed) == (SourceKind.PACKAGE, package.root)
    assert parse_package(package.root) == package


@pytest.mark.parametrize(
    "typed", ["npm:../x", "npm:-g", "npm:a b", "pypi:a/b", "pypi:x@ 1", "pypi:--index", "npm:a@file:x"]
)
def test_an_invalid_package_is_refused(typed: str) -> None:
    with pytest.raises(InvalidInput):
        parse_root(typed)
