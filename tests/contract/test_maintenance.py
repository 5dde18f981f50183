"""Maintenance: garbage collection has a dry run, and the check finds inconsistencies."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest

from kept.extract.sections import compute_content_hash
from kept.maintenance import gc
from kept.maintenance.check import check_integrity
from kept.maintenance.gc import GarbageItem, GcReport, Retention, collect, collect_if_due, find_garbage
from kept.maintenance.local_cleanup import record_export_folder
from kept.service import export, sources
from kept.store.database import Database
from tests.contract.databases import count_rows, on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source

SHORT = Retention(generations=2, younger_than=timedelta(0), jobs=2)


async def make_history(db: Database) -> None:
    """Create a source that changed five times and lost a page early, and one that was removed."""
    source = await make_source(db)
    for number in range(6):
        others = {ROOT + name: Page(f"{name} says {number} " * 9) for name in ("a", "b")}
        early = {ROOT + "early": Page("said early " * 9)} if number < 2 else {ROOT + "early": Page(gone=True)}
        pages = {ROOT: Page("root", links=(*others, ROOT + "early")), **others, **early}
        await crawl(db, source, Site(pages))
    gone = await make_source(db, "gone", root="https://gone.test/")
    await crawl(db, gone, Site({gone.root: Page("words stood here " * 9)}, root=gone.root))
    await sources.remove_source(db, "gone")


def counted(found: list[GarbageItem], what: str) -> int:
    return sum(one.count for one in found if one.what == what and one.where != "a removed source")


@on_both_databases
async def test_a_dry_run_says_what_goes_and_then_it_goes(db: Database, tmp_path: Path) -> None:
    await make_history(db)
    cache, folder = tmp_path / "cache", tmp_path / "mirror"
    await export.export(db, str(folder), [], cache=cache)
    (tmp_path / ".mirror.kept-staging-999999999-ab").mkdir()
    record_export_folder(cache, tmp_path / "elsewhere")

    found = await find_garbage(db, SHORT, cache=cache)
    assert await find_garbage(db, SHORT, cache=cache) == found
    done = await collect(db, SHORT, cache=cache)
    assert (done.generations, done.versions, done.documents, done.jobs) == (4, 9, 1, 4)
    for what in ("generations", "versions", "documents", "contents", "entries", "jobs", "folders"):
        assert counted(found, what) == getattr(done, what), what
    assert done.sources == 1
    assert all(one.why for one in found)
    assert await find_garbage(db, SHORT, cache=cache) == []
    assert not any(vars_of(await collect(db, SHORT, cache=cache)))
    assert sorted(path.name for path in tmp_path.iterdir() if "mirror" in path.name) == ["mirror"]
    assert await check_integrity(db, compute_content_hash) == []


def vars_of(done: object) -> list[int]:
    return [getattr(done, name) for name in type(done).__slots__]  # type: ignore[attr-defined]


DAMAGE = {
    "is in the full text": {
        "sqlite": "DELETE FROM section_words WHERE rowid = (SELECT max(id) FROM sections)",
        "postgres": "UPDATE sections SET words = '' WHERE id = (SELECT max(id) FROM sections)",
    },
    "counts the documents": "UPDATE generations SET documents = documents + 1 WHERE state = 'active'",
    "active documents are shown": "UPDATE documents SET lifecycle = 'active', since = NULL WHERE lifecycle = 'deleted'",
    "its hash stands for": "UPDATE contents SET title = 'another' WHERE id = (SELECT max(id) FROM contents)",
    "points at": "UPDATE generations SET state = 'retired' WHERE state = 'active'",
}


def test_of_many_processes_one_collects_for_all(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            await make_history(db)
            at_once = await asyncio.gather(*(collect_if_due(one, SHORT, every=600) for one in (db, other, db, other)))
            assert [one.sources for one in at_once if one != GcReport()] == [1]
            await sources.remove_source(db, "docs")
            assert await collect_if_due(other, SHORT, every=600) == GcReport()
            assert (await collect_if_due(other, SHORT, every=0)).sources == 1, "its time has come again"

    asyncio.run(scenario())


@on_both_databases
async def test_what_is_damaged_is_found_and_named(db: Database) -> None:
    await make_history(db)
    for rule, sql in DAMAGE.items():
        assert [one.rule for one in await check_integrity(db, compute_content_hash) if rule in one.rule] == []
        async with db.transaction() as tx:
            await run_sql(tx, sql if isinstance(sql, str) else sql[type(db).backend])  # type: ignore[attr-defined]
        (found,) = [one for one in await check_integrity(db, compute_content_hash) if rule in one.rule and one.found]
        assert found.advice


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_any_number_may_take_a_removed_source_away_at_once(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gc, "BATCH_SIZE", 2)

    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            source = await make_source(db)
            urls = [f"{ROOT}{number}" for number in range(20)]
            await crawl(db, source, Site({ROOT: Page("root", tuple(urls)), **{url: Page(url) for url in urls}}))
            await sources.remove_source(db, "docs")
            done = await asyncio.gather(*(collect(one, SHORT) for one in (db, other) * 2))
            assert sum(one.sources for one in done) == 1
            assert (await count_rows(db))["sources"] == 0

    asyncio.run(scenario())


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_looking_for_contents_that_nobody_needs_keeps_nobody_from_writing(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other, asyncio.timeout(5):
            await crawl(db, await make_source(db), Site({ROOT: Page("root")}))
            async with other.transaction() as tx:
                assert await gc._collect_contents(db) == 0
                await run_sql(tx, "UPDATE sources SET name = 'written'")

    asyncio.run(scenario())
