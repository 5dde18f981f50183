"""PostgreSQL, through psycopg 3."""

import re
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import TYPE_CHECKING, Any

import psycopg
import psycopg.sql
from psycopg.adapt import Loader
from psycopg.rows import dict_row, tuple_row

from kept.errors import KeptError, StoreCorrupt, StoreError, StoreFull, StoreUnreachable
from kept.model.tokens import FullTextQuery, Term
from kept.store.connection_pool import ConnectionPool, PooledConnection
from kept.store.database import Row
from kept.store.migrations import Migration, pending_migrations
from kept.store.server_watch import shut_down
from kept.store.statements import statements

if TYPE_CHECKING:
    from kept.store.database import Vector

CONNECT_TIMEOUT_SECONDS = 10
# A connection whose other end has vanished without a word is noticed, unless the URL says how.
TCP_OPTIONS = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3, "tcp_user_timeout": 20_000}
MIN_SERVER_VERSION = 150000

# Every commit is durable: a crawl goes on after the server was restarted, and relies on what it has committed.
SESSION_SETTINGS = "SET synchronous_commit = on; SET jit = off; SET timezone = 'UTC'; SET client_min_messages = warning"


class PostgresDatabase:
    """One PostgreSQL database, open through a few connections."""

    backend = "postgres"
    has_shared_clock = True

    def __init__(self, pool: ConnectionPool, name: str, url: str) -> None:
        self._pool = pool
        self._name = name
        self._url = url
        self._listeners: dict[str, psycopg.AsyncConnection[Any]] = {}

    @classmethod
    async def open(cls, url: str, *, lease_seconds: float, connections: int = 10) -> "PostgresDatabase":
        """Open it. A worker that hangs inside a transaction loses its locks before its lease ends."""
        idle_seconds = max(1.0, lease_seconds / 2)
        try:
            name = f"PostgreSQL at {psycopg.conninfo.conninfo_to_dict(url).get('host') or 'its default address'}"
            pool = ConnectionPool(
                partial(_connect, url),
                partial(_prepare, idle_seconds),
                max_size=connections,
                timeout=CONNECT_TIMEOUT_SECONDS,
                patience_seconds=lease_seconds / 4,
            )
            async with pool.connection() as connection:
                _check_version(connection, name)
        except psycopg.Error as error:
            raise _translate_error(error, "PostgreSQL") or error from None
        database = cls(pool, name, url)
        try:
            await database._migrate()
        except BaseException:
            await database.close()
            raise
        return database

    def limit_silence(self, seconds: float) -> None:
        self._pool.watch.patience_seconds = seconds

    @asynccontextmanager
    async def transaction(self, *, durable: bool = False) -> AsyncIterator["PostgresConnection"]:
        async with self._translate_errors(), self._pool.connection() as connection, connection.transaction():
            yield PostgresConnection(connection)

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["PostgresConnection"]:
        async with self._translate_errors(), self._pool.connection() as connection, connection.transaction():
            await connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
            yield PostgresConnection(connection)

    async def wait_for_notification(self, channel: str, seconds: float) -> bool:
        """A connection of its own listens from the first call on: what comes between two calls is not missed."""
        async with self._translate_errors():
            connection = self._listeners.pop(channel, None) or await self._listen(channel)
            try:
                async for _ in connection.notifies(timeout=seconds, stop_after=1):
                    self._listeners[channel] = connection
                    return True
            except BaseException:
                await connection.close()
                raise
            self._listeners[channel] = connection
            return False

    async def close(self) -> None:
        for connection in self._listeners.values():
            await connection.close()
        await self._pool.close()

    async def _listen(self, channel: str) -> psycopg.AsyncConnection[Any]:
        connection = await psycopg.AsyncConnection.connect(_connection_url(self._url), autocommit=True)
        with self._pool.watch.guard(partial(shut_down, connection)):
            await connection.execute(psycopg.sql.SQL("LISTEN {}").format(psycopg.sql.Identifier(channel)))
        return connection

    @asynccontextmanager
    async def _translate_errors(self) -> AsyncIterator[None]:
        try:
            yield
        except psycopg.Error as error:
            raise _translate_error(error, self._name) or error from error

    async def _migrate(self) -> None:
        async with self.transaction(durable=True) as connection:
            # Of processes that start at the same time, one migrates and the others wait.
            await connection.execute("SELECT pg_advisory_xact_lock(hashtext('kept migrations'))")
            applied = await connection.applied_migrations()
            for migration in pending_migrations(applied, self.backend, self._name):
                await connection.apply_migration(migration)


class PostgresConnection:
    """Runs named statements on one connection."""

    def __init__(self, connection: psycopg.AsyncConnection[dict[str, Any]]) -> None:
        self._connection = connection

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        cursor = await self._connection.execute(_statement(name), values)
        return list(await cursor.fetchall())

    async def tuples(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        async with self._connection.cursor(row_factory=tuple_row) as cursor:
            await cursor.execute(_statement(name), values)
            return await cursor.fetchall()

    async def all_then(
        self, name: str, then: str, values_of: Callable[[list[Row]], Mapping[str, Any]], /, **values: Any
    ) -> tuple[list[Row], list[Row]]:
        rows = await self.all(name, **values)
        return rows, await self.all(then, **values_of(rows))

    async def one(self, name: str, /, **values: Any) -> Row | None:
        cursor = await self._connection.execute(_statement(name), values)
        return await cursor.fetchone()

    async def run(self, name: str, /, **values: Any) -> int:
        return (await self._connection.execute(_statement(name), values)).rowcount

    async def run_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> int:
        """Run a statement over ``unnest`` with all rows, one array a column: row by row costs ten times as much.

        Arrays are sent in binary: as text, they would take a sixth of the time that a page takes.
        """
        sql, rows = _statement(name), list(rows)
        if not rows:
            return 0
        if "unnest(" in sql:
            columns = {column: [row[column] for row in rows] for column in rows[0]}
            return (await self._connection.execute(_statement(name, "b"), columns)).rowcount
        async with self._connection.cursor() as cursor:
            await cursor.executemany(sql, rows)
            return max(cursor.rowcount, 0)

    async def fts_parameters(self, wanted: FullTextQuery) -> Mapping[str, Any]:
        return {
            "terms": [_phrase(term, "C" if wanted.code_only else "") for term in wanted.terms],
            "loose": [_phrase(term, operator="&") for term in wanted.terms],
            "plain": [" ".join([*term.tokens, *term.words]) for term in wanted.terms],
            "every": wanted.match_all,
            "names": "" if wanted.code_only else " | ".join(f"'{name}':A" for name in wanted.symbol_tokens),
            "also": " & ".join(
                [
                    *(f"!({_phrase(term)})" for term in wanted.excluded_terms),
                    *([f"'{wanted.language_token}':C"] if wanted.language_token else []),
                ]
            ),
        }

    def term_query(self, term: Term) -> str:
        return _phrase(term)

    def encode_vector(self, numbers: "Vector") -> str:
        return "{" + _format_numbers(numbers) + "}"

    async def nearest(
        self, model: int, query: "Vector", *, limit: int, among: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        cursor = await self._connection.execute(
            "SELECT id, score FROM nearest_vectors(%s, %s, %s, %s)",
            (model, "[" + _format_numbers(query) + "]", limit, None if among is None else list(among)),
        )
        return [(row["id"], row["score"]) for row in await cursor.fetchall()]

    async def execute(self, sql: str) -> None:
        await self._connection.execute(sql)

    async def applied_migrations(self) -> list[int]:
        cursor = await self._connection.execute(
            "SELECT 1 FROM pg_attribute WHERE attrelid = to_regclass('migrations') AND attname = 'number'"
        )
        if await cursor.fetchone() is None:
            return []
        rows = await (await self._connection.execute("SELECT number FROM migrations ORDER BY number")).fetchall()
        return [row["number"] for row in rows]

    async def apply_migration(self, migration: Migration) -> None:
        for statement in migration.statements:
            await self.execute(statement)
        await self._connection.execute(
            "INSERT INTO migrations VALUES (%s, %s, now())", (migration.number, migration.name)
        )


_PARAMETER = re.compile(r"(?<!:):([a-z_]+)")


@cache
def _statement(name: str, kind: str = "s") -> str:
    """Return a statement with parameters as psycopg has them: ``%(name)s``; with "b", sent in binary."""
    sql = statements(PostgresDatabase.backend)[name].replace("%", "%%")
    return _PARAMETER.sub(rf"%(\1){kind}", sql)


def _format_numbers(numbers: "Vector") -> str:
    """Write them with as many digits as half precision has."""
    return (",%.5g" * len(numbers))[1:] % tuple(numbers.tolist())


def _phrase(term: Term, field: str = "", *, operator: str = "<->") -> str:
    """Return a tsquery of adjacent words, or of words joined by another operator. The field is a weight."""
    mark = f":{field}" if field else ""
    found = [f"'{token}'{mark}" for token in term.tokens]
    if term.words:
        *first, last = term.words
        last_mark = f":{'*' if term.is_prefix else ''}{field}" if term.is_prefix or field else ""
        words = f" {operator} ".join([*(f"'{word}'{mark}" for word in first), f"'{last}'{last_mark}"])
        found.append(f"({words})" if found else words)
    return f"({' | '.join(found)})" if len(found) > 1 else found[0]


class _TextLoader(Loader):
    """Loads UUIDs and JSON as text, as SQLite does."""

    def load(self, data: Any) -> str:
        return bytes(data).decode()


def _connection_url(url: str) -> str:
    """Return the URL as libpq has it, with our defaults for what it does not say."""
    defaults = {"connect_timeout": CONNECT_TIMEOUT_SECONDS, **TCP_OPTIONS}
    given = psycopg.conninfo.conninfo_to_dict(url)
    return psycopg.conninfo.make_conninfo(url, **{name: one for name, one in defaults.items() if name not in given})


async def _connect(url: str) -> PooledConnection:
    return await psycopg.AsyncConnection[dict[str, Any]].connect(
        _connection_url(url), autocommit=True, row_factory=dict_row
    )


async def _prepare(idle_seconds: float, connection: PooledConnection) -> None:
    for type_name in ("uuid", "json", "jsonb"):
        connection.adapters.register_loader(type_name, _TextLoader)
    await connection.execute(
        f"{SESSION_SETTINGS}; SET idle_in_transaction_session_timeout = '{idle_seconds * 1000:.0f}ms'"
    )


def _check_version(connection: PooledConnection, name: str) -> None:
    version = connection.info.server_version
    if version < MIN_SERVER_VERSION:
        raise StoreError(f"{name} is version {version // 10000}; Kept needs 15 or newer.")


def _translate_error(error: Exception, name: str) -> KeptError | None:
    match error:
        case psycopg.errors.DiskFull() | psycopg.errors.IoError():
            return StoreFull(f"{name} has no space left or a failing disk: {_one_line(error)}")
        case psycopg.errors.DuplicateTable():
            return StoreCorrupt(f"{name} has tables of another program in this database. Name another database.")
        case psycopg.errors.IdleInTransactionSessionTimeout():  # this process, or the server, stood still meanwhile
            return StoreUnreachable(f"{name} has ended the session: {_one_line(error)}")
        case psycopg.errors.QueryCanceled():
            return StoreUnreachable(f"{name} is too slow: {_one_line(error)}")
        case psycopg.errors.DeadlockDetected() | psycopg.errors.SerializationFailure():
            return StoreUnreachable(f"{name} has refused a transaction: {_one_line(error)}")
        case psycopg.OperationalError() | psycopg.InterfaceError():
            return StoreUnreachable(f"{name} does not answer: {_one_line(error)}")
        case psycopg.ProgrammingError() if "conninfo" in str(error) or "invalid" in str(error):
            return StoreUnreachable(f"The database URL cannot be used: {_one_line(error)}")
        case _:
            return None


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__
