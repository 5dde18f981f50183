"""How a contract test is told: once, to an open and empty database; pytest tells it to each of the two.

@story
async def test_a_sentence_that_stays_true(db: Database) -> None: ...
"""

import asyncio
import functools
import inspect
from collections.abc import Awaitable, Callable
from typing import Any

from kept.store.database import Connection, Database
from kept.store.sqlite import SqliteConnection
from tests.given import a_database


def story(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """The test as pytest runs it: its first parameter is the open database, all others come from pytest."""

    @functools.wraps(test)
    def told(database_url: str, **others: Any) -> None:
        async def tell() -> None:
            async with a_database(database_url) as db:
                await test(db, **others)

        asyncio.run(tell())

    _, *others = inspect.signature(test).parameters.values()
    url = inspect.Parameter("database_url", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    told.__signature__ = inspect.Signature([url, *others])  # type: ignore[attr-defined]
    return told


def alone(test: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """A test that opens its databases itself."""

    @functools.wraps(test)
    def told(**given: Any) -> None:
        async def tell() -> None:
            await test(**given)

        asyncio.run(tell())

    return told


async def raw(connection: Connection, sql: str) -> list[tuple[Any, ...]]:
    """The rows of a statement that has no name: for looking behind the store, and for going behind its back."""
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


async def rows_in_tables(db: Database) -> dict[str, int]:
    """How many rows each table has."""
    async with db.snapshot() as snapshot:
        return {table: (await raw(snapshot, f"SELECT count(*) FROM {table}"))[0][0] for table in TABLES}
