"""Untrusted package archives, and the selection of documentation files."""

import gzip
import io
import os
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import pytest

from kept.errors import SourceUnavailable
from kept.extract.reader import guess_content_type
from kept.model.source import Scope
from kept.origins.file_selection import FileSelection
from kept.origins.packages import archive
from kept.origins.packages.archive import ArchiveTooLarge, unpack_archive
from kept.origins.packages.download import extract_readme

EVIL = ["../out.md", "/etc/out.md", "a/../../out.md", "..\\out.md", "C:/out.md", "a\n.md", "", "."]


def make_tarball(path: Path, names: list[str], body: bytes = b"# Hi\n") -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name in names:
            member = tarfile.TarInfo(f"package/{name}")
            member.size = len(body)
            tar.addfile(member, io.BytesIO(body))
        for kind, name in ((tarfile.SYMTYPE, "link.md"), (tarfile.LNKTYPE, "hard.md"), (tarfile.FIFOTYPE, "fifo.md")):
            member = tarfile.TarInfo(f"package/{name}")
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    return path


def make_zip(path: Path, names: list[str], body: bytes = b"# Hi\n") -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for name in names:
            made.writestr(name or "/", body)
        link = zipfile.ZipInfo("link.md")
        link.external_attr = 0o120777 << 16
        made.writestr(link, "/etc/passwd")
    return path


@pytest.mark.parametrize("make", [make_tarball, make_zip])
def test_no_name_in_an_archive_leads_out_of_its_folder(tmp_path: Path, make) -> None:  # type: ignore[no-untyped-def]
    packed = make(tmp_path / "a.bin", [*EVIL, "docs/a.md", "./b.md", "code.py"])
    (tmp_path / "into").mkdir()
    found = unpack_archive(packed, tmp_path / "into", lambda path: path.endswith(".md"))
    assert set(found) == {"docs/a.md", "b.md"}
    assert {path.parent for path in found.values()} == {tmp_path / "into"}
    assert sorted(os.listdir(tmp_path)) == ["a.bin", "into"]


def test_an_entry_without_a_name_is_skipped(tmp_path: Path) -> None:
    packed = make_zip(tmp_path / "a.zip", ["a.md", "b.md"])
    packed.write_bytes(packed.read_bytes().replace(b"a.md", b"\0.md"))
    (tmp_path / "into").mkdir()
    assert list(unpack_archive(packed, tmp_path / "into", lambda path: True)) == ["b.md"]


@pytest.mark.parametrize("make", [make_tarball, make_zip])
def test_an_archive_that_unpacks_to_too_much_is_refused(tmp_path: Path, make, monkeypatch: pytest.MonkeyPatch) -> None:  # type: ignore[no-untyped-def]
    monkeypatch.setattr(archive, "MAX_BYTES", 100_000)
    packed = make(tmp_path / "a.bin", ["bomb.md"], b"0" * 5_000_000)
    (tmp_path / "into").mkdir()
    with pytest.raises(ArchiveTooLarge):
        unpack_archive(packed, tmp_path / "into", lambda path: True)
    monkeypatch.setattr(archive, "MAX_ENTRIES", 3)
    with pytest.raises(ArchiveTooLarge):
        unpack_archive(make(tmp_path / "b.bin", list("abcd")), tmp_path / "into", lambda path: False)


def test_an_oversized_extended_header_is_refused(tmp_path: Path) -> None:
    (tmp_path / "into").mkdir()
    for kind, size in ((tarfile.XHDTYPE, 16 << 20), (tarfile.GNUTYPE_LONGNAME, 16 << 20), (tarfile.XHDTYPE, -512)):
        member = tarfile.TarInfo("package/long")
        member.type, member.size = kind, size
        with gzip.open(tmp_path / "a.tgz", "wb", 1) as made:
            made.write(member.tobuf(tarfile.GNU_FORMAT) + bytes(max(size, 512)))
        tracemalloc.start()
        with pytest.raises(ArchiveTooLarge):
            unpack_archive(tmp_path / "a.tgz", tmp_path / "into", lambda path: True)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
        tracemalloc.stop()


def test_a_file_that_is_not_an_archive_is_refused(tmp_path: Path) -> None:
    text = " ".join(f"word{number * number}" for number in range(400)).encode()
    damaged = bytearray(make_zip(tmp_path / "x.zip", ["a.md"], text).read_bytes())
    damaged[50:120] = b"\xff" * 70
    cut = make_tarball(tmp_path / "x.tgz", ["a.md"] * 50).read_bytes()[:200]
    misnamed = make_zip(tmp_path / "y.zip", ["é.md"]).read_bytes().replace("é".encode(), b"\xff\xff", 1)
    for number, body in enumerate([b"", b"nonsense", cut, damaged, misnamed]):
        (tmp_path / f"{number}.tgz").write_bytes(body)
        into = tmp_path / str(number)
        into.mkdir()
        with pytest.raises(SourceUnavailable, match="cannot be unpacked: it is not a valid archive"):
            unpack_archive(tmp_path / f"{number}.tgz", into, lambda path: True)


def test_the_readme_of_a_wheel_is_its_long_description() -> None:
    head = b"Metadata-Version: 2.1\nName: x\nSummary: y\n"
    assert extract_readme(head + b"Description-Content-Type: text/markdown; charset=UTF-8\n\n# \xc3\xa9\n") == (
        "README.md",
        "# é\n".encode(),
    )
    assert extract_readme(head + b"\nTitle\n=====\n") == ("README.rst", b"Title\n=====\n")
    assert extract_readme(head + b"Description-Content-Type: text/plain\n\nPlain\n") == ("README.txt", b"Plain\n")
    assert extract_readme(head) is None


CODE = ["README.md", "src/a.py", "src/notes.md", "docs/a.md", "lib/x/README.rst", "pkg/doc/b.html", "docs/.x/c.md"]


@pytest.mark.parametrize(
    ("scope", "below", "paths", "chosen"),
    [
        (Scope(), "", CODE, ["README.md", "docs/a.md", "lib/x/README.rst", "pkg/doc/b.html"]),
        (Scope(exclude=("pkg/*",)), "", CODE, ["README.md", "docs/a.md", "lib/x/README.rst"]),
        (Scope(include=("src/*",)), "", CODE, ["src/notes.md"]),
        (Scope(), "src", CODE, ["src/notes.md"]),
        (Scope(), "docs/a.md", CODE, ["docs/a.md"]),
        (Scope(include=("*.html",)), "pkg", CODE, ["pkg/doc/b.html"]),
        (Scope(), "", ["README.md", "posts/a.md", "x.c"], ["README.md", "posts/a.md"]),
        (Scope(), "", ["tests/docs/a.md", "guide.md"], ["tests/docs/a.md", "guide.md"]),
        (Scope(), "", ["node_modules/x/README.md", "docs/a.md"], ["docs/a.md"]),
    ],
)
def test_documentation_is_selected_unless_patterns_say_otherwise(
    scope: Scope, below: str, paths: list[str], chosen: list[str]
) -> None:
    assert FileSelection(scope, guess_content_type, subfolder=below).select(paths) == chosen
