"""Opening a database creates or upgrades its schema completely or not at all, whenever the process is killed."""

import asyncio
import os
import random
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

import apsw
import psycopg
import pytest

from kept.crawl.lifecycle import LifecycleRules
from kept.errors import StoreCorrupt, StoreTooNew, StoreTooOld
from kept.model.generation import GenerationState
from kept.model.search_request import SearchRequest
from kept.service import generations as past
from kept.service import search, sources
from kept.store.database import open_database
from kept.store.migrations import OLDEST_SCHEMA, fresh_schema, list_migrations
from tests.crash.crawler import COMMIT, MIGRATING, Crawlers, Order, Point
from tests.crash.state import reading, wait_until_left_alone
from tests.factories import Page, Site, crawl, database_at, make_source, shown
from tests.postgres import PostgresServer

# The columns are compared by name: an upgrade appends them, and a new table has them in a readable order.
SCHEMA = {
    "sqlite": """
        SELECT 'table', name, type, wr || ' ' || strict FROM pragma_table_list WHERE schema = 'main'
        UNION ALL SELECT 'column', t.name, c.name, concat_ws(' ', c.type, c."notnull", c.dflt_value, c.pk, c.hidden)
          FROM pragma_table_list t, pragma_table_xinfo(t.name) c WHERE t.schema = 'main' AND t.name NOT LIKE 'sqlite%'
        UNION ALL SELECT 'foreign key', t.name, f."from", concat_ws(' ', f."table", f."to", f.on_update, f.on_delete)
          FROM pragma_table_list t, pragma_foreign_key_list(t.name) f WHERE t.schema = 'main'
        UNION ALL SELECT 'unique', t.name, i.origin, (SELECT group_concat(name) FROM pragma_index_info(i.name))
          FROM pragma_table_list t, pragma_index_list(t.name) i WHERE t.schema = 'main' AND i.origin <> 'c'
        UNION ALL SELECT type, tbl_name, name, sql FROM sqlite_schema WHERE sql IS NOT NULL""",
    "postgres": """
        SELECT 'column', table_name, column_name, data_type || ' ' || is_nullable || ' ' || COALESCE(column_default, '')
               || ' ' || is_identity
          FROM information_schema.columns WHERE table_schema = 'public'
        UNION ALL SELECT 'storage', c.relname, a.attname, a.attstorage::text || COALESCE(c.reloptions::text, '')
          FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid
         WHERE c.relnamespace = 'public'::regnamespace AND c.relkind = 'r' AND a.attnum > 0 AND NOT a.attisdropped
        UNION ALL SELECT 'index', tablename, indexname, indexdef FROM pg_indexes WHERE schemaname = 'public'
        UNION ALL SELECT 'constraint', CAST(conrelid AS regclass)::text, conname, pg_get_constraintdef(oid)
          FROM pg_constraint WHERE connamespace = 'public'::regnamespace AND contype <> 'n'
        UNION ALL SELECT 'view', viewname, '', definition FROM pg_views WHERE schemaname = 'public'
        UNION ALL SELECT 'trigger', CAST(tgrelid AS regclass)::text, tgname, pg_get_triggerdef(oid)
          FROM pg_trigger WHERE NOT tgisinternal
        UNION ALL SELECT 'function', proname, prolang::text, pg_get_functiondef(p.oid) FROM pg_proc p
          WHERE pronamespace = 'public'::regnamespace AND prokind = 'f' AND prolang <> 13
            AND NOT EXISTS (SELECT 1 FROM pg_depend d WHERE d.objid = p.oid AND d.deptype = 'e')
        UNION ALL SELECT 'words', c.cfgname, m.maptokentype::text, m.mapdict::regdictionary::text
          FROM pg_ts_config c JOIN pg_ts_config_map m ON m.mapcfg = c.oid
         WHERE c.cfgnamespace = 'public'::regnamespace""",
}

# The names of schema 16 that later migrations changed, by those of today.
FORMER_TABLES = {
    "notifications": "notices",
    "idempotency_keys": "asked_once",
    "maintenance_passes": "passes",
    "embedding_claims": "texts_taken",
}
FORMER_COLUMNS = {
    ("idempotency_keys", "created_at"): "asked_at",
    ("maintenance_passes", "started_at"): "begun_at",
    ("host_shares", "lease_id"): "place_id",
    ("host_shares", "concurrency"): "at_once",
}

LONG = os.environ.get("KEPT_TEST_LONG") == "1"  # at every point, not at twenty

T = TypeVar("T")


def some_of(points: Sequence[T], chance: random.Random) -> Sequence[T]:
    return points if LONG else chance.sample(points, min(20, len(points)))


@pytest.fixture
def backend(database_url: str) -> str:
    return "sqlite" if database_url.startswith("sqlite") else "postgres"


@pytest.fixture
def older_url(backend: str, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """Return another database, with the oldest schema that can be upgraded."""
    if backend == "sqlite":
        url = f"sqlite:///{tmp_path}/older.db"
        make_older(url)
        yield url
        return
    server: PostgresServer = request.getfixturevalue("postgres_server")
    url = server.create_database()
    make_older(url)
    yield url
    server.drop_database(url)


def test_a_new_database_killed_at_any_statement_is_still_empty_or_complete(
    crawlers: Crawlers, database_url: str, backend: str, chance: random.Random
) -> None:
    statements = len(fresh_schema(backend).statements)
    assert statements > 50
    for k in some_of(range(1, statements + 1), chance):
        assert crawlers.crawl(Order(url=database_url, root=None, crash=Point(MIGRATING, "before", k))).killed
        assert schema(database_url) == []
    for side in ("before", "after"):
        assert crawlers.crawl(Order(url=database_url, root=None, crash=Point(COMMIT, side, 1))).killed
        assert bool(schema(database_url)) == (side == "after")
    assert is_newest(database_url, backend)
    assert crawlers.crawl(Order(url=database_url, root=None)).error is None


def test_an_upgrade_killed_at_any_statement_leaves_the_old_schema_or_the_new_one(
    crawlers: Crawlers, older_url: str, backend: str, chance: random.Random
) -> None:
    old = schema(older_url)
    statements = sum(len(migration.statements) for migration in list_migrations(backend))
    points = [Point(MIGRATING, side, k) for k in range(1, statements + 1) for side in ("before", "after")]
    for point in [*some_of(points, chance), Point(COMMIT, "before", 1)]:
        assert crawlers.crawl(Order(url=older_url, root=None, crash=point)).killed
        assert schema(older_url) == old, f"killed {point}"
    assert crawlers.crawl(Order(url=older_url, root=None, crash=Point(COMMIT, "after", 1))).killed
    assert schema(older_url) != old
    assert is_newest(older_url, backend)


def test_the_schema_reached_by_upgrading_equals_that_of_a_new_database(
    database_url: str, older_url: str, backend: str
) -> None:
    asyncio.run(open_and_close(database_url))
    assert schema(older_url) != schema(database_url)
    asyncio.run(open_and_close(older_url))
    assert schema(older_url) == schema(database_url)
    assert full_text_settings(older_url, backend) == full_text_settings(database_url, backend)


def test_a_database_of_an_earlier_kept_keeps_every_generation_through_the_upgrade(
    database_url: str, older_url: str, backend: str
) -> None:
    before = asyncio.run(make_generations(database_url))
    copy_rows(database_url, older_url, backend)
    assert not is_newest(older_url, backend)
    assert asyncio.run(generations_of(older_url)) == before
    assert is_newest(older_url, backend)
    asyncio.run(decide_and_go_on(older_url))


def test_a_database_of_a_newer_kept_is_left_alone(database_url: str) -> None:
    asyncio.run(open_and_close(database_url))
    change(database_url, "INSERT INTO migrations VALUES (9999, 'from the future', '2100-01-01T00:00:00.000000+00:00')")
    before = schema(database_url)
    with pytest.raises(StoreTooNew, match=r"was written by a newer Kept \(schema 9999; this one knows \d+\)"):
        asyncio.run(open_and_close(database_url))
    assert schema(database_url) == before


def test_a_database_from_before_the_first_release_is_left_alone(older_url: str) -> None:
    change(older_url, f"DELETE FROM migrations WHERE number = {OLDEST_SCHEMA}")
    before = schema(older_url)
    with pytest.raises(StoreTooOld, match=r"\(schema 15; this one upgrades from 16 on\).*'kept export'.*'kept import'"):
        asyncio.run(open_and_close(older_url))
    assert schema(older_url) == before


def test_processes_that_open_a_new_database_at_the_same_moment_make_it_once(
    crawlers: Crawlers, database_url: str, backend: str
) -> None:
    assert crawlers.open_at_once(database_url, 10) == [None] * 10
    assert is_newest(database_url, backend)


def test_processes_that_open_an_older_database_at_the_same_moment_upgrade_it_once(
    crawlers: Crawlers, older_url: str, backend: str
) -> None:
    assert crawlers.open_at_once(older_url, 10) == [None] * 10
    assert is_newest(older_url, backend)


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
    """Return a schema in a form that does not depend on its history."""
    wait_until_left_alone(url)
    backend = "sqlite" if url.startswith("sqlite") else "postgres"
    if backend == "sqlite":
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        is_empty = not connection.execute("SELECT 1 FROM sqlite_schema").fetchall()
        rows = [] if is_empty else connection.execute(SCHEMA[backend]).fetchall()
        connection.close()
    else:
        with psycopg.connect(url) as session:
            rows = session.execute(SCHEMA[backend].encode()).fetchall()
    return sorted(((kind, table, name, plain_sql(kind, definition)) for kind, table, name, definition in rows), key=str)


def plain_sql(kind: str, definition: str) -> Any:
    """Normalize the SQL of SQLite: the constraints of a table; of other objects everything but the layout."""
    if definition is None:
        return None
    text = " ".join(re.sub(r"--.*", "", definition).replace('"', "").split())
    if kind != "table" or not text.startswith("CREATE TABLE"):
        return text
    return sorted(re.findall(r"CHECK (\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))|(DEFERRABLE \w+ \w+)", text))


def full_text_settings(url: str, backend: str) -> list[tuple[Any, ...]]:
    if backend == "postgres":
        return []
    with reading(url) as db:
        found = sorted(db.rows("SELECT k, v FROM section_words_config"))
    assert ("automerge", 16) in found
    return found


def applied(url: str) -> list[int]:
    with reading(url) as db:
        return [row[0] for row in db.rows("SELECT number FROM migrations ORDER BY number")]


def is_newest(url: str, backend: str) -> bool:
    """Return whether the schema is new, or every migration since the oldest schema was applied once."""
    newest = fresh_schema(backend).number
    return applied(url) in ([newest], list(range(1, newest + 1)))


def make_older(url: str) -> None:
    """Make the oldest schema that can be upgraded."""
    backend = "sqlite" if url.startswith("sqlite") else "postgres"
    change(url, Path(__file__).with_name(f"schema_{OLDEST_SCHEMA}_{backend}.sql").read_text("utf-8"))
    assert applied(url)[-1] == OLDEST_SCHEMA


async def open_and_close(url: str) -> None:
    await (await open_database(url)).close()


def change(url: str, sql: str) -> None:
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.execute(sql).fetchall()
        connection.close()
    else:
        with psycopg.connect(url) as session:
            session.execute(sql.encode())


# Data -------------------------------------------------------------------------------------------------------------


async def make_generations(url: str) -> dict[int, Any]:
    """Create a source with a retired, an abandoned, an active and a held generation. Returns their documents."""
    pages = {f"https://docs.test/{n}": Page(text=f"page {n} " * 20, tag="1") for n in range(20)}
    fewer = {address: page for address, page in pages.items() if not address.endswith("7")}
    changed = fewer | {"https://docs.test/3": Page(text="page 3, changed", tag="2")}
    few = dict(list(changed.items())[:6]) | {"https://docs.test/new": Page(text="a new page")}
    async with database_at(url) as db:
        source = await make_source(db)
        for site in (pages, changed, few):
            await crawl(db, source, Site(site, lists_everything=True))
        await past.discard_held(db, source.label)
        await crawl(db, source, Site(few, lists_everything=True))
    return await generations_of(url)


async def generations_of(url: str) -> dict[int, Any]:
    """Return the documents of every generation, and the hits of a search in it."""
    result: dict[int, Any] = {}
    async with database_at(url) as db:
        source, known = await past.list_generations(db, "docs")
        for generation in known:
            if generation.state in (GenerationState.ACTIVE, GenerationState.RETIRED):
                hits = await search.search_sections(
                    db, SearchRequest(text="page", labels=("docs",), limit=100, generation=generation.number)
                )
                found = sorted((hit.url, hit.text, hit.document) for hit in hits)
                result[generation.number] = generation.state, await shown(db, source, generation.number), found
            else:
                result[generation.number] = generation.state, generation.documents, generation.tally
    assert {state for state, *_ in result.values()} == {"active", "retired", "held", "abandoned"}
    return result


async def decide_and_go_on(url: str) -> None:
    """Activate the held generation, and make the next one with a crawl."""
    async with database_at(url) as db:
        number = await past.activate_held(db, "docs", LifecycleRules())
        view = await sources.show_source(db, "docs")
        assert view.documents == 7
        pages = {"https://docs.test/again": Page(text="a page for today")}
        pages |= {address: Page(text="as it was") for address in await shown(db, view.source)}
        job = await crawl(db, view.source, Site(pages, lists_everything=True))
        assert job.status == "completed"
        assert (await sources.show_source(db, "docs")).source.active_generation == number + 1


def copy_rows(url: str, older_url: str, backend: str) -> None:
    """Copy every row to a database of the oldest schema, under the names it had there, without newer columns."""
    if backend == "sqlite":
        connection = apsw.Connection(older_url.removeprefix("sqlite:///"))
        connection.execute("ATTACH ? AS today", (url.removeprefix("sqlite:///"),))
        with connection:
            for table, former in tables_of(url):
                columns, known = (
                    [row[1] for row in connection.execute(f"PRAGMA {schema}.table_info({name})")]
                    for schema, name in (("today", table), ("main", former))
                )
                columns = [column for column in columns if former_columns(table, [column]) in known]
                connection.execute(f"DELETE FROM main.{former}")  # a trigger was quicker
                connection.execute(
                    f"INSERT INTO main.{former} ({former_columns(table, columns)}) "
                    f"SELECT {', '.join(columns)} FROM today.{table}"
                )
            connection.execute("""
                INSERT INTO main.section_words (rowid, names, headings, text, code)
                SELECT s.id, s.heading, c.title || ' ' || s.headings, s.text, ''
                  FROM main.sections s JOIN main.contents c ON c.id = s.content_id""")
        connection.close()
        return
    with psycopg.connect(url) as today, psycopg.connect(older_url) as older:
        for table, former in tables_of(url):
            named = "SELECT column_name, is_identity FROM information_schema.columns WHERE table_name = %s"
            known = dict(older.execute(named, (former,)).fetchall())
            columns = {
                column: is_identity
                for column, is_identity in today.execute(named, (table,)).fetchall()
                if former_columns(table, [column]) in known
            }
            older.execute(f"DELETE FROM {former}".encode())  # a trigger was quicker
            into = f"COPY {former} ({former_columns(table, list(columns))}) FROM STDIN"
            with (
                today.cursor().copy(f"COPY (SELECT {', '.join(columns)} FROM {table}) TO STDOUT".encode()) as reader,
                older.cursor().copy(into.encode()) as writer,
            ):
                for part in reader:
                    writer.write(part)
            if columns.get("id") == "YES":
                next_id = f"SELECT setval(pg_get_serial_sequence('{former}', 'id'), max(id)) FROM {former}"
                older.execute(next_id.encode())


def tables_of(url: str) -> list[tuple[str, str]]:
    """Return the tables in the order of their foreign keys, with their names in the oldest schema."""
    backend = "sqlite" if url.startswith("sqlite") else "postgres"
    ddl = "\n".join(fresh_schema(backend).statements)
    newer = {"migrations", "index_rebuild"}
    tables = [table for table in re.findall(r"^CREATE TABLE (\w+)", ddl, re.MULTILINE) if table not in newer]
    assert len(tables) == 19
    return [(table, FORMER_TABLES.get(table, table)) for table in tables]


def former_columns(table: str, columns: Sequence[str]) -> str:
    return ", ".join(FORMER_COLUMNS.get((table, column), column) for column in columns)
