"""Parsing of roots as users type them."""

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.errors import InvalidInput
from kept.model.root import MAX_NAME_LENGTH, add_scheme, check_label, derive_name, parse_root, split_login
from kept.model.source import SourceKind
from kept.model.url import canonicalize_url, file_url


@pytest.mark.parametrize(
    ("typed", "path"),
    [
        ("/srv/docs", "/srv/docs"),
        ("/srv/docs/", "/srv/docs"),
        ("/srv//docs/./a/..", "/srv/docs"),
        ("//srv/docs", "/srv/docs"),
        ("/srv/My Guide.md", "/srv/My%20Guide.md"),
        ("/srv/50%", "/srv/50%25"),
        ("file:///srv/docs/", "/srv/docs"),
        ("FILE:///srv/a/../docs", "/srv/docs"),
        ("/", "/"),
    ],
)
def test_a_path_becomes_one_url(typed: str, path: str) -> None:
    assert parse_root(typed) == (SourceKind.FOLDER, f"file://{path}")


def test_a_path_counts_from_the_working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    expected = file_url(tmp_path / "docs")
    assert {parse_root(typed)[1] for typed in ("docs", "./docs", "docs/.", "docs/")} == {expected}
    assert parse_root("~")[1] == file_url(tmp_path / "~")  # the shell's business


def test_links_in_a_path_are_left_as_they_are(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    assert parse_root(str(tmp_path / "link"))[1] == file_url(tmp_path / "link")


@pytest.mark.parametrize("typed", ["ftp://example.com/docs", "svn+ssh://example.com/docs", "git:docs"])
def test_what_is_elsewhere_and_unknown_cannot_be_kept(typed: str) -> None:
    with pytest.raises(InvalidInput, match="cannot be kept"):
        parse_root(typed)


@pytest.mark.parametrize("typed", ["", "  ", "file://elsewhere/docs", "file:///a%00b"])
def test_what_names_nothing_is_a_wrong_call(typed: str) -> None:
    with pytest.raises(InvalidInput):
        parse_root(typed)


def test_a_list_of_pages_is_known_by_its_file() -> None:
    assert parse_root("@lists/urls.txt") == (SourceKind.WEB, file_url(os.path.abspath("lists/urls.txt")))


@pytest.mark.parametrize(
    ("typed", "root", "value"),
    [
        ("https://docs.test/", "https://docs.test/", None),
        ("https://docs.test/@me:x@y/", "https://docs.test/@me:x@y/", None),
        ("https://me:pa%40ss@docs.test/a", "https://docs.test/a", "Basic bWU6cGFAc3M="),
        ("HTTPS://me@docs.test", "HTTPS://docs.test", "Basic bWU6"),
        ("https:me:pw@docs.test/", "https:docs.test/", "Basic bWU6cHc="),
        ("https://a@b:pw@docs.test/", "https://docs.test/", "Basic YUBiOnB3"),
    ],
)
def test_a_login_in_front_of_a_host_becomes_a_header(typed: str, root: str, value: str | None) -> None:
    found, header = split_login(typed)
    assert found == root
    assert (header.value if header else None) == value
    assert header is None or value not in repr(header)


@pytest.mark.parametrize(
    "typed",
    [
        "ftp://me:hunter22@docs.test/",
        "https://me:hunter22@",
        "http://me:hunter22@a b/",
        "ssh://me:hunter22@git.test/a.git",
        "git+ssh://me:hunter22@git.test/a.git",
    ],
)
def test_no_complaint_about_a_root_repeats_its_password(typed: str) -> None:
    with pytest.raises(InvalidInput) as complaint:
        parse_root(typed)
    assert "hunter22" not in str(complaint.value)


@pytest.mark.parametrize("typed", ["./github:owner", "a:b", "me@home", "docs.example.com"])
def test_a_folder_may_look_a_little_like_something_else(typed: str) -> None:
    assert parse_root(typed)[1] == file_url(os.path.abspath(typed))


@pytest.mark.parametrize(
    ("typed", "root"),
    [
        ("docs.example.com", "https://docs.example.com"),
        ("Docs.Example.com:8443/guide/?v=1", "https://Docs.Example.com:8443/guide/?v=1"),
        ("example.com/readme.md", "https://example.com/readme.md"),
        ("github.com/django/django", "https://github.com/django/django"),
        ("readme.md", "readme.md"),
        ("manual.zip", "manual.zip"),
        ("docs", "docs"),
        ("docs/guide.html", "docs/guide.html"),
        ("./docs.example.com", "./docs.example.com"),
        ("192.168.1.2/docs", "192.168.1.2/docs"),
        ("me@docs.example.com", "me@docs.example.com"),
        ("http://docs.example.com", "http://docs.example.com"),
        ("pypi:httpx", "pypi:httpx"),
    ],
)
def test_an_address_as_in_a_browser_gets_its_scheme(typed: str, root: str) -> None:
    assert add_scheme(typed) == root


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/srv/docs", "docs"),
        ("/srv/django-5.1", "django-5.1"),
        ("/srv/User Guide.md", "user-guide"),
        ("/srv/INDEX.HTML", "index"),
        ("/srv/c++", "c++"),
        ("/srv/libstdc++-doc", "libstdc++-doc"),
        ("/srv/example.com", "example.com"),
        ("/srv/Übersicht (neu)", "übersicht-neu"),
        ("/srv/.config", "config"),
        ("/srv/.md", "md"),
        ("/srv/---", "files"),
        ("/", "files"),
    ],
)
def test_a_name_is_the_last_part_of_the_path(path: str, name: str) -> None:
    assert derive_name(parse_root(path)[1]) == name


@given(st.binary(min_size=1).map(os.fsdecode).filter(lambda path: "\0" not in path))
def test_every_path_has_a_root_and_a_name(path: str) -> None:
    root = parse_root(f"/{path}")[1]
    assert len(root) > 2048 or canonicalize_url(root) == root
    name = derive_name(root)
    check_label(name)
    assert len(name) <= MAX_NAME_LENGTH


@pytest.mark.parametrize("name", ["", "a b", "a@1", "a/b", "-a", ".a", "a\n", "\udcff", "a" * 61])
def test_a_name_that_cannot_be_typed_again_is_refused(name: str) -> None:
    with pytest.raises(InvalidInput, match="name"):
        check_label(name)


@pytest.mark.parametrize(("name", "version"), [("docs", ""), ("docs", "5.1"), ("日本語", "18"), ("c++", "1.0-rc.1+x")])
def test_a_label_of_letters_and_digits_is_fine(name: str, version: str) -> None:
    check_label(name, version)


def test_a_version_is_checked_as_a_name_is() -> None:
    with pytest.raises(InvalidInput, match="version"):
        check_label("docs", "5@1")
