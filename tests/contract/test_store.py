"""The store, on both databases."""

import ast
import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import apsw
import psycopg
import pytest

import kept.store
from kept.crawl import abandon, activate, locks, settle, start
from kept.crawl.decide import NewContent, VisitResult
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import InvalidInput, KeptError, LeaseLost, NotFound, StoreTooNew, StoreUnreachable
from kept.jobs import queue
from kept.model.document import ParsedPage
from kept.model.frontier import DiscoveredUrl, Fetched, ListedUrl, ListingFailure, Outcome
from kept.model.generation import Tally
from kept.model.ids import new_id
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.store import contents, documents, frontier, jobs, sources, sqlite
from kept.store.database import Database, current_time, open_database
from kept.store.migrations import OLDEST_SCHEMA, fresh_schema, list_migrations
from kept.store.postgres import PostgresConnection, _statement
from kept.store.sqlite import SqliteConnection
from kept.store.statements import statements
from tests.contract.databases import count_rows, on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source, read_scripted, shown
from tests.postgres import PostgresServer

Refused = (apsw.ConstraintError, psycopg.errors.IntegrityError)
SQL = Path(kept.store.__file__).parent / "sql"
BACKENDS = ("sqlite", "postgres")


# Statements ----------------------------------------------------------------------------------------------------


def names_in(folder: str) -> list[str]:
    return [
        name for file in (SQL / folder).glob("*.sql") for name in re.findall(r"^-- name: (.*)$", file.read_text(), re.M)
    ]


def names_used() -> Iterator[tuple[str, str]]:
    """Return every statement that a module runs by name: (name, module)."""
    for file in SQL.parent.parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Attribute(attr="all" | "tuples" | "one" | "run" | "run_many"),
                    args=[ast.Constant(value=str(name)), *_],
                ):
                    yield name, str(file.relative_to(SQL.parent.parent))
                case ast.Call(
                    func=ast.Attribute(attr="all_then"),
                    args=[ast.Constant(value=str(name)), ast.Constant(value=str(then)), *_],
                ):
                    yield from ((one, str(file.relative_to(SQL.parent.parent))) for one in (name, then))


def bound(sql: str) -> set[str]:
    return set(re.findall(r"(?<!:):([a-z_]+)", re.sub(r"--.*|'[^']*'", "", sql)))


def test_both_backends_resolve_the_same_names_and_take_the_same_values() -> None:
    sqlite, postgres = statements("sqlite"), statements("postgres")
    assert sqlite.keys() == postgres.keys()
    # Full text is a column of the section on PostgreSQL and a table beside it on SQLite; each has its own language.
    differing = {name for name in sqlite if bound(sqlite[name]) != bound(postgres[name])}
    assert differing <= {"insert_section", "index_section", "search_sections_fts", "sample_sections"}


def test_a_name_stands_for_one_shared_statement_or_for_one_of_each_backend() -> None:
    found = {folder: names_in(folder) for folder in ("shared", *BACKENDS)}
    for folder, names in found.items():
        assert [name for name, times in Counter(names).items() if times > 1] == [], folder
        assert [name for name in names if not re.fullmatch(r"\w+", name)] == [], folder
    assert set(found["sqlite"]) == set(found["postgres"])
    assert set(found["shared"]) & set(found["sqlite"]) == set()


def test_every_statement_is_run_by_a_module_of_the_store_and_every_name_that_is_run_exists() -> None:
    known = set(statements("sqlite"))
    used = list(names_used())
    assert known - {name for name, _ in used} == set(), "unused statements"
    assert {name for name, _ in used} - known == set(), "these are in no file"
    assert {module for _, module in used if not module.startswith("store/")} == set(), "SQL is the store's business"


@on_both_databases
async def test_every_statement_can_be_prepared(db: Database) -> None:
    for name in statements("sqlite"):
        async with db.transaction() as tx:
            if isinstance(tx, SqliteConnection):
                sql = statements("sqlite")[name]
                await tx.thread.run(_explain, sql, dict.fromkeys(bound(sql)))
            elif isinstance(tx, PostgresConnection):
                sql = "EXPLAIN " + _statement(name)
                await tx._connection.execute(sql, dict.fromkeys(bound(statements("postgres")[name])))
    assert not any((await count_rows(db)).values())


def _explain(connection: apsw.Connection, sql: str, values: dict[str, None]) -> None:
    assert connection.execute(f"EXPLAIN {sql}", values).fetchall()


def test_both_backends_have_the_same_migrations() -> None:
    sqlite, postgres = ([(one.number, one.name) for one in list_migrations(backend)] for backend in BACKENDS)
    assert sqlite == postgres
    assert [number for number, _ in sqlite] == list(range(OLDEST_SCHEMA + 1, OLDEST_SCHEMA + len(sqlite) + 1))


@on_both_databases
async def test_both_backends_have_the_same_tables_and_columns(db: Database) -> None:
    """Both are compared with one list, so that a failure shows the backend that differs."""
    async with db.snapshot() as snapshot:
        if isinstance(snapshot, SqliteConnection):
            rows = await run_sql(
                snapshot,
                "SELECT m.name, c.name FROM sqlite_schema m, pragma_table_info(m.name) c "
                "WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name NOT LIKE 'section_words%'",
            )
        else:
            rows = await run_sql(
                snapshot,
                "SELECT c.table_name, c.column_name FROM information_schema.columns c JOIN information_schema.tables t "
                "USING (table_schema, table_name) WHERE table_schema = 'public' AND table_type = 'BASE TABLE'",
            )
    found = {(table, column) for table, column in rows} - {("sections", "words")}
    assert found == columns_of((SQL / "schema" / "postgres.sql").read_text("utf-8"))


def columns_of(sql: str) -> set[tuple[str, str]]:
    """Return the columns of PostgreSQL's schema, without the full text, which SQLite has in a table of its own."""
    made = {
        (table, column)
        for table, body in re.findall(r"^CREATE TABLE (\w+) \((.*?)^\)", sql, re.M | re.S)
        for column in re.findall(r"^    ([a-z]\w*) ", body, re.M)
    }
    return made - {("sections", "words")}


# Opening -------------------------------------------------------------------------------------------------------


def test_opening_again_finds_what_was_written(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
        async with database_at(database_url) as db, db.snapshot() as snapshot:
            assert await sources.get(snapshot, source.id) == source

    asyncio.run(scenario())


def test_ten_that_open_an_empty_database_at_once_make_one_schema(database_url: str) -> None:
    async def scenario() -> None:
        opened = await asyncio.gather(*(open_database(database_url) for _ in range(10)))
        try:
            async with opened[0].snapshot() as snapshot:
                applied = await run_sql(snapshot, "SELECT number FROM migrations ORDER BY number")
            assert [number for (number,) in applied] == [fresh_schema("sqlite").number]
        finally:
            for db in opened:
                await db.close()

    asyncio.run(scenario())


def test_a_database_of_a_newer_kept_is_left_alone(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, db.transaction() as tx:
            await run_sql(tx, "INSERT INTO migrations VALUES (9999, 'from the future', now())")
        with pytest.raises(StoreTooNew, match="Upgrade Kept"):
            await open_database(database_url)

    asyncio.run(scenario())


def test_who_stands_still_inside_a_transaction_is_out_of_the_way_before_its_lease_is_up(
    postgres_server: PostgresServer,
) -> None:
    url = postgres_server.create_database()

    async def scenario() -> None:
        frozen, other = await open_database(url, lease_seconds=2.0), await open_database(url, lease_seconds=2.0)
        try:
            source = await make_source(other)

            async def stand_still() -> None:
                async with frozen.transaction() as tx:
                    await locks.lock_source(tx, source.id)
                    async with asyncio.timeout(20), other.transaction() as meanwhile:
                        assert (await locks.lock_source(meanwhile, source.id)).id == source.id
                    await locks.lock_source(tx, source.id)

            with pytest.raises(StoreUnreachable, match="ended the session"):
                await stand_still()
        finally:
            await frozen.close()
            await other.close()

    asyncio.run(scenario())
    postgres_server.drop_database(url)


def test_a_database_that_is_not_there_is_not_made_by_looking(tmp_path: Path) -> None:
    with pytest.raises(NotFound, match="kept add"):
        asyncio.run(open_database(f"sqlite:///{tmp_path}/none.db", create=False))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["", "kept.db", "/tmp/kept.db", "mysql://localhost/kept", "sqlite:kept.db"])
def test_what_names_no_database_is_a_wrong_call(url: str) -> None:
    with pytest.raises(InvalidInput, match="names no database"):
        asyncio.run(open_database(url))


def test_pgvector_is_there_in_the_postgresql_of_the_tests(postgres_server: PostgresServer) -> None:
    url = postgres_server.create_database(vector=False)
    with psycopg.connect(url) as connection:
        connection.execute("CREATE EXTENSION vector")
        row = connection.execute("SELECT '[1,2]'::vector <-> '[1,5]'::vector").fetchone()
        assert row == (3.0,)
    postgres_server.drop_database(url)


# Transactions --------------------------------------------------------------------------------------------------


class Interruption(Exception):
    pass


@on_both_databases
async def test_a_transaction_that_is_broken_off_leaves_nothing(db: Database) -> None:
    source = await make_source(db)
    before = await count_rows(db)

    async def broken_off() -> None:
        async with db.transaction() as tx:
            await jobs.insert(tx, id=new_id(), source=source.id, mode=CrawlMode.FULL)
            await sources.allocate_generation_number(tx, source.id)
            raise Interruption

    with pytest.raises(Interruption):
        await broken_off()
    assert await count_rows(db) == before
    async with db.transaction() as tx:
        assert await sources.allocate_generation_number(tx, source.id) == 1


@on_both_databases
async def test_a_statement_that_is_refused_takes_its_whole_transaction_with_it(db: Database) -> None:
    source = await make_source(db)
    before = await count_rows(db)

    async def half_wrong() -> None:
        async with db.transaction() as tx:
            await jobs.insert(tx, id=new_id(), source=source.id, mode=CrawlMode.FULL)
            await run_sql(tx, "UPDATE crawl_jobs SET mode = 'sideways'")

    with pytest.raises(Refused):
        await half_wrong()
    assert await count_rows(db) == before


@on_both_databases
async def test_a_transaction_that_is_cancelled_at_any_moment_leaves_the_store_as_it_was_or_done(db: Database) -> None:
    source = await make_source(db)

    async def take() -> None:
        async with db.transaction() as tx:
            await sources.allocate_generation_number(tx, source.id)
            await jobs.insert(tx, id=new_id(), source=source.id, mode=CrawlMode.FULL)

    for steps in range(40):
        task = asyncio.create_task(take())
        for _ in range(steps):
            await asyncio.sleep(0)  # one turn of the loop, no time
        task.cancel()
        await asyncio.wait([task])
        async with db.transaction() as tx:  # no other transaction is open any more
            number = await sources.allocate_generation_number(tx, source.id)
            job = await jobs.lock_live(tx, source.id)
            assert (number % 2 == 0) == (job is not None), "both of the two, or neither"
            if job:
                await run_sql(tx, "DELETE FROM crawl_jobs")
                await sources.allocate_generation_number(tx, source.id)
                await sources.allocate_generation_number(tx, source.id)
            else:
                await sources.allocate_generation_number(tx, source.id)


def test_a_writer_that_is_cancelled_while_it_waits_for_its_turn_does_not_take_it_later(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as first, database_at(database_url) as second:
            source = await make_source(first)

            async def take() -> None:
                async with second.transaction() as tx:
                    await sources.lock(tx, source.id)

            async with first.transaction() as tx:
                await sources.lock(tx, source.id)
                waiting = asyncio.create_task(take())
                done, _ = await asyncio.wait([waiting], timeout=0.1)
                assert not done, "there is one writer at a time"
                waiting.cancel()
                await asyncio.wait([waiting], timeout=0.1)
            await asyncio.wait([waiting])
            async with asyncio.timeout(5):
                for db in (first, second, first):
                    async with db.transaction() as tx:
                        assert await sources.lock(tx, source.id)

    asyncio.run(scenario())


def test_a_snapshot_sees_one_moment_whatever_is_written_meanwhile(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as here, database_at(database_url) as there:
            source = await make_source(here)
            async with here.snapshot() as snapshot:
                before = await sources.all(snapshot)
                await make_source(here, "second", root="https://second.test/")
                await make_source(there, "third", root="https://third.test/")
                assert await sources.all(snapshot) == before == [source]
                assert (await run_sql(snapshot, "SELECT count(*) FROM sources"))[0][0] == 1
            async with here.snapshot() as snapshot:
                assert [one.name for one in await sources.all(snapshot)] == ["docs", "second", "third"]

    asyncio.run(scenario())


@on_both_databases
async def test_a_snapshot_writes_nothing(db: Database) -> None:
    source = await make_source(db)
    with pytest.raises((KeptError, psycopg.errors.ReadOnlySqlTransaction)):
        async with db.snapshot() as snapshot:
            await sources.set_active_generation(snapshot, source.id, 7)
    async with db.snapshot() as snapshot:
        assert await sources.get(snapshot, source.id) == source


@pytest.mark.parametrize("durable", [False, True])
def test_what_is_committed_is_seen_by_everybody_durable_or_not(database_url: str, durable: bool) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as here, database_at(database_url) as there:
            source = await make_source(here)
            async with here.transaction(durable=durable) as tx:
                question = "PRAGMA synchronous" if isinstance(tx, SqliteConnection) else "SHOW synchronous_commit"
                answer = (await run_sql(tx, question))[0][0]
                assert answer == "on" or answer == (2 if durable else 1), "a server may fall while we live on"
                assert await sources.allocate_generation_number(tx, source.id) == 1
            async with there.transaction() as tx:
                assert await sources.allocate_generation_number(tx, source.id) == 2

    asyncio.run(scenario())


@on_both_databases
async def test_many_small_transactions_at_once_all_happen(db: Database) -> None:
    source = await make_source(db)

    async def take() -> int:
        async with db.transaction() as tx:
            return await sources.allocate_generation_number(tx, source.id)

    assert sorted(await asyncio.gather(*(take() for _ in range(50)))) == list(range(1, 51))


@on_both_databases
async def test_time_is_told_with_its_zone_and_moves_on(db: Database) -> None:
    async with db.transaction() as tx:
        first = await current_time(tx)
    async with db.transaction() as tx:
        second = await current_time(tx)
        assert second.utcoffset() is not None
        assert first < second
        assert (await run_sql(tx, "SELECT ago(60) < now()"))[0][0]


# What the database itself refuses ------------------------------------------------------------------------------


PAGES = {ROOT: Page(text="The root.", links=(ROOT + "a",)), ROOT + "a": Page(text="A page.")}

VERSION = (
    "INSERT INTO versions (source_id, document_id, born, died, pending, url, content_id, content_type, raw_hash, "
    "signature, depth, links, fetched_at) SELECT source_id, {document}, {born}, {died}, {pending}, {url}, content_id, "
    "content_type, raw_hash, signature, depth, links, fetched_at FROM versions WHERE url = 'https://docs.test/a'"
)
A = "'https://docs.test/a'"
ANOTHER_DOCUMENT = "(SELECT document_id FROM versions WHERE url = 'https://docs.test/')"
GENERATION = (
    "INSERT INTO generations (source_id, number, base, state, settings, created_at) "
    "SELECT id, {number}, {base}, '{state}', settings, now() FROM sources"
)
JOB = (
    "INSERT INTO crawl_jobs (id, source_id, mode, status, created_at) "
    "SELECT '{id}', id, 'refresh', '{status}', now() FROM sources"
)


def version(
    document: str = "document_id",
    born: int = 9,
    died: int | None = None,
    pending: bool = False,
    url: str = "'https://docs.test/b'",
) -> str:
    return VERSION.format(document=document, born=born, died=died or "NULL", pending=pending, url=url)


def generation(state: str, number: int = 9, base: int = 1) -> str:
    return GENERATION.format(state=state, number=number, base=base)


def job(status: str) -> str:
    return JOB.format(id=new_id(), status=status)


def source(name: str, root: str) -> str:
    return (
        "INSERT INTO sources (id, name, kind, root, settings, created_at) "
        f"SELECT '{new_id()}', '{name}', kind, '{root}', settings, created_at FROM sources"
    )


MUST_NEVER_BE: list[tuple[list[str], str]] = [  # what is allowed, and what is refused after it
    ([job("pending")], job("pending")),
    ([job("processing")], job("paused")),
    ([job("completed"), job("failed"), job("cancelled"), job("paused")], job("processing")),
    ([generation("retired", 8)], generation("active")),
    ([generation("held", 8)], generation("building")),
    ([generation("abandoned")], generation("retired")),
    ([], generation("retired", number=0)),
    ([], generation("retired", number=3, base=3)),
    ([], generation("undecided")),
    ([version(pending=True)], version(born=8)),
    ([version(born=8, died=9)], version(died=9)),
    ([version(born=8, pending=True)], version(born=8, died=9)),
    (["UPDATE versions SET died = 5", version(url=A)], version(ANOTHER_DOCUMENT, url=A)),
    ([version(born=8, died=10)], version(born=7, died=7)),
    ([], version("source_id", died=10)),
    ([source("other", "https://other.test/")], source("docs", "https://third.test/")),
    ([], source("other", ROOT)),
    ([], source("", "https://other.test/")),
    ([], "UPDATE documents SET lifecycle = 'missing'"),
    ([], "UPDATE documents SET lifecycle = 'lost', since = now()"),
    (["UPDATE documents SET lifecycle = 'missing', since = now()"], "UPDATE documents SET lifecycle = 'active'"),
    ([], "DELETE FROM contents"),
    ([], "DELETE FROM documents"),
    ([], "DELETE FROM sources"),
    ([], "UPDATE contents SET hash = 'the same'"),
    ([], "UPDATE sections SET position = 5"),
    ([], "UPDATE sections SET parent_section_id = id"),
    ([], "UPDATE frontier SET outcome = 'lost'"),
    ([], "UPDATE sources SET active_generation = 7"),
    ([], "DELETE FROM generations"),
]  # fmt: skip


@on_both_databases
async def test_the_database_itself_refuses_what_must_never_be(db: Database) -> None:
    await crawl(db, await make_source(db), Site(PAGES))
    before = await count_rows(db)

    async def write(*statements: str) -> None:
        async with db.transaction() as tx:
            for statement in statements:
                await run_sql(tx, statement)
            if refused not in statements:
                raise Interruption

    for allowed, refused in MUST_NEVER_BE:
        with pytest.raises(Interruption):
            await write(*allowed)
        with pytest.raises(Refused):
            await write(*allowed, refused)
    assert await count_rows(db) == before


# Jobs ----------------------------------------------------------------------------------------------------------


def lease_of(job: CrawlJob, id: str | None = None) -> Lease:
    return Lease(
        id=id or new_id(),
        job_id=job.id,
        worker_name="test",
        host="test",
        pid=1,
        process_started="0",
        attempt=job.attempt,
    )


async def claim(db: Database, job_id: str | None = None) -> tuple[Lease, CrawlJob] | None:
    async with db.transaction() as tx:
        id = new_id()
        job = await jobs.claim(tx, worker=id, job=job_id)
        if job is None:
            return None
        lease = lease_of(job, id)
        await jobs.acquire_lease(tx, lease)
        return lease, job


def test_a_job_is_claimed_by_one_worker_only(database_url: str) -> None:
    async def scenario() -> None:
        async with AsyncExitStack() as stack:
            databases = [await stack.enter_async_context(database_at(database_url)) for _ in range(4)]
            for number in range(5):
                one = await make_source(databases[0], f"docs-{number}", root=f"https://{number}.test/")
                await queue.enqueue(databases[0], one.id)
            claims = await asyncio.gather(*(claim(databases[number % 4]) for number in range(20)))
            won = [one for one in claims if one]
            assert len({job.id for _, job in won}) == len(won) == 5
            async with databases[0].snapshot() as snapshot:
                assert (await run_sql(snapshot, "SELECT count(*), max(attempt) FROM crawl_jobs"))[0] == (5, 1)

    asyncio.run(scenario())


@on_both_databases
async def test_the_job_of_the_highest_priority_comes_first_then_the_oldest(db: Database) -> None:
    queued = []
    for number, priority in enumerate((0, 5, 0, 5, 9)):
        one = await make_source(db, f"docs-{number}", root=f"https://{number}.test/")
        queued.append((await queue.enqueue(db, one.id, priority=priority)).id)
    claimed = [await claim(db) for _ in range(6)]
    assert [one[1].id if one else None for one in claimed] == [queued[at] for at in (4, 1, 3, 0, 2)] + [None]


@on_both_databases
async def test_only_the_job_that_is_named_is_claimed(db: Database) -> None:
    first = await queue.enqueue(db, (await make_source(db, "one", root="https://one.test/")).id)
    second = await queue.enqueue(db, (await make_source(db, "two", root="https://two.test/")).id)
    claimed = await claim(db, second.id)
    assert claimed is not None
    assert claimed[1].id == second.id
    assert await claim(db, second.id) is None
    assert await claim(db, new_id()) is None
    assert (await claim(db)) is not None
    assert first.id != second.id


async def visited_once(db: Database) -> tuple[Lease, CrawlJob, VisitResult]:
    """Prepare a worker in the middle of a first crawl: its one entry is leased and visited, but not settled."""
    one = await make_source(db)
    await queue.enqueue(db, one.id)
    claimed = await claim(db)
    assert claimed is not None
    lease, _ = claimed
    begun = await start.start_generation(db, lease, lists_everything=False)
    async with db.transaction() as tx:
        await frontier.insert(tx, begun.id, [DiscoveredUrl(url=ROOT, depth=0)])
        [entry] = await frontier.lease(tx, begun.id, lease_id=lease.id, limit=9)
    read = await read_scripted(b"The root.", "text/plain", ROOT)
    assert isinstance(read, ParsedPage)
    fetched = Fetched(body=b"The root.", content_type="text/plain")
    return (
        lease,
        begun,
        VisitResult(entry=entry, decision=NewContent(page=read, fetched=fetched, raw_hash="0", outcome=Outcome.NEW)),
    )


@on_both_databases
async def test_a_worker_that_keeps_its_lease_settles_and_activates(db: Database) -> None:
    lease, begun, visited = await visited_once(db)
    done = await settle.commit_batch(db, lease, begun, [visited], [], signature="1")
    assert (done.batch, done.progress.tally.new) == (1, 1)
    activation = await activate.activate(db, lease, LifecycleRules())
    assert activation is not None
    async with db.snapshot() as snapshot:
        [one] = await sources.all(snapshot)
    assert one.active_generation == activation.generation == 1
    assert list(await shown(db, one)) == [ROOT]


@pytest.mark.parametrize(
    "how", ["its lease is gone", "its lease is another's", "the job was ended", "the source is gone"]
)
@on_both_databases
async def test_a_worker_that_was_replaced_writes_nothing(db: Database, how: str) -> None:
    lease, begun, visited = await visited_once(db)
    async with db.transaction() as tx:
        match how:
            case "its lease is gone":
                await jobs.release_lease(tx, lease.id)
            case "its lease is another's":
                await run_sql(tx, "UPDATE job_workers SET attempt = attempt + 1")
            case "the job was ended":
                await jobs.cancel(tx, begun.id)
            case _:
                await jobs.cancel(tx, begun.id)
                await sources.mark_removed(tx, begun.source_id)
    before = await count_rows(db)
    found = [DiscoveredUrl(url=ROOT + "a", depth=1)]
    with pytest.raises(LeaseLost):
        await settle.commit_batch(db, lease, begun, [visited], found, signature="1")
    with pytest.raises(LeaseLost):
        await start.start_generation(db, lease, lists_everything=False)
    with pytest.raises(LeaseLost):
        await activate.activate(db, lease, LifecycleRules())
    with pytest.raises(LeaseLost):
        await activate.fail_leased_job(db, lease, "it does not know better")
    assert await count_rows(db) == before
    async with db.snapshot() as snapshot:
        assert (await run_sql(snapshot, "SELECT count(*) FROM frontier WHERE outcome IS NOT NULL"))[0][0] == 0


@on_both_databases
async def test_a_worker_that_settled_and_was_replaced_then_does_not_activate(db: Database) -> None:
    lease, begun, visited = await visited_once(db)
    await settle.commit_batch(db, lease, begun, [visited], [], signature="1")
    async with db.transaction() as tx:
        await jobs.release_lease(tx, lease.id)
        assert (await jobs.reap(tx, begun.id, "worker timed out")) is not None
    with pytest.raises(LeaseLost):
        await activate.activate(db, lease, LifecycleRules())
    successor = await claim(db)
    assert successor is not None
    assert await activate.activate(db, successor[0], LifecycleRules()) is not None
    with pytest.raises(LeaseLost):
        await activate.activate(db, successor[0], LifecycleRules())


def test_a_lease_is_not_revoked_while_its_worker_writes(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            lease, _, _ = await visited_once(db)

            async def take_away() -> None:
                async with other.transaction() as tx:
                    await jobs.release_lease(tx, lease.id)

            async with db.transaction() as tx:
                await jobs.lock_lease(tx, lease)
                reaping = asyncio.create_task(take_away())
                done, _ = await asyncio.wait([reaping], timeout=0.2)
                assert not done
                await contents.get_or_insert(tx, {})
            await reaping
            with pytest.raises(LeaseLost):
                async with db.transaction() as tx:
                    await jobs.lock_lease(tx, lease)

    asyncio.run(scenario())


@on_both_databases
async def test_leases_lapse_with_their_holder(db: Database) -> None:
    lease, begun, visited = await visited_once(db)
    async with db.transaction() as tx:
        assert await frontier.lease(tx, begun.id, lease_id=lease.id, limit=9) == []
        await jobs.release_lease(tx, lease.id)
        second = replace(lease, id=new_id())
        await jobs.acquire_lease(tx, second)
        [entry] = await frontier.lease(tx, begun.id, lease_id=second.id, limit=9)
    assert entry == visited.entry


@on_both_databases
async def test_two_workers_never_lease_the_same_entry(db: Database) -> None:
    lease, begun, _ = await visited_once(db)
    second = replace(lease, id=new_id())
    async with db.transaction() as tx:
        await jobs.acquire_lease(tx, second)
        await frontier.insert(tx, begun.id, [DiscoveredUrl(url=f"{ROOT}{number}", depth=1) for number in range(100)])

    async def take(worker: Lease) -> list[str]:
        async with db.transaction() as tx:
            return [entry.url for entry in await frontier.lease(tx, begun.id, lease_id=worker.id, limit=7)]

    taken = [url for urls in await asyncio.gather(*(take(worker) for worker in [lease, second] * 10)) for url in urls]
    assert len(taken) == len(set(taken)) == 100


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_long_reader_makes_no_commit_after_the_first_wait_for_a_log_that_has_grown_large(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sqlite, "MAX_WAL_BYTES", 0)

    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other, other.snapshot() as snapshot:
            await run_sql(snapshot, "SELECT count(*) FROM sources")
            began = time.monotonic()
            for number in range(5):
                await make_source(db, f"s{number}", root=f"{ROOT}{number}/")
            assert time.monotonic() - began < 3, "the first waits for a second"

    asyncio.run(scenario())


# What two do at once -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_whoever_clears_an_abandoned_generation_away_beside_another_is_done_when_it_is_gone(
    database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(abandon, "CLEAR_BATCH_SIZE", 3)

    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            source = await make_source(db)
            old, new = ([f"{ROOT}{name}{number}" for number in range(30)] for name in ("old", "new"))
            await crawl(db, source, Site({ROOT: Page("root", tuple(old)), **{url: Page(url) for url in old}}))
            site = Site({ROOT: Page("other root", tuple(new)), **{url: Page(url) for url in new}})
            assert (await crawl(db, source, site)).held
            async with db.transaction() as tx:
                await abandon.abandon_generation(tx, source, "not wanted")

            async with db.transaction() as tx:
                await sources.lock(tx, source.id)
                await documents.delete_by_generation(tx, source.id, 2, limit=3)
                clearing = asyncio.create_task(abandon.clear_abandoned(other, source.id))
                done, _ = await asyncio.wait([clearing], timeout=0.2)
                assert not done
            await clearing
            async with db.snapshot() as snapshot:
                assert await run_sql(snapshot, "SELECT count(*) FROM versions WHERE born = 2") == [(0,)]

    asyncio.run(scenario())


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_whoever_cancels_a_crawl_the_moment_it_is_listed_does_not_wait_for_it_while_it_waits(database_url: str) -> None:
    async def scenario() -> None:
        listing, is_locked = asyncio.Event(), asyncio.Event()

        class Slow(Site):
            async def open(self) -> str:  # type: ignore[override]
                return "a folder"

            async def list(self) -> AsyncIterator[ListedUrl | ListingFailure]:
                listing.set()
                await is_locked.wait()
                async for one in super().list():
                    yield one

        async with database_at(database_url) as db, database_at(database_url) as other:
            source = await make_source(db)
            job = await queue.enqueue(db, source.id)
            crawling = asyncio.create_task(crawl(db, source, Slow({ROOT: Page("root")})))
            await listing.wait()
            async with other.transaction() as tx:
                await sources.lock(tx, source.id)
                is_locked.set()
                done, _ = await asyncio.wait([crawling], timeout=0.3)
                assert not done
                assert await jobs.cancel(tx, job.id)
            assert (await crawling).status is JobStatus.CANCELLED

    asyncio.run(scenario())


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_a_request_that_meets_a_job_at_its_very_end_is_not_lost(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            source = await make_source(db)
            first = await queue.enqueue(db, source.id)
            async with db.transaction() as tx:
                await jobs.claim(tx, worker=new_id())
            async with db.transaction() as tx:
                await jobs.lock(tx, first.id)
                enqueuing = asyncio.create_task(queue.enqueue(other, source.id))
                done, _ = await asyncio.wait([enqueuing], timeout=0.2)
                assert not done
                await jobs.complete(tx, first.id, held=False, tally=Tally())
            assert (await enqueuing).id != first.id

    asyncio.run(scenario())


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
def test_what_two_list_at_once_is_counted_once(database_url: str) -> None:
    async def scenario() -> None:
        both = asyncio.Barrier(2)

        class Together(Site):
            async def list(self) -> AsyncIterator[ListedUrl | ListingFailure]:
                await both.wait()
                async for one in super().list():
                    yield one

        async with database_at(database_url) as db, database_at(database_url) as other:
            source = await make_source(db)
            pages = {f"{ROOT}{number}": Page(f"page {number}", tag=f"{number}") for number in range(4)}
            await crawl(db, source, Site(pages, lists_everything=True))
            pages |= {f"{ROOT}new{number}": Page(f"new {number}") for number in range(2)}
            job = await queue.enqueue(db, source.id)
            (first, _), second = await claim(db) or pytest.fail("nothing is due"), new_id()
            async with db.transaction() as tx:
                await jobs.acquire_lease(tx, replace(first, id=second))
            runs = [
                CrawlRun(
                    one,
                    replace(first, id=lease),
                    source,
                    Together(pages, lists_everything=True),
                    read=read_scripted,
                    signature="1",
                    rules=LifecycleRules(),
                )
                for one, lease in ((db, first.id), (other, second))
            ]
            await asyncio.gather(*(run.run() for run in runs), return_exceptions=True)
            async with db.snapshot() as snapshot:
                done = await jobs.get(snapshot, job.id)
            assert done
            assert (done.status, done.progress.tally) == (JobStatus.COMPLETED, Tally(new=2, unchanged=4))

    asyncio.run(scenario())


# Contents ------------------------------------------------------------------------------------------------------


def test_two_that_store_the_same_contents_at_once_store_them_once(database_url: str) -> None:
    async def scenario() -> None:
        readings = [await read_scripted(f"Page {number}.".encode(), "text/plain", ROOT) for number in range(50)]
        made: dict[str, Any] = {read.content.hash: read.content for read in readings if isinstance(read, ParsedPage)}
        async with database_at(database_url) as here, database_at(database_url) as there:

            async def keep(db: Database) -> dict[str, int]:
                async with db.transaction() as tx:
                    return await contents.get_or_insert(tx, made)

            kept = await asyncio.gather(*(keep(db) for db in [here, there] * 5))
            assert all(one == kept[0] for one in kept)
            rows = await count_rows(here)
            assert (rows["contents"], rows["sections"]) == (50, 50)

    asyncio.run(scenario())
