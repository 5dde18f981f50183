"""Real folders: moved, locked, unmounted, with pipes and links. An error is never a deletion."""

import errno
import os
import random
import shutil
import socket
import struct
import time
import unicodedata
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from kept.extract.reader import guess_content_type, parse_page
from kept.model.companions import Companions
from kept.model.document import ParsedPage
from kept.model.frontier import Fetched, ListedUrl, Refused
from kept.model.job import JobStatus
from kept.model.source import Limits, Scope, Source, SourceKind
from kept.model.url import file_path, file_url
from kept.origins.folder import ROOT_MARKER, FolderOrigin
from kept.origins.zip_file import is_zip_root
from kept.service import documents
from kept.store import contents
from kept.store.database import Connection, Database
from tests.contract.databases import on_both_databases
from tests.crash.file_operations import Folders, crawl_folder
from tests.factories import make_source, shown

TEXT = "What this page says is long enough to be told from what any other page says, even after an edit. "


async def make_folder_source(db: Database, root: Path, *, name: str = "docs") -> Source:
    return await make_source(db, name, root=file_url(str(root)), kind=SourceKind.FOLDER)


def write(root: Path, **files: str) -> None:
    for name, text in files.items():
        path = root / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.with_suffix(".md").write_text(text)


async def names(db: Database, source: Source) -> dict[str, str]:
    """Return the documents shown, by path below the root."""
    return {url.removeprefix(source.root + "/"): id for url, (id, _) in (await shown(db, source)).items()}


@on_both_databases
async def test_a_file_keeps_one_identity_through_renames_edits_and_moves_and_its_history_is_one_story(
    db: Database, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    others = {f"other{number}": f"{TEXT} number {number}" for number in range(12)}
    write(root, guide=TEXT + "first words " * 9, tiny="a", **others)
    source = await make_folder_source(db, root)
    await crawl_folder(db, source, root)
    (id,) = [one for path, one in (await names(db, source)).items() if path == "guide.md"]

    async def then(path: str, *, edit: bool = False) -> None:
        (old,) = [path for path, one in (await names(db, source)).items() if one == id]
        (root / path).parent.mkdir(exist_ok=True)
        (root / old).rename(root / path)
        if edit:
            (root / path).write_text((root / path).read_text() + "And a few words more. ")
        job = await crawl_folder(db, source, root)
        assert (job.status, job.progress.tally.moved) == (JobStatus.COMPLETED, 1), path
        assert (await names(db, source))[path] == id

    await then("manual.md")
    await then("Manual.md", edit=True)  # only the case, and an edit
    await then("deeper/Manual.md", edit=True)  # another folder, the same name, and an edit
    await then("deeper/Manual.txt", edit=True)  # another suffix
    await then("guide.md")
    history = await documents.read_history(db, id)
    assert [Path(version.url).name for version in history.versions] == [
        *("guide.md", "manual.md", "Manual.md", "Manual.md", "Manual.txt", "guide.md")
    ]

    (root / "guide.md").rename(root / "café.md")
    await crawl_folder(db, source, root)
    (root / "café.md").rename(root / unicodedata.normalize("NFD", "café.md"))
    (root / unicodedata.normalize("NFD", "café.md")).write_text("nothing that it said before")
    await crawl_folder(db, source, root)
    assert id in (await names(db, source)).values()


@on_both_databases
async def test_a_file_of_a_few_words_is_followed_by_its_inode_and_never_guessed(db: Database, tmp_path: Path) -> None:
    root = tmp_path / "docs"
    tiny = ("a", "first", "second", "here", "there", "linked", "old")
    write(root, page=TEXT, **dict.fromkeys(tiny, "the same few words"))
    os.link(root / "linked.md", root / "twin.md")
    (root / "old.md").write_text("an old tiny file")
    os.utime(root / "old.md", (-9, 1_600_000_000))
    source = await make_folder_source(db, root)
    await crawl_folder(db, source, root)
    before = await names(db, source)

    (root / "a.md").rename(root / "z.md")
    (root / "old.md").rename(root / "older.md")
    (root / "first.md").rename(root / "one.md")  # both at once, with the same text
    (root / "second.md").rename(root / "two.md")
    (root / "here.md").rename(root / "swap.md")
    (root / "there.md").rename(root / "here.md")
    (root / "swap.md").rename(root / "there.md")
    (root / "linked.md").rename(root / "either.md")  # which of them is which?
    (root / "twin.md").rename(root / "or.md")
    job = await crawl_folder(db, source, root)
    after = await names(db, source)
    renamed = {"a.md": "z.md", "old.md": "older.md", "first.md": "one.md", "second.md": "two.md"}
    stayed = {"page.md": "page.md", "here.md": "here.md", "there.md": "there.md"}
    assert {old: after[new] for old, new in (renamed | stayed).items()} == {
        old: before[old] for old in renamed | stayed
    }
    assert not {after["either.md"], after["or.md"]} & set(before.values()), "a guess"
    assert job.progress.tally.moved == len(renamed)

    inode = (root / "z.md").stat().st_ino
    with (root / "z.md").open("w") as file:  # another file may get the inode of one that was deleted
        file.write("other words now!!!")
    os.utime(root / "z.md", (1_600_000_000, 1_600_000_000))
    (root / "z.md").rename(root / "y.md")
    assert (root / "y.md").stat().st_ino == inode
    await crawl_folder(db, source, root)
    assert (await names(db, source))["y.md"] not in set(before.values())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_databases
async def test_no_text_is_read_again_of_files_that_only_moved(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "docs"
    write(root, **{f"old__{number}": f"{TEXT} number {number}" for number in range(9)}, old__edited=TEXT * 3)
    source = await make_folder_source(db, root)
    await crawl_folder(db, source, root)
    before = await names(db, source)
    (root / "old").rename(root / "new")
    write(root, new__edited=TEXT * 3 + "An edit.")
    texts, text = [], contents.get_markdown

    async def counted(db: Connection, id: int) -> str:
        texts.append(id)
        return await text(db, id)

    monkeypatch.setattr(contents, "get_markdown", counted)
    await crawl_folder(db, source, root)
    assert await names(db, source) == {path.replace("old/", "new/"): id for path, id in before.items()}
    assert len(texts) == 2, "of the one that was edited, before and after"


@on_both_databases
async def test_an_unreadable_file_is_not_gone_and_a_swapped_or_emptied_root_fails_the_crawl(
    db: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "docs"
    write(root, **{f"{letter}__{number}": f"{TEXT}{letter}{number}" for letter in "abc" for number in range(5)})
    source = await make_folder_source(db, root)
    await crawl_folder(db, source, root)
    before = await shown(db, source)
    assert len(before) == 15

    async def fails(why: str) -> None:
        job = await crawl_folder(db, source, root)
        assert job.status is JobStatus.FAILED
        assert why in (job.error or "")
        assert await shown(db, source) == before

    root.rename(tmp_path / "elsewhere")
    await fails("There is no file or folder")
    root.mkdir()  # a mount point without its mount
    await fails("is empty, where 15 documents were")
    write(root, other="another folder " * 9, one__more="than before " * 9)
    await fails("is another folder than before, and 15 of 15 documents are not there")
    shutil.rmtree(root)
    shutil.copytree(tmp_path / "elsewhere", root)  # made anew, as a build does
    assert (await crawl_folder(db, source, root)).status is JobStatus.COMPLETED
    assert await shown(db, source) == before

    scandir = os.scandir

    def refusing(folder: str) -> Iterator[os.DirEntry[str]]:  # not even root may look into it
        if str(folder).rstrip("/").endswith("docs/a"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", refusing)
    (root / "b" / "1.md").write_text("another text that cannot be read " * 9)
    (root / "b" / "2.md").unlink()
    job = await crawl_folder(db, source, root, locked=frozenset({str(root / "b" / "1.md")}))
    assert (job.status, job.progress.tally.failed, job.progress.tally.gone) == (JobStatus.COMPLETED, 6, 1)
    assert await shown(db, source) == {url: one for url, one in before.items() if not url.endswith("b/2.md")}
    monkeypatch.undo()
    await crawl_folder(db, source, root)
    assert (await shown(db, source)).keys() == before.keys() - {file_url(str(root / "b" / "2.md"))}


async def read_with_companions(body: bytes, content_type: str, url: str, **options: Companions) -> ParsedPage:
    page = parse_page(body, content_type=content_type, url=url, **options)
    assert isinstance(page, ParsedPage)
    return page


@on_both_databases
async def test_a_page_is_read_again_when_a_file_that_it_includes_or_refers_to_changes(
    db: Database, tmp_path: Path
) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "guide.rst").write_text("Guide\n=====\n\n.. literalinclude:: tide.py\n\nSee :ref:`high`.\n")
    (root / "tide.py").write_text("high = 4\n")
    (root / "other.rst").write_text("Other\n=====\n\n.. _high:\n\nHigh water\n----------\n\nText.\n")
    source = await make_folder_source(db, root)

    async def tally() -> tuple[int, int, int]:
        for path in root.iterdir():
            os.utime(path, (1_600_000_000, 1_600_000_000))  # else they are too fresh for a validator
        counts = (await crawl_folder(db, source, root, read=read_with_companions)).progress.tally
        return counts.new, counts.changed, counts.unchanged

    assert await tally() == (2, 0, 0)
    assert await tally() == (0, 0, 2)
    (root / "tide.py").write_text("high = 5\n")
    assert await tally() == (0, 1, 1)
    (root / "other.rst").write_text("Other\n=====\n\n.. _high:\n\nHighest water\n-------------\n\nText.\n")
    assert await tally() == (0, 2, 0)
    (root / "tide.py").unlink()
    assert await tally() == (0, 1, 1)


@on_both_databases
async def test_a_marker_identifies_a_folder_wherever_it_is(db: Database, tmp_path: Path) -> None:
    root = tmp_path / "docs"
    write(root, one=TEXT + "one", two=TEXT + "two", three=TEXT + "three")
    (root / ROOT_MARKER).write_text("these are the documents")
    source = await make_folder_source(db, root)
    await crawl_folder(db, source, root)
    shutil.rmtree(root)
    write(root, other=TEXT + "something else")
    assert (await crawl_folder(db, source, root)).status is JobStatus.FAILED
    (root / ROOT_MARKER).write_text("these are the documents")
    assert (await crawl_folder(db, source, root)).held, "it is the same folder: now the brake asks a person"


@on_both_databases
async def test_pipes_devices_and_outside_links_are_neither_opened_nor_followed(db: Database, tmp_path: Path) -> None:
    root, outside = tmp_path / "docs", tmp_path / "outside"
    write(outside, secret=TEXT)
    write(root, page=TEXT, sub__other=TEXT + "other")
    os.mkfifo(root / "pipe.md")
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(root / "socket.md"))
    (root / "loop").symlink_to(root)
    (root / "loop.md").symlink_to("loop.md")
    (root / "escape.md").symlink_to(outside / "secret.md")
    (root / "outside").symlink_to(outside)
    (root / "inside.md").symlink_to("page.md")
    (root / "device.md").symlink_to("/dev/zero")
    os.link(root / "page.md", root / "hard.md")
    with (root / "sparse.md").open("wb") as sparse:
        sparse.truncate(10 * 1024**3)
    (Path(os.fsdecode(os.fsencode(root) + b"/not\xff-utf8.md"))).write_text(TEXT + "odd")
    source = await make_folder_source(db, root)
    job = await crawl_folder(db, source, root)
    assert job.status is JobStatus.COMPLETED
    found = await names(db, source)
    assert set(found) == {"page.md", "sub/other.md", "inside.md", "hard.md", "not%FF-utf8.md"}
    assert job.progress.tally.skipped == 1, "what is too large"
    page = await documents.read_document(db, os.fsdecode(os.fsencode(root) + b"/not\xff-utf8.md"))
    assert page.markdown.strip() == (TEXT + "odd").strip()


def test_a_link_that_replaces_a_file_before_it_is_read_is_refused(tmp_path: Path) -> None:
    write(tmp_path, outside=TEXT, docs__sub__page=TEXT)
    root = tmp_path / "docs"
    origin = FolderOrigin(file_url(str(root)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    (listed,) = origin._list_files()
    assert isinstance(listed, ListedUrl)
    shutil.rmtree(root / "sub")
    write(tmp_path, elsewhere__page=TEXT)
    (root / "sub").symlink_to(tmp_path / "elsewhere")
    assert origin._read_file(file_path(listed.url)) == Refused(reason="leads out of the source's folder")


def test_a_recently_written_file_is_read_again_because_its_mtime_is_too_coarse(
    tmp_path: Path,
) -> None:
    write(tmp_path, page=TEXT)
    origin = FolderOrigin(file_url(str(tmp_path)), scope=Scope(), limits=Limits(), type_of=guess_content_type)
    for seconds_ago, is_known in ((0, False), (60, True)):
        os.utime(tmp_path / "page.md", (0, time.time() - seconds_ago))
        (listed,) = origin._list_files()
        assert isinstance(listed, ListedUrl)
        fetched = origin._read_file(file_path(listed.url))
        assert isinstance(fetched, Fetched)
        assert (fetched.validators.etag == listed.etag) is is_known


@on_both_databases
async def test_a_zip_file_is_read_like_a_folder_and_nothing_leaves_it(db: Database, tmp_path: Path) -> None:
    archive = tmp_path / "docs.zip"
    with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as zipped:
        zipped.writestr("guide/start.md", TEXT)
        zipped.writestr("../../escape.md", "out")
        zipped.writestr("/absolute.md", "out")
        zipped.writestr("bomb.md", b"\0" * (30 * 1024 * 1024))
        zipped.writestr("picture.png", b"\x89PNG")
        zipped.writestr(".hidden/page.md", "hidden")
    assert is_zip_root(file_url(str(archive)))
    source = await make_folder_source(db, archive)
    job = await crawl_folder(db, source, archive)
    assert job.status is JobStatus.COMPLETED
    assert set(await names(db, source)) == {"guide/start.md"}
    assert job.progress.tally.skipped == 1
    (id,) = (await names(db, source)).values()
    with zipfile.ZipFile(archive, "w") as zipped:
        zipped.writestr("handbook/start.md", TEXT + "And a little more of it.")
    job = await crawl_folder(db, source, archive)
    assert (await names(db, source)) == {"handbook/start.md": id}
    archive.write_bytes(b"PK" + struct.pack("<20I", *range(20)))
    job = await crawl_folder(db, source, archive)
    assert (job.status, len(await names(db, source))) == (JobStatus.FAILED, 1)


@on_both_databases
async def test_after_any_file_operations_identities_states_and_history_are_those_of_the_model(
    db: Database, tmp_path: Path
) -> None:
    chance = random.Random(os.environ["KEPT_TEST_SEED"])
    folders = Folders(db, await make_folder_source(db, tmp_path / "docs"), tmp_path / "docs", chance)
    await folders.run(120)
    assert folders.crawls >= 5
