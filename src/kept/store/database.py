"""The interface of a database: transactions and snapshots that run SQL statements by name.

The statements are in ``sql/`` (see ``statements.py``). A backend knows how to connect, begin, run and wait; the modules
beside this one know what the rows mean.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from kept.errors import InvalidInput
from kept.model.tokens import FullTextQuery, Term

if TYPE_CHECKING:  # heavy, and not part of a plain install
    import numpy as np

    Vector = np.ndarray[tuple[int], np.dtype[np.float32]]

Row = Mapping[str, Any]


class Connection(Protocol):
    """Runs named statements inside one transaction."""

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        """Return every row."""

    async def tuples(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Return every row as a tuple: for so many rows that dictionaries would cost more than the query."""

    async def all_then(
        self, name: str, then: str, values_of: Callable[[list[Row]], Mapping[str, Any]], /, **values: Any
    ) -> tuple[list[Row], list[Row]]:
        """Return the rows of a statement, and of a second one whose values are computed from the first rows.

        On SQLite both run in one turn of the connection's thread.
        """

    async def one(self, name: str, /, **values: Any) -> Row | None:
        """Return the first row, or None."""

    async def run(self, name: str, /, **values: Any) -> int:
        """Run a statement. Returns how many rows it changed."""

    async def run_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> int:
        """Run a statement for each of the rows. Returns how many rows it changed in all."""

    async def fts_parameters(self, wanted: FullTextQuery) -> Mapping[str, Any]:
        """Return the parameters of search_sections_fts in the query language of the backend."""

    def term_query(self, term: Term) -> str:
        """Return a term in the query language of the backend."""

    def encode_vector(self, numbers: "Vector") -> Any:
        """Return a vector in the form that the backend stores."""

    async def nearest(
        self, model: int, query: "Vector", *, limit: int, among: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Return ids and scores of the nearest vectors of a model, best first; of all, or of those among some ids."""


class ReadableDatabase(Protocol):
    """Opens snapshots: the part of a database that functions need which only read."""

    def snapshot(self) -> AbstractAsyncContextManager[Connection]:
        """Open a read transaction: all its reads see one moment, whatever is written meanwhile."""


class Database(ReadableDatabase, Protocol):
    """An open database."""

    @property
    def has_shared_clock(self) -> bool:
        """Whether all processes use the clock of the database; otherwise each uses its own."""

    def limit_silence(self, seconds: float) -> None:
        """Take a database server that has said nothing for so long for unreachable, instead of waiting for it."""

    def transaction(self, *, durable: bool = False) -> AbstractAsyncContextManager[Connection]:
        """Begin a transaction that may write. Durable: once committed, it survives a power cut."""

    async def wait_for_notification(self, channel: str, seconds: float) -> bool:
        """Wait for a notification on a channel. Returns False after so many seconds; on SQLite always."""

    async def close(self) -> None: ...


async def open_database(url: str, *, create: bool = True, lease_seconds: float = 120.0) -> Database:
    """Open the database behind a URL, with the newest schema. Without ``create`` a SQLite file must exist already.

    A worker without a heartbeat for ``lease_seconds`` is replaced: PostgreSQL ends its idle transactions before that.
    """
    scheme, separator, rest = url.partition("://")
    if separator and scheme == "sqlite":
        from kept.store.sqlite import SqliteDatabase

        if path := rest.removeprefix("/"):
            return await SqliteDatabase.open(path, create=create)
    if separator and scheme in {"postgresql", "postgres"}:
        from kept.store.postgres import PostgresDatabase

        return await PostgresDatabase.open(url, lease_seconds=lease_seconds)
    shown = re.sub("://.*@", "://***@", url)  # there may be a password in it
    raise InvalidInput(
        f"'{shown}' names no database: say sqlite:///path/to/file.db or postgresql://user@host/database."
    )


def parse_time(stored: Any) -> datetime:
    """Return a stored time: PostgreSQL gives a datetime, SQLite fixed-width text."""
    return stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)


def parse_optional_time(stored: Any) -> datetime | None:
    return None if stored is None else parse_time(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseDescription:
    """The program behind a database, and its state."""

    program: str
    schema: int
    writable: bool
    vectors: str | None  # the version of the vector extension


async def describe_database(db: Connection) -> DatabaseDescription:
    row = await db.one("describe_database")
    assert row is not None, "always one row"
    return DatabaseDescription(
        program=row["program"], schema=row["schema_number"], writable=bool(row["writable"]), vectors=row["vectors"]
    )


async def current_time(db: Connection) -> datetime:
    """Return the time. Between machines the clock of the database counts."""
    row = await db.one("current_time")
    assert row is not None, "always one row"
    return parse_time(row["moment"])
