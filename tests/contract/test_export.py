"""An export can be imported without loss, from either database into the other."""

import asyncio
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kept.errors import InvalidInput, NotFound
from kept.extract.sections import SectionNode, SectionRules, build_content, compute_content_hash
from kept.maintenance.import_ import ImportReport
from kept.model.document import Content
from kept.service import documents, export
from kept.store.database import Database
from tests.contract.databases import async_test
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, shown
from tests.postgres import PostgresServer

LONG = "word " * 40


async def read(text: str, url: str) -> Content:
    return build_content("", text, SectionNode(content=text), SectionRules())


async def take(db: Database, folder: Path) -> ImportReport:
    return await export.import_(db, str(folder), read=read, hash_content=compute_content_hash)


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


async def make_history(db: Database) -> None:
    """Create two sources with all kinds of history: changes, moves, failures, losses, shared contents, odd names."""
    source = await make_source(db)
    start = {ROOT + "a": Page(LONG + "a"), ROOT + "b": Page(LONG + "b", tag='"1"'), ROOT + "c": Page("short")}
    start |= {ROOT + f"more/{number}": Page(f"{LONG} {number}") for number in range(30)}
    pages = {ROOT: Page("the root", links=tuple(start)), **start}
    await crawl(db, source, Site(pages))
    pages |= {ROOT + "a": Page(LONG + "other"), ROOT + "b": Page(redirect=ROOT + "moved/b")}
    pages |= {ROOT + "moved/b": Page(LONG + "b"), ROOT + "c": Page(gone=True), ROOT + "more/1": Page(error="no")}
    await crawl(db, source, Site(pages))
    other = await make_source(db, "other", root="https://other.test/")
    await crawl(db, other, Site({"https://other.test/": Page(LONG + "b")}, root="https://other.test/"))
    await crawl(db, source, Site(pages))


def other_kind(url: str, server: PostgresServer, folder: Path) -> str:
    return server.create_database() if url.startswith("sqlite") else f"sqlite:///{folder}/other.db"


@async_test
async def test_an_export_taken_back_by_the_other_database_is_exported_the_same(
    database_url: str, postgres_server: PostgresServer, tmp_path: Path
) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    async with (
        database_at(database_url) as db,
        database_at(other_kind(database_url, postgres_server, tmp_path)) as other,
    ):
        await make_history(db)
        done = await export.export(db, str(one), [])
        assert (done.sources, done.documents, done.linked) == (2, 34, 0)
        imported = await take(other, one)
        assert (imported.documents, imported.unread) == (35, [])
        await export.export(other, str(two), [])
        assert files(one) == files(two)
        manifest = json.loads((one / "manifest.json").read_text())
        entry = manifest["files"][ROOT + "a"]
        assert {"doc_id", "content_hash", "status", "last_seen", "retry_count", "versions"} <= entry.keys()
        assert [version["version_id"] for version in entry["versions"]] == [1, 2]
        assert (one / "documents" / entry["doc_id"] / "content.md").read_text() == LONG + "other"
        assert (one / "documents" / entry["doc_id"] / "versions" / "1" / "content.md").read_text() == LONG + "a"
        assert manifest["files"][ROOT + "c"]["status"] == "deleted"
        assert (
            manifest["files"][ROOT + "more/1"] | {"status": "error", "retry_count": 2}
            == manifest["files"][ROOT + "more/1"]
        )
        lost = one / "documents" / manifest["files"][ROOT + "c"]["doc_id"]
        assert [str(path.relative_to(lost)) for path in lost.rglob("*.md")] == ["versions/1/content.md"]

        page = await documents.read_document(other, ROOT + "a", generation=1)
        assert page.markdown == LONG + "a"
        source = imported.sources[0]
        after = await crawl(other, source, Site({ROOT: Page("the root", links=(ROOT + "a",)), ROOT + "a": Page(LONG)}))
        assert after.held, "the brake knows how much was there"
        with pytest.raises(InvalidInput, match="is kept already"):
            await take(other, one)


@async_test
async def test_the_next_export_writes_only_what_changed_and_repairs_what_was_touched(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        await make_history(db)
        first = await export.export(db, str(folder), ["docs"])
        before = files(folder)
        again = await export.export(db, str(folder), ["docs"])
        assert (again.written, again.linked) == (0, first.written)
        touched = next(folder.glob("documents/*/content.md"))
        touched.write_text("scribbled over")
        repaired = await export.export(db, str(folder), ["docs"])
        assert repaired.written == 1
        assert files(folder) == before
        with pytest.raises(NotFound):
            await export.export(db, str(folder), ["nothing"])
        (tmp_path / "home").mkdir()
        (tmp_path / "home" / "precious.txt").write_text("mine")
        with pytest.raises(InvalidInput, match="neither empty nor an export"):
            await export.export(db, str(tmp_path / "home"), [])
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []


@async_test
async def test_what_was_edited_in_an_export_is_nobody_elses_content(tmp_path: Path) -> None:
    folder = tmp_path / "mirror"
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        await make_history(db)
        await export.export(db, str(folder), ["other"])
    (edited,) = folder.glob("documents/*/content.md")
    honest = json.loads(edited.with_name("version.json").read_text())["content_hash"]
    edited.write_text("something else")
    async with database_at(f"sqlite:///{tmp_path}/new.db") as db:
        imported = await take(db, folder)
        ((_, hash),) = (await shown(db, imported.sources[0])).values()
        assert hash != honest


@async_test
async def test_a_tree_is_for_reading_and_has_a_place_for_every_document(tmp_path: Path) -> None:
    folder = tmp_path / "tree"
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        await make_history(db)
        done = await export.export(db, str(folder), [], tree=True)
        found = files(folder)
        assert len(found) == done.documents + 1
        assert found["docs/index.md"] == b"the root"
        assert found["docs/moved/b.md"] == (LONG + "b").encode()
        again = await export.export(db, str(folder), [], tree=True)
        assert (again.written, again.linked) == (0, done.written)
        assert files(folder) == found
        with pytest.raises(InvalidInput, match="--tree"):
            await take(db, folder)


@async_test
async def test_a_manifest_of_before_is_backed_up_upgraded_and_imported(database_url: str, tmp_path: Path) -> None:
    old = {
        "files": {
            "/srv/docs/a.md": {"doc_id": "abc", "hash": "12"},
            "/srv/docs/b/c.md": {"doc_id": "def", "hash": "34"},
        }
    }
    old["files"]["/srv/docs/gone.md"] = {"doc_id": "ghi", "hash": "56"}
    (tmp_path / "manifest.json").write_text(json.dumps(old))
    for id in ("abc", "def"):
        (tmp_path / "documents" / id).mkdir(parents=True)
        (tmp_path / "documents" / id / "content.md").write_text(f"# About {id}\n")
    async with database_at(database_url) as db:
        done = await take(db, tmp_path / "manifest.json")
        assert (done.documents, done.unread) == (2, ["/srv/docs/gone.md"])
        (source,) = done.sources
        assert (source.label, source.root) == ("docs", "file:///srv/docs")
        assert set(await shown(db, source)) == {"file:///srv/docs/a.md", "file:///srv/docs/b/c.md"}
    assert json.loads((tmp_path / "manifest.json.bak").read_text()) == old
    upgraded = json.loads((tmp_path / "manifest.json").read_text())["files"]["/srv/docs/a.md"]
    assert upgraded.items() >= {"doc_id": "abc", "content_hash": "12", "status": "active", "retry_count": 0}.items()
    assert upgraded["last_seen"]


EXPORTING = """
import asyncio, sys
from kept.store.database import open_database
from kept.service import export
async def main():
    db = await open_database(sys.argv[1])
    print("ready", flush=True)
    while True:
        for labels in (["docs"], ["other"]):
            await export.export(db, sys.argv[2], labels)
asyncio.run(main())
"""


def export_until(url: str, folder: Path, seconds: float) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", EXPORTING, url, str(folder)],
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    time.sleep(seconds)
    process.kill()
    process.wait()


@async_test
async def test_an_export_killed_at_any_moment_leaves_the_old_tree_or_the_new_one(tmp_path: Path) -> None:
    folder, url = tmp_path / "mirror", f"sqlite:///{tmp_path}/kept.db"
    async with database_at(url) as db:
        await make_history(db)
        trees = []
        for label in ("docs", "other"):
            await export.export(db, str(folder), [label])
            trees.append(files(folder))
    for attempt in range(3):
        await asyncio.to_thread(export_until, url, folder, 0.03 + 0.017 * attempt)  # chance is the point
        assert files(folder) in trees
    async with database_at(url) as db:
        await export.export(db, str(folder), [])
    assert [path.name for path in tmp_path.iterdir() if "kept-staging" in path.name] == []
