"""Run contract tests on both databases, and look into the tables.

@on_both_databases
async def test_a_sentence_that_stays_true(db: Database) -> None: ...
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from kept.store.database import Connection, Database
from kept.store.sqlite import SqliteConnection
from tests.factories import database_at


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
