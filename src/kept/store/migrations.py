"""The schema of a database: made at once for a new one, reached by numbered migrations for an older one.

A new database is made from ``sql/schema/`` and stamped with the newest number. An existing one runs the migrations of
``sql/migrations/`` that it has not run, all in one transaction: killed at any statement, it has the old schema or the
new one. Schemas from before the first release, numbered below ``OLDEST_SCHEMA``, cannot be upgraded.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from kept.errors import StoreTooNew, StoreTooOld
from kept.store.statements import SQL_FOLDER

OLDEST_SCHEMA = 16  # that can be upgraded


@dataclass(frozen=True, slots=True)
class Migration:
    """A numbered file of statements."""

    number: int
    name: str
    file: Path

    @property
    def statements(self) -> tuple[str, ...]:
        """Read when it is run: most of the time none is."""
        text = self.file.read_text("utf-8").rstrip() + "\n"
        return tuple(part.strip() for part in _END_OF_STATEMENT.split(text) if part.strip())


_END_OF_STATEMENT = re.compile(r";\n(?=\n|$)")  # a blank line follows; inside a trigger or a function there is none


def list_migrations(backend: str) -> list[Migration]:
    """Return the migrations of a backend in order; the first follows ``OLDEST_SCHEMA``."""
    files = sorted((SQL_FOLDER / "migrations" / backend).glob("*.sql"))
    return [Migration(int(file.stem[:4]), file.stem[5:], file) for file in files]


def fresh_schema(backend: str) -> Migration:
    """Return what makes the newest schema in an empty database."""
    migrations = list_migrations(backend)
    newest = migrations[-1].number if migrations else OLDEST_SCHEMA
    return Migration(newest, "schema", SQL_FOLDER / "schema" / f"{backend}.sql")


def pending_migrations(applied: Sequence[int], backend: str, database: str) -> list[Migration]:
    """Return what has to run, given the numbers that the database has; for an empty one, the fresh schema.

    Raises StoreTooNew or StoreTooOld for a database that this version of Kept cannot use.
    """
    fresh = fresh_schema(backend)
    if not applied:
        return [fresh]
    current = max(applied)
    if current > fresh.number:
        raise StoreTooNew(
            f"{database} was written by a newer Kept (schema {current}; this one knows {fresh.number}). Upgrade Kept."
        )
    if current < OLDEST_SCHEMA:
        raise StoreTooOld(
            f"{database} was written by a Kept from before its first release (schema {current}; this one upgrades from "
            f"{OLDEST_SCHEMA} on). Run 'kept export' with the version that wrote it and 'kept import' into a new "
            "database, or add its sources to a new database."
        )
    return [migration for migration in list_migrations(backend) if migration.number > current]
