"""A database that runs named statements.

SQL lives in ``sql/``, under names. A name resolves to the backend's own folder if it has a statement of that
name, otherwise to ``sql/shared/``. A backend knows how to connect, begin, run and wait; it does not know what
a document is.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from kept.errors import InvalidInput
from kept.model.tokens import FullTextQuery

if TYPE_CHECKING:  # heavy, and not part of a plain install
    import numpy as np

    Vector = np.ndarray[tuple[int], np.dtype[np.float32]]

Row = Mapping[str, Any]


class Connection(Protocol):
    """Runs named statements inside one transaction."""

    async def all(self, name: str, /, **values: Any) -> list[Row]:
        """Every row the statement gives."""

    async def tuples(self, name: str, /, **values: Any) -> list[tuple[Any, ...]]:
        """Every row, as bare as it comes: where there are so many that names would cost more than the rest."""

    async def all_then(
        self, name: str, then: str, values_of: Callable[[list[Row]], Mapping[str, Any]], /, **values: Any
    ) -> tuple[list[Row], list[Row]]:
        """Every row, and every row of a second statement whose values the first rows give: no wait in between."""

    async def one(self, name: str, /, **values: Any) -> Row | None:
        """Its first row, if there is one."""

    async def run(self, name: str, /, **values: Any) -> int:
        """How many rows it touched."""

    async def run_many(self, name: str, rows: Iterable[Mapping[str, Any]], /) -> int:
        """Runs it once for each of the rows; how many rows that touched."""

    async def fts_parameters(self, wanted: FullTextQuery) -> Mapping[str, Any]:
        """The values of search_sections_fts, in the backend's own language."""

    def encode_vector(self, numbers: "Vector") -> Any:
        """A vector as the backend stores it."""

    async def nearest(
        self, model: int, query: "Vector", *, limit: int, among: Sequence[int] | None = None
    ) -> list[tuple[int, float]]:
        """Ids and scores of a model's vectors nearest to this one, best first; of all of them, or among these ids."""


class ReadableDatabase(Protocol):
    """Opens snapshots: the part of a database that functions need which only read."""

    def snapshot(self) -> AbstractAsyncContextManager[Connection]:
        """Open a read transaction: all its reads see one moment, whatever is written meanwhile."""


class Database(ReadableDatabase, Protocol):
    """An open database."""

    has_shared_clock: bool
    """Everybody who uses it goes by its clock; otherwise each process goes by its own."""

    def transaction(self, *, durable: bool = False) -> AbstractAsyncContextManager[Connection]:
        """Everything inside happens, or nothing. Durable: once committed, it survives a power cut."""

    async def wait_for_notification(self, channel: str, seconds: float) -> bool:
        """Waits until somebody calls on the channel: True. False after so long, or where nobody can call."""

    async def close(self) -> None: ...


async def open_database(url: str, *, create: bool = True, lease_seconds: float = 120.0) -> Database:
    """The database behind a URL, at today's schema. Without ``create`` it has to be there already.

    Who is silent for the seconds of a lease is given up: by then, no transaction of theirs may be in anybody's way.
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
    """A moment as the backend stores it: PostgreSQL gives a datetime, SQLite our own fixed-width text."""
    return stored if isinstance(stored, datetime) else datetime.fromisoformat(stored)


def parse_optional_time(stored: Any) -> datetime | None:
    return None if stored is None else parse_time(stored)


async def describe_database(db: Connection) -> Row:
    """Which program it is, at which schema; whether it can be written to, and search by meaning."""
    row = await db.one("describe_database")
    assert row is not None, "it can always say that"
    return row


async def current_time(db: Connection) -> datetime:
    """What time it is. Between machines the database's clock is the clock."""
    row = await db.one("current_time")
    assert row is not None, "it is always some time"
    return parse_time(row["moment"])
