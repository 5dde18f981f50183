"""A migration leaves the old schema or the new one, whoever starts it, and whenever it is killed."""

import asyncio
import os
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import psycopg
import pytest

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import StoreCorrupt, StoreTooNew
from kept.model.generation import GenerationState
from kept.service import generations as past
from kept.service import search, sources
from kept.store import postgres, sqlite
from kept.store.database import open_database
from kept.store.migrations import list_migrations
from tests.crash.crawler import COMMIT, MIGRATING, Crawlers, Order, Point
from tests.crash.state import reading, wait_until_left_alone
from tests.given import Page, Site, a_database, a_source, crawl, shown
from tests.postgres import PostgresServer

SCHEMA = {
    "sqlite": "SELECT type, name, tbl_name, sql FROM sqlite_schema",
    "postgres": """
        SELECT 'column', table_name, column_name, data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, '')
          FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT 'constraint', CAST(conrelid AS regclass)::text, conname, pg_get_constraintdef(oid)
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace
        UNION ALL SELECT 'view', viewname, '', definition FROM pg_views WHERE schemaname = 'public'
        UNION ALL SELECT 'function', proname, prolang::text, md5(pg_get_functiondef(p.oid)) FROM pg_proc p
          WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND prolang <> 13
            AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
        UNION ALL SELECT 'words', cfgname, '', '' FROM pg_ts_config WHERE cfgnamespace = 'public'::regnamespace""",
}

FULL_TEXT = """
    INSERT INTO main.section_words (rowid, {first}, headings, text)
    SELECT s.id, c.title, s.headings, s.text FROM main.sections s JOIN main.contents c ON c.id = s.content_id"""


GONE = {"run_after": "created_at"}  # columns that are no more, and what they would hold
LONG = os.environ.get("KEPT_TEST_LONG") == "1"  # at every point, not at twenty

T = TypeVar("T")


def some_of(points: Sequence[T], chance: random.Random) -> Sequence[T]:
    return points if LONG else chance.sample(points, min(20, len(points)))


@pytest.fixture
def backend(database_url: str) -> str:
    return "sqlite" if database_url.startswith("sqlite") else "postgres"


@pytest.fixture
def older_url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Another one, for the schema of an earlier Kept."""
    if backend == "sqlite":
        yield f"sqlite:///{tmp_path}/older.db"
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database()
    yield url
    server.drop_database(url)


def test_a_migration_killed_at_any_statement_leaves_the_old_schema_or_the_new_one(
    crawlers: Crawlers, database_url: str, backend: str, chance: random.Random
) -> None:
    statements = sum(len(migration.statements) for migration in list_migrations(backend))
    for k in some_of(range(1, statements + 1), chance):
        assert crawlers.crawl(Order(url=database_url, root=None, crash=Point(MIGRATING, "before", k))).killed
        assert schema(database_url) == []
    for side in ("before", "after"):
        assert crawlers.crawl(Order(url=database_url, root=None, crash=Point(COMMIT, side, 1))).killed
        assert bool(schema(database_url)) == (side == "after")
    assert is_today(database_url, backend)
    assert crawlers.crawl(Order(url=database_url, root=None)).error is None


def test_an_upgrade_killed_at_any_statement_leaves_the_old_schema_or_the_new_one(
    crawlers: Crawlers, database_url: str, backend: str, chance: random.Random, monkeypatch: pytest.MonkeyPatch
) -> None:
    number = chance.randrange(1, len(list_migrations(backend)))
    make_older(database_url, number, monkeypatch)
    old = schema(database_url)
    statements = sum(len(migration.statements) for migration in list_migrations(backend)[number:])
    points = [Point(MIGRATING, side, k) for k in range(1, statements + 1) for side in ("before", "after")]
    for point in [*some_of(points, chance), Point(COMMIT, "before", 1)]:
        assert crawlers.crawl(Order(url=database_url, root=None, crash=point)).killed
        assert schema(database_url) == old, f"killed {point}, from schema {number}"
    assert crawlers.crawl(Order(url=database_url, root=None, crash=Point(COMMIT, "after", 1))).killed
    assert schema(database_url) != old, f"from schema {number}"
    assert is_today(database_url, backend)


@pytest.mark.parametrize("number", range(1, len(list_migrations("sqlite"))))
def test_a_database_of_an_earlier_kept_keeps_every_generation_through_the_upgrade(
    database_url: str, older_url: str, backend: str, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = asyncio.run(make_generations(database_url))
    make_older(older_url, number, monkeypatch)
    copy_rows(database_url, older_url, backend)
    assert not is_today(older_url, backend)
    assert asyncio.run(generations_of(older_url)) == before
    assert is_today(older_url, backend)
    assert schema(older_url) == schema(database_url)
    asyncio.run(decide_and_go_on(older_url))


def test_a_database_of_a_newer_kept_is_left_alone(database_url: str) -> None:
    asyncio.run(open_and_close(database_url))
    change(database_url, "INSERT INTO migrations VALUES (9999, 'from the future', '2100-01-01T00:00:00.000000+00:00')")
    before = schema(database_url)
    with pytest.raises(StoreTooNew, match=r"was written by a newer Kept \(schema 9999; this one knows \d+\)"):
        asyncio.run(open_and_close(database_url))
    assert schema(database_url) == before


def test_processes_that_open_a_new_database_at_the_same_moment_migrate_it_once(
    crawlers: Crawlers, database_url: str, backend: str
) -> None:
    assert crawlers.open_at_once(database_url, 10) == [None] * 10
    assert is_today(database_url, backend)


@pytest.mark.parametrize("content", [b"# Notes\n" * 1000, b"SQLite format 3\0" + b"\xff" * 8000], ids=["text", "noise"])
def test_a_file_that_is_no_database_is_said_to_be_none(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "notes.db"
    path.write_bytes(content)
    with pytest.raises(StoreCorrupt, match="not a sound database"):
        asyncio.run(open_and_close(f"sqlite:///{path}"))
    assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["notes.db"]


@pytest.mark.parametrize("table", ["sources (name TEXT)", "migrations (id INTEGER, migration TEXT, batch INTEGER)"])
def test_a_database_of_another_program_is_left_alone(database_url: str, table: str) -> None:
    change(database_url, f"CREATE TABLE {table}")
    before = schema(database_url)
    with pytest.raises(StoreCorrupt, match=r"not one of Kept's|tables of another program"):
        asyncio.run(open_and_close(database_url))
    assert schema(database_url) == before


# The schema -------------------------------------------------------------------------------------------------------


def schema(url: str) -> list[tuple[Any, ...]]:
    wait_until_left_alone(url)
    with reading(url) as db:
        return sorted(db.rows(SCHEMA["sqlite" if url.startswith("sqlite") else "postgres"]), key=str)


def applied(url: str) -> list[int]:
    with reading(url) as db:
        return [row[0] for row in db.rows("SELECT number FROM migrations ORDER BY number")]


def is_today(url: str, backend: str) -> bool:
    """Every migration was made, once."""
    return applied(url) == [migration.number for migration in list_migrations(backend)]


def make_older(url: str, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new database with the schema of an earlier Kept."""
    with monkeypatch.context() as patch:
        for module in (sqlite, postgres):
            patch.setattr(module, "list_migrations", lambda backend: list_migrations(backend)[:number])
        asyncio.run(open_and_close(url))


async def open_and_close(url: str) -> None:
    await (await open_database(url)).close()


def change(url: str, sql: str) -> None:
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(sql)
        connection.close()
    else:
        with psycopg.connect(url) as session:
            session.execute(sql.encode())


# Data -------------------------------------------------------------------------------------------------------------


async def make_generations(url: str) -> dict[int, Any]:
    """A source with a retired, an abandoned, an active and a held generation; what they show."""
    pages = {f"https://docs.test/{n}": Page(text=f"page {n} " * 20, tag="1") for n in range(20)}
    fewer = {address: page for address, page in pages.items() if not address.endswith("7")}
    changed = fewer | {"https://docs.test/3": Page(text="page 3, changed", tag="2")}
    few = dict(list(changed.items())[:6]) | {"https://docs.test/new": Page(text="a new page")}
    async with a_database(url) as db:
        source = await a_source(db)
        for site in (pages, changed, few):
            await crawl(db, source, Site(site, lists_everything=True))
        await past.discard_held(db, source.label)
        await crawl(db, source, Site(few, lists_everything=True))
    return await generations_of(url)


async def generations_of(url: str) -> dict[int, Any]:
    """What every generation shows, and what a search in it finds."""
    said: dict[int, Any] = {}
    async with a_database(url) as db:
        source, known = await past.list_generations(db, "docs")
        for generation in known:
            if generation.state in (GenerationState.ACTIVE, GenerationState.RETIRED):
                hits = await search.search_sections(
                    db, "page", labels=["docs"], limit=100, generation=generation.number
                )
                found = sorted((hit.url, hit.text, hit.document) for hit in hits)
                said[generation.number] = generation.state, await shown(db, source, generation.number), found
            else:
                said[generation.number] = generation.state, generation.documents, generation.tally
    assert {state for state, *_ in said.values()} == {"active", "retired", "held", "abandoned"}
    return said


async def decide_and_go_on(url: str) -> None:
    """What was held is activated, and the next crawl brings the next generation."""
    async with a_database(url) as db:
        number = await past.activate_held(db, "docs", LifecycleRules())
        view = await sources.show_source(db, "docs")
        assert view.documents == 7
        pages = {"https://docs.test/again": Page(text="a page for today")}
        pages |= {address: Page(text="as it was") for address in await shown(db, view.source)}
        job = await crawl(db, view.source, Site(pages, lists_everything=True))
        assert job.status == "completed"
        assert (await sources.show_source(db, "docs")).source.active_generation == number + 1


def as_today(columns: Iterable[str]) -> str:
    """Where today's tables have what the columns of an earlier Kept held."""
    return ", ".join(GONE.get(column, column) for column in columns)


def copy_rows(url: str, older_url: str, backend: str) -> None:
    """The same rows, as far as the earlier Kept had tables and columns for them."""
    there = applied(older_url)
    ddl = [sql for migration in list_migrations(backend) if migration.number in there for sql in migration.statements]
    tables = [found[1] for sql in ddl if (found := re.search(r"^CREATE TABLE (\w+)", sql, re.MULTILINE))]
    tables.remove("migrations")
    if backend == "sqlite":
        connection = apsw.Connection(older_url.removeprefix("sqlite:///"))
        connection.execute("ATTACH ? AS today", (url.removeprefix("sqlite:///"),))
        with connection:
            for table in tables:
                columns = [row[1] for row in connection.execute(f"PRAGMA main.table_info({table})")]
                connection.execute(f"DELETE FROM main.{table}")  # a trigger was quicker
                connection.execute(
                    f"INSERT INTO main.{table} ({', '.join(columns)}) SELECT {as_today(columns)} FROM today.{table}"
                )
            if not connection.execute("SELECT 1 FROM main.sqlite_schema WHERE name = 'section_inserted'").fetchall():
                fields = [row[1] for row in connection.execute("PRAGMA main.table_info(section_words)")]
                connection.execute(FULL_TEXT.format(first=fields[0]))
        connection.close()
        return
    with psycopg.connect(url) as today, psycopg.connect(older_url) as older:
        for table in tables:
            named = "SELECT column_name, is_identity FROM information_schema.columns WHERE table_name = %s"
            columns = dict(older.execute(named, (table,)).fetchall())
            rows = f"SELECT {as_today(columns)} FROM {table}"
            older.execute(f"DELETE FROM {table}".encode())  # a trigger was quicker
            with (
                today.cursor().copy(f"COPY ({rows}) TO STDOUT".encode()) as reader,
                older.cursor().copy(f"COPY {table} ({', '.join(columns)}) FROM STDIN".encode()) as writer,
            ):
                for part in reader:
                    writer.write(part)
            if columns.get("id") and columns["id"] == "YES":
                next_id = f"SELECT setval(pg_get_serial_sequence('{table}', 'id'), max(id)) FROM {table}"
                older.execute(next_id.encode())
