"""Numbered migrations, each in one transaction: killed at any statement, it leaves the old schema or the new."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kept.errors import StoreTooNew
from kept.store.database import SQL_FOLDER

MIGRATIONS_TABLE = """
CREATE TABLE migrations (number INTEGER PRIMARY KEY, name TEXT NOT NULL, applied_at {time} NOT NULL)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    backend: str
    number: int
    name: str

    @property
    def statements(self) -> tuple[str, ...]:
        file = SQL_FOLDER / "migrations" / self.backend / f"{self.number:04}_{self.name}.sql"
        return _statements(file.read_text("utf-8"), self.backend, first=self.number == 1)


def list_migrations(backend: str) -> list[Migration]:
    """Every migration of a backend, in order. Most of the time none is due, so they are read when they are."""
    found = sorted(file.stem for file in (SQL_FOLDER / "migrations" / backend).glob("*.sql"))
    return [Migration(backend, int(name[:4]), name[5:]) for name in found]


def pending(applied: Sequence[int], known: Sequence[Migration]) -> list[Migration]:
    return [migration for migration in known if migration.number not in applied]


def check_not_newer(applied: Sequence[int], known: Sequence[Migration], where: str) -> None:
    newest = known[-1].number
    if applied and max(applied) > newest:
        raise StoreTooNew(
            f"{where} was written by a newer Kept (schema {max(applied)}; this one knows {newest}). Upgrade Kept."
        )


_END_OF_STATEMENT = re.compile(r";\n(?=\n|$)")  # a blank line follows; inside a trigger there is none


def _statements(text: str, backend: str, *, first: bool) -> tuple[str, ...]:
    statements = [part.strip() for part in _END_OF_STATEMENT.split(text.rstrip() + "\n") if part.strip()]
    if first:
        statements.insert(0, MIGRATIONS_TABLE.format(time="TEXT" if backend == "sqlite" else "TIMESTAMPTZ").strip())
    return tuple(statements)
