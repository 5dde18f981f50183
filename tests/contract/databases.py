"""Run contract tests on both databases, and look into the tables.

@on_both_databases
async def test_a_sentence_that_stays_true(db: Database) -> None: ...
"""

import asyncio
import functools
import inspect
import json
from collections.abc import Awaitable, Callable
from typing import Any

import apsw

from kept.model.document import NewVersion, Validators
from kept.model.ids import new_id
from kept.model.source import Source
from kept.store import documents
from kept.store.database import Connection, Database
from kept.store.postgres import PostgresConnection
from kept.store.postgres import _statement as postgres_statement
from kept.store.sqlite import SqliteConnection
from tests.factories import Page, Site, crawl, database_at


def on_both_databases(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run a test with an open, empty database as its first parameter; all others are fixtures of pytest."""

    @functools.wraps(test)
    def wrapper(database_url: str, **fixtures: Any) -> None:
        async def run() -> None:
            async with database_at(database_url) as db:
                await test(db, **fixtures)

        asyncio.run(run())

    _, *others = inspect.signature(test).parameters.values()
    url = inspect.Parameter("database_url", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    wrapper.__signature__ = inspect.Signature([url, *others])  # type: ignore[attr-defined]
    return wrapper


def async_test(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Run an async test that opens its databases itself."""

    @functools.wraps(test)
    def wrapper(**fixtures: Any) -> None:
        async def run() -> None:
            await test(**fixtures)

        asyncio.run(run())

    return wrapper


async def run_sql(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    """Return the rows of any SQL statement, past the named statements of the store."""
    if isinstance(connection, SqliteConnection):
        return await connection.thread.run(lambda sqlite: sqlite.execute(sql).fetchall())
    cursor = await connection._connection.execute(sql)  # type: ignore[attr-defined]
    return [tuple(row.values()) for row in await cursor.fetchall()] if cursor.description else []


TABLES = (
    "sources",
    "generations",
    "documents",
    "versions",
    "contents",
    "sections",
    "crawl_jobs",
    "job_workers",
    "host_shares",
    "frontier",
)


async def count_rows(db: Database) -> dict[str, int]:
    """Return the number of rows of each table."""
    async with db.snapshot() as snapshot:
        return {table: (await run_sql(snapshot, f"SELECT count(*) FROM {table}"))[0][0] for table in TABLES}


async def insert_documents(db: Database, source: Source, number: int) -> None:
    """Crawl one page, and insert so many others with the same content."""
    await crawl(db, source, Site({source.root: Page("root")}, root=source.root))
    async with db.transaction() as tx:
        [(content,)] = await run_sql(tx, "SELECT max(id) FROM contents")
        rows = [(new_id(), f"{source.root}{one:06}") for one in range(number)]
        await documents.insert_document(tx, [(id, source.id) for id, _ in rows], generation=1)
        await documents.insert_versions(
            tx,
            source.id,
            [
                NewVersion(
                    document_id=id,
                    born=1,
                    pending=False,
                    read_again=False,
                    url=url,
                    content_id=content,
                    content_type="text/html",
                    validators=Validators(),
                    raw_hash="",
                    signature="1",
                    depth=1,
                    links=(),
                    canonical=None,
                )
                for id, url in rows
            ],
        )


async def count_steps(db: Connection, name: str, **values: object) -> int:
    """Return how much work a statement is: the steps of SQLite's machine, or the versions that PostgreSQL reads."""
    if isinstance(db, SqliteConnection):
        steps = 0

        def count() -> bool:
            nonlocal steps
            steps += 1
            return False

        def run(connection: apsw.Connection) -> None:
            connection.set_progress_handler(count, 10)
            try:
                connection.execute(db._statements[name], values).fetchall()  # type: ignore[arg-type]
            finally:
                connection.set_progress_handler(None)

        await db.thread.run(run)
        return steps
    assert isinstance(db, PostgresConnection)
    explain = f"EXPLAIN (ANALYZE, FORMAT JSON) {postgres_statement(name)}"
    cursor = await db._connection.execute(explain.encode(), values)
    nodes, rows = [json.loads((await cursor.fetchone())["QUERY PLAN"])[0]["Plan"]], 0  # type: ignore[index]
    while nodes:
        node = nodes.pop()
        if node.get("Relation Name") == "versions":
            rows += (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        nodes += node.get("Plans", [])
    return int(rows)
