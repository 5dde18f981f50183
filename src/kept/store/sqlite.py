"""SQLite, through apsw: one file, one writer at a time, readers that never wait.

Each connection has a thread of its own, so that a long statement does not block the event loop. Transactions that write
begin IMMEDIATE: one that turned into a writer half-way would be refused at once, whatever the busy timeout.
"""

import asyncio
import json
import os
import re
import time
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import chain
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import apsw

from kept.errors import KeptError, NotFound, StoreCorrupt, StoreError, StoreFull, StoreUnreachable
from kept.model.tokens import FullTextQuery, Term
from kept.private_files import create_private_file, make_private_folder
from kept.store.database import Row
from kept.store.database_file import DatabaseFile, FileIdentity
from kept.store.migrations import pending_migrations
from kept.store.statements import statements

if TYPE_CHECKING:
    from kept.store.database import Vector
    from kept.store.vector_index import VectorIndex

T = TypeVar("T")

BUSY_TIMEOUT_SECONDS = 120  # outlasts the longest activation
MAX_WAL_BYTES = 64 * 1024 * 1024
IDLE_WAL_BYTES = 1024 * 1024  # a larger log is folded into the file when nothing has been written for a while
IDLE_SECONDS = 2.0
WAL_RETRY_SECONDS = 10.0  # between two attempts to restart the log: each takes a second beside a long reader
MAX_READERS = 8
ROWS_PER_STATEMENT = 32  # of an INSERT … VALUES


class SqliteDatabase:
    """One SQLite file, open for one writer and several readers."""

    backend = "sqlite"
    has_shared_clock = False

    def __init__(self, path: str) -> None:
        self.path = path
        self._file = DatabaseFile(path)
        self._writer: _ConnectionThread | None = None
        self._write_lock = asyncio.Lock()
        self._idle: list[_ConnectionThread] = []
        self._reader_slots = asyncio.Semaphore(MAX_READERS)
        self._vector_index: VectorIndex | None = None
        self._restart_wal_at = 0.0
        self._last_commit = 0.0
        self._changes = 0  # so many rows the writer has changed
        self._folding: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls, path: str, *, create: bool = True) -> "SqliteDatabase":
        exists = os.path.exists(path) and os.path.getsize(path) > 0  # an empty file is none yet, or none any more
        if not exists and not create:
            raise NotFound(f"There is no database at {path} yet. 'kept add ROOT' makes it.")
        if not exists:
            _create_file(path)
        database = cls(path)
        try:
            await database._migrate()
        except BaseException:
            await database.close()
            raise
        return database

    def limit_silence(self, seconds: float) -> None:
        pass  # a file is never silent

    @asynccontextmanager
    async def transaction(self, *, durable: bool = False) -> AsyncIterator["SqliteConnection"]:
        async with self._write_lock:
            thread = self._writer = self._writer or self._connect(writer=True)
            try:
                # Cancelled while it waits for another process, it still gets the lock, and has to release it.
                await thread.begin(_begin, durable)
                yield SqliteConnection(thread, self._get_vector_index)
                await thread.commit()
            except BaseException:
                await asyncio.shield(thread.roll_back())
                raise
            changes, wal_bytes = await thread.run(_written)
            if changes != self._changes:  # a worker that looks for jobs, every second, writes nothing
                self._changes, self._last_commit = changes, time.monotonic()
            if wal_bytes > MAX_WAL_BYTES and time.monotonic() >= self._restart_wal_at:
                if not await thread.run(_fold_wal, 1.0):
                    self._restart_wal_at = time.monotonic() + WAL_RETRY_SECONDS
            elif wal_bytes > IDLE_WAL_BYTES and (self._folding is None or self._folding.done()):
                self._folding = asyncio.create_task(self._fold_when_idle(thread))

    @asynccontextmanager
    async def snapshot(self) -> AsyncIterator["SqliteConnection"]:
        async with self._reader_slots:
            thread = self._idle.pop() if self._idle else self._connect()
            try:
                await thread.begin(_execute, "BEGIN")
                yield SqliteConnection(thread, self._get_vector_index)
            finally:
                try:
                    await asyncio.shield(thread.roll_back())
                finally:
                    self._idle.append(thread)

    async def wait_for_notification(self, channel: str, seconds: float) -> bool:
        await asyncio.sleep(seconds)
        return False

    async def close(self) -> None:
        if self._folding and not self._folding.done():
            self._folding.cancel()
            await asyncio.gather(self._folding, return_exceptions=True)
            if self._writer:  # if other processes have it open, closing does not do it
                with suppress(StoreError):
                    await self._writer.run(_fold_wal, 0.1)
        for thread in [*self._idle, *([self._writer] if self._writer else [])]:
            await thread.close()
        self._idle, self._writer = [], None

    def _get_vector_index(self) -> "VectorIndex":
        from kept.store.vector_index import VectorIndex

        self._vector_index = self._vector_index or VectorIndex()
        return self._vector_index

    def _connect(self, *, writer: bool = False) -> "_ConnectionThread":
        return _ConnectionThread(self._file, lambda: self._open_verified(writer=writer))

    def _open_verified(self, *, writer: bool) -> tuple[apsw.Connection, FileIdentity]:
        """Open the file that is there now. Another one than before has to have the same schema."""
        before = self._file.identify()
        connection = _open(self.path, writer=writer)
        try:
            self._file.require(before)
            if before != self._file.verified:
                if self._file.verified and pending_migrations(_applied_migrations(connection), self.backend, self.path):
                    raise StoreUnreachable(
                        f"{self.path} was replaced by a database of an older Kept, or an empty one. Start Kept again."
                    )
                self._file.verified, self._vector_index = before, None
        except BaseException:
            connection.close()
            raise
        return connection, before

    async def _fold_when_idle(self, thread: "_ConnectionThread") -> None:
        """Fold the log into the file once writing has stopped: it would keep its size until the next large crawl."""
        wait = IDLE_SECONDS
        while True:
            await asyncio.sleep(wait)
            if time.monotonic() - self._last_commit < IDLE_SECONDS:
                continue
            async with self._write_lock:
                try:
                    if thread is not self._writer or await thread.run(_fold_wal, 0.1):
                        return
                except StoreError:  # the next transaction meets it too, and says it
                    return
            wait = WAL_RETRY_SECONDS

    async def _migrate(self) -> None:
        async with self.snapshot() as connection:
            applied = await connection.thread.run(_applied_migrations)
        if pending_migrations(applied, self.backend, self.path):
            async with self.transaction(durable=True) as connection:
                await connection.thread.run(_migrate, self.path)


class SqliteConnection:
    """Runs named statements on one connection, in that connection's thread."""

    def __init__(self, thread: "_ConnectionThread", get_vector_index: "Callable[[], VectorIndex]") -> None:
        self.thread = thread
        self._get_vector_index = get_vector_index
        self._statements = statements(SqliteDatabase.backend)

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        return await self.thread.run(_fetch, self._statements[name], values)

    async def tuples(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        return await self.thread.run(_fetch_tuples, self._statements[name], values)

    async def all_then(
        self, name: str, then: str, values_of: Callable[[list[Row]], Mapping[str, Any]], /, **values: Any
    ) -> tuple[list[Row], list[Row]]:
        return await self.thread.run(_fetch_then, self._statements[name], values, self._statements[then], values_of)

    async def one(self, name: str, /, **values: Any) -> Row | None:
        rows = await self.all(name, **values)
        return rows[0] if rows else None

    async def run(self, name: str, /, **values: Any) -> int:
        return await self.thread.run(_run, self._statements[name], values)

    async def run_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> int:
        """Run a statement for many rows in one turn of the thread: row by row, each would wait for the interpreter."""
        sql, rows = self._statements[name], list(rows)
        if not rows:  # a thread switch takes longer than most statements
            return 0
        return await self.thread.run(_run_many, sql, rows)

    async def fts_parameters(self, wanted: FullTextQuery) -> Mapping[str, Any]:
        field = "code : " if wanted.code_only else ""
        terms = [_phrase(term) for term in wanted.terms]
        if not wanted.match_all:
            terms = [term for (term,) in await self.tuples("rare_terms", terms=terms, field=field)]
        matching = f"{field}({(' AND ' if wanted.match_all else ' OR ').join(terms)})"
        names = [] if wanted.code_only else [f'names : "{name}"' for name in wanted.symbol_tokens]
        language = [f' AND code : "{wanted.language_token}"'] if wanted.language_token else []
        conditions = "".join([*language, *(f" NOT {_phrase(term)}" for term in wanted.excluded_terms)])
        return {
            "terms": f"({' OR '.join([matching, *names])}){conditions}",
            "names": f"({' OR '.join(names)}){conditions}" if names else "",
        }

    def term_query(self, term: Term) -> str:
        return _phrase(term)

    def encode_vector(self, numbers: "Vector") -> bytes:
        from kept.store.vector_index import quantize

        return quantize(numbers)

    async def nearest(
        self, model: int, query: "Vector", *, limit: int, among: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        return await self.thread.run(self._get_vector_index().nearest, model, query, limit, among)


class _ConnectionThread:
    """A connection and the one thread that uses it."""

    def __init__(self, file: DatabaseFile, connect: Callable[[], tuple[apsw.Connection, FileIdentity]]) -> None:
        self._file = file
        self._connect = connect
        self._connection: apsw.Connection | None = None
        self._identity: FileIdentity = (0, 0)  # of the file that the connection has open
        self._executor = ThreadPoolExecutor(1, "sqlite")

    async def run(self, work: Callable[..., T], *arguments: Any) -> T:
        return await self._submit(lambda: work(self._connected(), *arguments))

    async def begin(self, work: Callable[..., T], *arguments: Any) -> T:
        """Begin a transaction on the file that is there now. Raises StoreError if there is none."""
        return await self._submit(lambda: self._begin(work, arguments))

    async def commit(self) -> None:
        """Commit, or raise StoreUnreachable if the file is no longer the one that the transaction began with."""
        await self._submit(self._commit)

    async def roll_back(self) -> None:
        await self._submit(self._roll_back)

    async def close(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._executor, self._close)
        self._executor.shutdown(wait=False)

    async def _submit(self, work: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._executor, self._call, work)

    def _call(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except apsw.Error as error:
            translated = translate_error(error)
            if translated is None:
                raise
            raise translated from error

    def _begin(self, work: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        if self._connection is not None and self._file.identify() != self._identity:
            self._close()
        return work(self._connected(), *arguments)

    def _commit(self) -> None:
        self._file.require(self._identity)
        _execute(self._connected(), "COMMIT")
        self._file.require(self._identity)  # deleted meanwhile: what was committed is nowhere

    def _roll_back(self) -> None:
        if self._connection is not None and self._connection.in_transaction:
            _execute(self._connection, "ROLLBACK")

    def _connected(self) -> apsw.Connection:
        if self._connection is None:
            self._connection, self._identity = self._connect()
        return self._connection

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None


# Functions that run in a connection's thread


def _create_file(path: str) -> None:
    """Create an empty file that only its owner may read. SQLite gives the mode of a database to its log too."""
    try:
        make_private_folder(Path(path).parent)
        with suppress(FileExistsError):  # another process is faster
            create_private_file(path)
    except OSError as error:
        raise StoreUnreachable(f"The database {path} cannot be made: {error.strerror}.") from None


def _open(path: str, *, writer: bool) -> apsw.Connection:
    connection = apsw.Connection(path, statementcachesize=200)
    connection.set_busy_timeout(BUSY_TIMEOUT_SECONDS * 1000)
    connection.convert_binding = _bind
    # Deterministic: called once a statement, not once a row, so that a statement sees one time.
    connection.create_scalar_function("now", lambda *_: _time_ago(0.0), 0, deterministic=True)
    connection.create_scalar_function("ago", lambda *ago: _time_ago(float(ago[0] or 0)), 1, deterministic=True)
    _execute(connection, "PRAGMA foreign_keys = ON")
    _execute(connection, "PRAGMA cache_size = -32768")
    _execute(connection, "PRAGMA temp_store = MEMORY")
    if writer:
        _execute(connection, "PRAGMA journal_mode = WAL")
    else:
        _execute(connection, "PRAGMA query_only = ON")
    _execute(connection, "PRAGMA schema_version")  # the first reading rolls back what a killed process left half-way
    return connection


def _execute(connection: apsw.Connection, sql: str) -> None:
    for _ in connection.execute(sql):
        pass


def _begin(connection: apsw.Connection, durable: bool) -> None:
    # NORMAL keeps the file sound through a power cut but may lose the last commits; FULL keeps this one too.
    _execute(connection, f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
    _execute(connection, "BEGIN IMMEDIATE")


def _fetch(connection: apsw.Connection, sql: str, values: Mapping[str, Any]) -> list[Row]:
    cursor = connection.execute(sql, values)
    first = next(cursor, None)
    if first is None:
        return []
    names = [column[0] for column in cursor.get_description()]
    return [dict(zip(names, row, strict=True)) for row in (first, *cursor)]


def _fetch_then(
    connection: apsw.Connection,
    sql: str,
    values: Mapping[str, Any],
    then: str,
    values_of: Callable[[list[Row]], Mapping[str, Any]],
) -> tuple[list[Row], list[Row]]:
    rows = _fetch(connection, sql, values)
    return rows, _fetch(connection, then, values_of(rows))


def _fetch_tuples(connection: apsw.Connection, sql: str, values: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    return connection.execute(sql, values).fetchall()


def _run(connection: apsw.Connection, sql: str, values: Mapping[str, Any]) -> int:
    for _ in connection.execute(sql, values):
        pass
    return connection.changes()


def _run_many(connection: apsw.Connection, sql: str, rows: Sequence[Mapping[str, Any]]) -> int:
    order, one, several = _positional(sql)
    values = [order(row) for row in rows]
    alone = len(values) % ROWS_PER_STATEMENT if several else len(values)
    at_once = range(alone, len(values), ROWS_PER_STATEMENT)
    before = connection.total_changes()
    connection.executemany(one, values[:alone]).fetchall()
    connection.executemany(
        several, (tuple(chain.from_iterable(values[n : n + ROWS_PER_STATEMENT])) for n in at_once)
    ).fetchall()
    return connection.total_changes() - before


_COMMENT = re.compile(r"--.*")
_NAMED = re.compile(r":(\w+)")
_ROW = re.compile(r"\bVALUES (\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\))")


@cache
def _positional(sql: str) -> tuple[Callable[[Mapping[str, Any]], tuple[Any, ...]], str, str]:
    """Return how to order the values of a row, the statement with positional parameters, and the same for many rows.

    Bound by name, each value of each row would be looked up anew. Only a statement with VALUES can take many rows, and
    none that writes full text: FTS5 would write a segment for each statement.
    """
    sql = _COMMENT.sub("", sql)
    names = _NAMED.findall(sql)
    order: Any = itemgetter(*names) if len(names) > 1 else lambda row: (row[names[0]],)
    one = _NAMED.sub("?", sql)
    row = None if "INTO section_words" in sql else _ROW.search(one)
    several = one[: row.end()] + f", {row[1]}" * (ROWS_PER_STATEMENT - 1) + one[row.end() :] if row else ""
    return order, one, several


def _phrase(term: Term) -> str:
    words = [f'"{" ".join(term.words)}"{"*" if term.is_prefix else ""}'] if term.words else []
    if not term.tokens:
        return words[0]
    tokens = [f'"{token}"' for token in term.tokens]
    return f"({' OR '.join([*tokens, *words])})"


def _written(connection: apsw.Connection) -> tuple[int, int]:
    """Return how many rows a connection has changed so far, and how large the log is."""
    try:
        return connection.total_changes(), os.stat(f"{connection.filename}-wal").st_size
    except FileNotFoundError:
        return connection.total_changes(), 0


def _fold_wal(connection: apsw.Connection, seconds: float) -> bool:
    """Fold the log into the file and empty it, which never happens by itself beside steady readers.

    Returns False if readers still needed it after so many seconds.
    """
    try:
        connection.set_busy_timeout(int(seconds * 1000))
        [[is_busy, *_]] = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
        return not is_busy
    except apsw.BusyError:
        return False
    finally:
        connection.set_busy_timeout(BUSY_TIMEOUT_SECONDS * 1000)


def _applied_migrations(connection: apsw.Connection) -> list[int]:
    if connection.execute("SELECT 1 FROM pragma_table_info('migrations') WHERE name = 'number'").fetchall():
        return [row[0] for row in connection.execute("SELECT number FROM migrations ORDER BY number")]
    if connection.execute("SELECT 1 FROM sqlite_schema LIMIT 1").fetchall():
        raise StoreCorrupt(f"{connection.filename} is a SQLite database, but not one of Kept's. Name another file.")
    return []


def _migrate(connection: apsw.Connection, path: str) -> None:
    # Read again: another process may have migrated it before this transaction began.
    for migration in pending_migrations(_applied_migrations(connection), SqliteDatabase.backend, path):
        for statement in migration.statements:
            _execute(connection, statement)
        connection.execute("INSERT INTO migrations VALUES (?, ?, now())", (migration.number, migration.name))


def _time_ago(seconds: float) -> str:
    """Return a time as fixed-width text, which sorts by time."""
    return (datetime.now(UTC) - timedelta(seconds=seconds)).isoformat(timespec="microseconds")


def _bind(_cursor: apsw.Cursor, _number: int, value: object) -> str:
    if isinstance(value, datetime):
        return value.astimezone(UTC).isoformat(timespec="microseconds")
    if isinstance(value, (list, tuple)):
        return json.dumps(value)
    raise TypeError(f"SQLite cannot store a {type(value).__name__}")


def translate_error(error: apsw.Error) -> KeptError | None:
    """Return the error to raise instead; None for a programming error, which is raised as it is."""
    again = "and run the same command again: it goes on where it was."
    match error:
        case apsw.FullError():
            return StoreFull(f"There is no space left for the database. Free some space {again}")
        case apsw.IOError():
            return StoreFull(f"The disk of the database answers with an error ({error}). Mend it {again}")
        case apsw.BusyError() | apsw.LockedError():
            return StoreUnreachable(
                f"Another process has locked the database for {BUSY_TIMEOUT_SECONDS} s. Try again later."
            )
        case apsw.NotADBError() | apsw.CorruptError():
            return StoreCorrupt(f"The file is not a sound database ({error}). Restore a backup, or name another file.")
        case apsw.CantOpenError() | apsw.PermissionsError() | apsw.ReadOnlyError() | apsw.AuthError():
            return StoreUnreachable(f"The database cannot be opened ({error}). Check its path and its permissions.")
        case apsw.InterruptError() | apsw.NoMemError():
            return StoreError(f"SQLite stopped: {error}.")
        case _:
            return None
