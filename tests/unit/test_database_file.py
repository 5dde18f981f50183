"""A SQLite file that is deleted, replaced or truncated while it is open, and the log beside it."""

import asyncio
import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from kept.errors import StoreError, StoreUnreachable
from kept.maintenance.backup import back_up, restore
from kept.service import export
from kept.store import sources
from kept.store import sqlite as sqlite_module
from kept.store.database import Database, open_database
from tests.contract.databases import async_test
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source


async def names(db: Database) -> list[str]:
    async with db.snapshot() as snapshot:
        return sorted(source.name for source in await sources.all(snapshot))


@async_test
async def test_a_deleted_database_is_noticed_by_readers_and_writers_and_a_restored_one_is_used(tmp_path: Path) -> None:
    file, url = tmp_path / "kept.db", f"sqlite:///{tmp_path}/kept.db"
    async with database_at(url) as db:
        await make_source(db, "first")
        await asyncio.to_thread(back_up, url, tmp_path / "backup.db")
        await make_source(db, "second", root="https://second.test/")
        file.unlink()
        with pytest.raises(StoreUnreachable, match="deleted"):
            await names(db)
        with pytest.raises(StoreUnreachable, match="deleted"):
            await make_source(db, "third", root="https://third.test/")
        assert not file.exists(), "nothing made an empty one in its place"
        await asyncio.to_thread(restore, url, tmp_path / "backup.db")
        assert await names(db) == ["first"]
        await make_source(db, "third", root="https://third.test/")
    async with database_at(url) as db:
        assert await names(db) == ["first", "third"]


@pytest.mark.parametrize("replaced", [False, True])
@async_test
async def test_nothing_is_committed_into_a_deleted_file(tmp_path: Path, replaced: bool) -> None:
    file, url = tmp_path / "kept.db", f"sqlite:///{tmp_path}/kept.db"
    async with database_at(url) as db:
        source = await make_source(db, "first")
        await asyncio.to_thread(back_up, url, tmp_path / "backup.db")

        async def write_while_the_file_is_deleted() -> None:
            async with db.transaction() as tx:
                await sources.pause_schedule(tx, source.id)
                file.unlink()
                if replaced:
                    shutil.copy(tmp_path / "backup.db", file)

        with pytest.raises(StoreUnreachable, match="replaced" if replaced else "deleted"):
            await write_while_the_file_is_deleted()


KILLED_WHILE_IT_MADE_THE_DATABASE = """
import os, sys, apsw
made = apsw.Connection(sys.argv[1])
made.execute("PRAGMA cache_size = 1; BEGIN; CREATE TABLE t (x)")
for _ in range(200):
    made.execute("INSERT INTO t VALUES (zeroblob(3000))")
os._exit(9)
"""


@async_test
async def test_a_file_whose_making_was_interrupted_is_made_again(tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    await asyncio.to_thread(subprocess.run, [sys.executable, "-c", KILLED_WHILE_IT_MADE_THE_DATABASE, str(file)])
    assert file.stat().st_size > 100_000, "written, and not committed: opening it makes it shorter"
    async with database_at(f"sqlite:///{file}") as db:
        await make_source(db, "first")
        assert await names(db) == ["first"]


@async_test
async def test_a_crawl_does_not_succeed_into_a_deleted_file(tmp_path: Path) -> None:
    file, url = tmp_path / "kept.db", f"sqlite:///{tmp_path}/kept.db"

    class DeletingSite(Site):
        async def close(self) -> None:
            file.unlink(missing_ok=True)

        async def visit(self, entry, *, conditional):  # type: ignore[no-untyped-def]
            file.unlink(missing_ok=True)
            return await super().visit(entry, conditional=conditional)

    async with database_at(url) as db:
        source = await make_source(db)
        with pytest.raises(StoreError):
            await crawl(db, source, DeletingSite({ROOT: Page("root")}))


@async_test
async def test_a_replaced_database_of_another_schema_is_not_written_to(tmp_path: Path) -> None:
    file = tmp_path / "kept.db"
    async with database_at(f"sqlite:///{file}") as db:
        await make_source(db, "first")
        (tmp_path / "empty").touch()
        os.replace(tmp_path / "empty", file)
        with pytest.raises(StoreUnreachable, match="replaced by"):
            await names(db)
        with pytest.raises(StoreUnreachable, match="replaced by"):
            await make_source(db, "second")


@async_test
async def test_a_database_truncated_while_it_is_open_is_noticed(tmp_path: Path) -> None:
    file, url = tmp_path / "kept.db", f"sqlite:///{tmp_path}/kept.db"
    async with database_at(url) as db:
        await make_source(db, "first")
        await asyncio.to_thread(back_up, url, tmp_path / "backup.db")
    db = await open_database(url)
    try:
        assert await names(db) == ["first"]
        os.truncate(file, file.stat().st_size // 2)
        with pytest.raises(StoreError, match="truncated"):
            await names(db)
        await asyncio.to_thread(restore, url, tmp_path / "backup.db")
        assert await names(db) == ["first"]
    finally:
        await db.close()


@async_test
async def test_the_log_is_folded_into_the_file_when_the_work_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite_module, "IDLE_SECONDS", 0.2)
    log = tmp_path / "kept.db-wal"
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        source = await make_source(db)
        pages = {f"{ROOT}{number}": Page(os.urandom(3000).hex()) for number in range(150)}
        await crawl(db, source, Site({ROOT: Page("root", links=tuple(pages)), **pages}))
        async with asyncio.timeout(10):
            while log.stat().st_size > sqlite_module.IDLE_WAL_BYTES:
                async with db.transaction():  # as of a worker that looks for jobs: nothing is written
                    await asyncio.sleep(0.02)
        assert len(await names(db)) == 1


@async_test
async def test_what_kept_creates_is_for_its_owner_only_whatever_the_umask(tmp_path: Path) -> None:
    umask = os.umask(0)
    try:
        file = tmp_path / "data" / "kept" / "kept.db"
        async with database_at(f"sqlite:///{file}") as db:
            source = await make_source(db)
            await crawl(db, source, Site({ROOT: Page("root")}))
            await export.export(db, str(tmp_path / "out" / "mirror"), [], cache=tmp_path / "cache" / "kept")
            await export.export(db, str(tmp_path / "out" / "tree"), [], tree=True)
            back_up(f"sqlite:///{file}", tmp_path / "backup.db")
            restore(f"sqlite:///{file}", tmp_path / "backup.db")
            modes = {path: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    finally:
        os.umask(umask)
    created = {path.name for path in modes}
    assert {"kept.db", "kept.db-wal", "kept.db-shm", "backup.db", "manifest.json", "content.md"} <= created
    assert [str(path) for path, mode in modes.items() if mode & 0o077] == []


@async_test
async def test_an_export_that_its_owner_opened_to_others_stays_open(tmp_path: Path) -> None:
    async with database_at(f"sqlite:///{tmp_path}/kept.db") as db:
        source = await make_source(db)
        await crawl(db, source, Site({ROOT: Page("root")}))
        await export.export(db, str(tmp_path / "mirror"), [])
        (tmp_path / "mirror").chmod(0o755)
        await export.export(db, str(tmp_path / "mirror"), [])
    assert stat.S_IMODE((tmp_path / "mirror").stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / "mirror" / "manifest.json").stat().st_mode) == 0o644
