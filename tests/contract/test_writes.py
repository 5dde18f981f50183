"""The number of written rows depends on the changes, not on the size of the source."""

import os
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from itertools import islice
from pathlib import Path
from typing import Any

import apsw
import pytest

from kept.crawl import engine
from kept.crawl.activate import ActivationResult, activate
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.model.generation import Tally
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.model.source import Source, SourceKind
from kept.model.url import file_path, file_url
from kept.origins.folder import FolderOrigin
from kept.store.database import Connection, Database
from kept.store.postgres import PostgresConnection
from kept.store.sqlite import SqliteConnection
from tests.contract.databases import count_rows, on_both_databases, run_sql
from tests.factories import make_source, read_scripted, shown

FILES = 5_000
KEPT = ("documents", "versions", "contents", "sections")
LONG_AGO = time.time() - 1_000_000


# Counting ------------------------------------------------------------------------------------------------------


class Watched:
    """A database that counts the rows every transaction inserts, updates and deletes: table -> how many."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self.written: Counter[str] = Counter()

    @asynccontextmanager
    async def transaction(self, *, durable: bool = False) -> AsyncIterator[Connection]:
        async with self._db.transaction(durable=durable) as tx:
            if isinstance(tx, SqliteConnection):
                await tx.thread.run(self._listen)
                yield tx
                await tx.thread.run(lambda connection: connection.preupdate_hook(None, id=id(self)))
            else:
                before = await _counted(tx)
                yield tx
                self.written += await _counted(tx) - before

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator[Connection]:
        async with self._db.snapshot() as snapshot:
            yield snapshot

    async def close(self) -> None:
        await self._db.close()

    def _listen(self, connection: apsw.Connection) -> None:
        # Unlike the update hook this one also sees tables WITHOUT ROWID.
        def count(update: Any) -> None:
            self.written[update.table_name] += 1

        connection.preupdate_hook(count, id=id(self))


async def _counted(tx: Connection) -> Counter[str]:
    """Return PostgreSQL's counters for this session, including this transaction, without delay."""
    rows = await run_sql(tx, "SELECT relname, n_tup_ins + n_tup_upd + n_tup_del FROM pg_stat_xact_user_tables")
    return Counter(dict(rows))


@pytest.fixture
def activations(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Counter[str]]]:
    """Record the rows that every activation writes, in its own transaction."""
    counted: list[Counter[str]] = []

    async def watched(db: Database, *arguments: Any, **others: Any) -> ActivationResult | None:
        watch = Watched(db)
        activation = await activate(watch, *arguments, **others)
        counted.append(watch.written)
        return activation

    monkeypatch.setattr(engine.activate, "activate", watched)
    return counted


# Folders -------------------------------------------------------------------------------------------------------


def make_folder(path: Path, files: int) -> Path:
    for number in range(files):
        if number % 100 == 0:
            (path / f"{number // 100:02}").mkdir(parents=True)
        text = f"File {number} says something that no other file says, and enough of it to know it again."
        write(path / f"{number // 100:02}" / f"{number:04}.md", text)
    return path


def write(file: Path, text: str) -> None:
    """Write a file with an old modification time, which a crawl trusts."""
    with open(file, "w") as opened:
        opened.write(text)
        opened.flush()
        os.utime(opened.fileno(), (LONG_AGO, LONG_AGO))


@pytest.fixture(scope="module")
def large_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create thousands of files once; every test may change some of them."""
    return make_folder(tmp_path_factory.mktemp("large"), FILES)


async def keep(db: Database, source: Source, mode: CrawlMode = CrawlMode.REFRESH) -> CrawlJob:
    """Crawl a real folder."""
    job = await queue.enqueue(db, source.id, mode=mode)

    def make_run(lease: Lease, claimed: Source) -> CrawlRun:
        settings = claimed.settings
        origin = FolderOrigin(
            claimed.root, scope=settings.scope, limits=settings.limits, type_of=lambda path: "text/plain"
        )
        return CrawlRun(db, lease, claimed, origin, read=read_scripted, signature="1", rules=LifecycleRules())

    done = await claim_and_run(db, job.id, make_run)
    assert done is not None
    assert (done.status, done.held) == (JobStatus.COMPLETED, False)
    return done


async def make_folder_source(db: Database, path: Path) -> Source:
    source = await make_source(db, root=file_url(path), kind=SourceKind.FOLDER)
    await keep(db, source)
    return source


# The promises --------------------------------------------------------------------------------------------------


@on_both_databases
async def test_a_large_source_costs_what_changes_in_it(
    db: Database, large_folder: Path, activations: list[Counter[str]]
) -> None:
    """A first crawl, a refresh with nothing to do, and one with ten changes."""
    source = await make_folder_source(db, large_folder)
    files = await shown(db, source)
    assert len(files) > FILES - 10
    assert sum(activations.pop().values()) <= 5, "a first generation of any size: source, generation, job"

    before = await count_rows(db)
    watch = Watched(db)
    done = await keep(watch, source)
    assert (done.progress.tally, done.progress.bytes) == (Tally(unchanged=len(files)), 0)
    assert watch.written["crawl_jobs"] > 0, "the counting works"
    assert watch.written["frontier"] == 0, "an unchanged file leaves no entry"
    assert [table for table in watch.written if is_kept(table)] == []
    assert sum(activations.pop().values()) <= 5
    after = await count_rows(db)
    assert [after[table] for table in KEPT] == [before[table] for table in KEPT]

    first, *others = map(Path, map(file_path, islice(files, 9)))
    for file in others[:4]:
        write(file, f"{file} has changed and says something else than it ever said before: {new_id()}.")
    for file in others[4:]:
        file.unlink()
    first.rename(large_folder / f"moved from {first.name}")
    write(large_folder / f"after {first.name}", f"The file after {first} is one that nobody knows yet.")
    done = await keep(db, source)
    assert done.progress.tally == Tally(new=1, changed=4, moved=1, gone=4, unchanged=len(files) - 9)
    touched = activations.pop()
    assert 10 < sum(touched.values()) < 60, touched
    assert touched["versions"] <= 20
    assert len(await shown(db, source)) == len(files) - 3


@on_both_databases
async def test_a_full_crawl_that_reads_every_file_again_and_finds_it_the_same_costs_no_row(
    db: Database, tmp_path: Path
) -> None:
    source = await make_folder_source(db, make_folder(tmp_path / "docs", 150))
    watch = Watched(db)
    done = await keep(watch, source, CrawlMode.FULL)
    assert done.progress.tally == Tally(unchanged=150)
    assert done.progress.bytes > 0
    assert [table for table in watch.written if is_kept(table)] == []


@on_both_databases
async def test_the_first_activation_touches_as_many_rows_for_one_file_as_for_hundreds(
    db: Database, tmp_path: Path, activations: list[Counter[str]]
) -> None:
    for files in (1, 200):
        source = await make_source(
            db, f"docs-{files}", root=file_url(make_folder(tmp_path / str(files), files)), kind=SourceKind.FOLDER
        )
        await keep(db, source)
    small, large = activations
    assert small == large
    assert sum(small.values()) <= 5


@on_both_databases
async def test_a_file_that_was_only_touched_costs_its_validators(
    db: Database, tmp_path: Path, activations: list[Counter[str]]
) -> None:
    source = await make_folder_source(db, make_folder(tmp_path / "docs", 100))
    for number in range(3):
        os.utime(tmp_path / "docs" / "00" / f"{number:04}.md", (LONG_AGO + 60, LONG_AGO + 60))
    watch = Watched(db)
    done = await keep(watch, source)
    assert done.progress.tally == Tally(unchanged=100)
    assert {table: count for table, count in watch.written.items() if is_kept(table)} == {"versions": 3}
    assert activations[-1]["versions"] == 3, "activation carries them over"
    again = Watched(db)
    assert (await keep(again, source)).progress.bytes == 0
    assert again.written["versions"] == 0


@on_both_databases
async def test_a_file_written_a_moment_ago_is_compared_by_its_bytes_and_costs_no_row(
    db: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "fresh.md").write_text("Written so recently that its time tells nothing.")
    source = await make_source(db, root=file_url(folder), kind=SourceKind.FOLDER)
    await keep(db, source)
    watch = Watched(db)
    done = await keep(watch, source)
    assert done.progress.tally == Tally(unchanged=1)
    assert done.progress.bytes > 0
    assert [table for table in watch.written if is_kept(table)] == []


@on_both_databases
async def test_the_counters_see_every_table(db: Database, tmp_path: Path) -> None:
    """Otherwise the other tests could not fail."""
    watch = Watched(db)
    await make_folder_source(watch, make_folder(tmp_path / "docs", 3))
    for table in (*KEPT, "frontier", "crawl_jobs", "job_workers", "generations", "sources"):
        assert watch.written[table] >= (3 if table in KEPT else 1), table
    async with watch.transaction() as tx:
        full_text = isinstance(tx, PostgresConnection) or watch.written["section_words_data"] > 0
    assert full_text


def is_kept(table: str) -> bool:
    """Return whether a table has documents, versions, contents, sections or their full text."""
    return table in KEPT or table.startswith("section_words")
