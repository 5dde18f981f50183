"""Ignore files, compared with git itself."""

import asyncio
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from kept.extract.reader import guess_content_type
from kept.model.frontier import ListingFailure
from kept.model.source import Limits, Scope
from kept.model.url import file_path, file_url
from kept.origins.folder import FolderOrigin
from kept.origins.gitignore import parse_rules

PATHS = [
    "a.md",
    "b.md",
    "ab.md",
    "doc/a.md",
    "doc/b.md",
    "doc/sub/a.md",
    "doc/sub/deep/b.md",
    "build/a.md",
    "a/b/c.md",
    "x y.md",
]
PARTS = [
    "a",
    "b",
    "*",
    "**",
    "?",
    "[ab]",
    "[!a]",
    "doc",
    "sub",
    "deep",
    "build",
    "*.md",
    "a*",
    "\\a",
    "c.md",
    "x y.md",
    "[]b]",
]

line = st.builds(
    lambda no, root, parts, end: no + root + "/".join(parts) + end,
    st.sampled_from(["", "", "!"]),
    st.sampled_from(["", "/"]),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=4),
    st.sampled_from(["", "/", " "]),
)
lines = st.lists(line | st.sampled_from(["", "# a.md", "\\#x"]), max_size=5).map("\n".join)


def listed(root: Path) -> set[str]:
    origin = FolderOrigin(file_url(str(root)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    return {str(Path(file_path(one.url)).relative_to(root)) for one in origin._list_files()}


def kept_by_git(root: Path) -> set[str]:
    git = ["git", "-C", str(root), "ls-files", "-z", "--cached", "--others", "--exclude-per-directory=.gitignore"]
    out = subprocess.run(git, check=True, capture_output=True, text=True).stdout
    return {path for path in out.split("\0") if path.endswith(".md")}


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(top=lines, below=lines)
@example(top="**/**/a", below="*\n!/**")
def test_exactly_the_files_that_git_ignores_are_left_out(tmp_path: Path, top: str, below: str) -> None:
    if not shutil.which("git"):
        pytest.skip("git is not installed")
    root = tmp_path / "root"
    if not root.exists():
        for path in PATHS:
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text("text")
        subprocess.run(["git", "init", "-q", str(root)], check=True)
    (root / ".gitignore").write_text(top)
    (root / "doc" / ".gitignore").write_text(below)
    assert listed(root) == kept_by_git(root)
    origin = FolderOrigin(file_url(str(root)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    for path in PATHS:
        assert (origin.why_excluded(file_url(str(root / path))) is None) == (path in listed(root))


def test_no_pattern_takes_for_ever() -> None:
    (stars,) = parse_rules("*a" * 6 + "b")
    (folders,) = parse_rules("a/**/" * 6 + "b")
    began = time.process_time()
    assert stars.pattern
    assert folders.pattern
    assert not stars.pattern.fullmatch("a" * 120)
    assert not folders.pattern.fullmatch("a/" * 120 + "a")
    assert time.process_time() - began < 1, "seconds"
    assert stars.pattern.fullmatch("x/y" + "aab" * 6)
    assert folders.pattern.fullmatch("a/" * 6 + "b")
    assert folders.pattern.fullmatch("a/x/y/" * 6 + "b")


def test_an_ignore_file_of_a_megabyte_is_matched_quickly_or_refused(tmp_path: Path) -> None:
    for number in range(300):
        (tmp_path / f"page{number}.md").write_text("text")
    ignore = tmp_path / ".gitignore"
    began = time.process_time()
    ignore.write_text("".join(f"name{number}.md\n/folder/{number}\n" for number in range(30_000)) + "page7.md\n")
    assert len(listed(tmp_path)) == 299
    ignore.write_text("*a" * 500_000)
    assert len(listed(tmp_path)) == 300, "no path is as long as this pattern"
    ignore.write_text("".join(f"*a*b*{number}\n" for number in range(100_000)))
    origin = FolderOrigin(file_url(str(tmp_path)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    [failure] = origin._list_files()
    assert isinstance(failure, ListingFailure)
    assert "more than 2,000 patterns with wildcards" in failure.reason
    assert "more than 2,000" in (origin.why_excluded(file_url(str(tmp_path / "page1.md"))) or "")
    assert time.process_time() - began < 10, "seconds"


def test_ignore_files_that_are_links_or_pipes_are_not_read(tmp_path: Path) -> None:
    root = tmp_path / "root"
    for name in ("linked", "piped", "folder/.gitignore"):
        (root / name).mkdir(parents=True)
    (tmp_path / "patterns").write_text("*.md\n")
    (root / "linked" / ".gitignore").symlink_to(tmp_path / "patterns")
    os.mkfifo(root / "piped" / ".gitignore")
    os.mkfifo(root / ".kept-root")
    for folder in ("linked", "piped", "folder"):
        (root / folder / "a.md").write_text("text")
    assert listed(root) == {"linked/a.md", "piped/a.md", "folder/a.md"}
    origin = FolderOrigin(file_url(str(root)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    assert (asyncio.run(origin.open()) or "").startswith("folder ")


def test_keptignore_overrides_gitignore(tmp_path: Path) -> None:
    for name in ("a.md", "b.md", "c.md"):
        (tmp_path / name).write_text("text")
    (tmp_path / ".gitignore").write_text("a.md\nb.md\n")
    (tmp_path / ".keptignore").write_text("!b.md\nc.md\n")
    assert listed(tmp_path) == {"b.md"}
