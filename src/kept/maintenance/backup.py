"""Backup and restore of a SQLite database while it is in use. PostgreSQL has its own programs (decision 14)."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from kept.errors import InvalidInput, NotFound, StoreCorrupt
from kept.store.sqlite import translate_error

PAGES_PER_STEP = 4096  # writers can run between two steps


def back_up(url: str, file: Path) -> int:
    """Write a consistent copy of the database to a file, which appears when it is complete. Returns its size."""
    database = _sqlite_path(
        url, "pg_dump makes a backup of it, and 'kept export' one that either kind of database takes back"
    )
    if not database.exists():
        raise NotFound(f"There is no database at {database} yet.")
    draft = file.with_name(f".{file.name}.draft")
    try:
        with _translate_errors():
            _copy(database, draft)
        _verify_database(draft)
        os.replace(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return file.stat().st_size


def restore(url: str, file: Path) -> Path | None:
    """Replace the database by a backup, atomically, while readers go on. Returns where the old one is, if any."""
    database = _sqlite_path(url, "pg_restore puts back what pg_dump wrote, and 'kept import' an export")
    if not file.is_file():
        raise NotFound(f"There is no file {file}.")
    _verify_database(file)
    before = database.with_name(f"{database.name}.before-restore") if database.exists() else None
    if before:
        try:
            _copy(database, before)
        except apsw.Error:  # damaged, which may be the reason for restoring
            shutil.copyfile(database, before)
    database.parent.mkdir(parents=True, exist_ok=True)
    with _translate_errors():
        try:
            _copy(file, database)
        except apsw.NotADBError:
            for name in (database, Path(f"{database}-wal"), Path(f"{database}-shm")):
                name.unlink(missing_ok=True)
            _copy(file, database)
    return before


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except apsw.Error as error:
        raise translate_error(error) or error from error


def _sqlite_path(url: str, instead: str) -> Path:
    if not url.startswith("sqlite:///"):
        raise InvalidInput(f"This is for SQLite. Of PostgreSQL, {instead}.")
    return Path(url.removeprefix("sqlite:///"))


def _copy(one: Path, other: Path) -> None:
    source = apsw.Connection(str(one), flags=apsw.SQLITE_OPEN_READWRITE)
    target = apsw.Connection(str(other))
    try:
        source.set_busy_timeout(60_000)
        target.set_busy_timeout(60_000)
        with target.backup("main", source, "main") as copying:
            while not copying.done:
                copying.step(PAGES_PER_STEP)
    finally:
        source.close()
        target.close()


def _verify_database(file: Path) -> None:
    """Raise StoreCorrupt unless it is a sound database of Kept."""
    try:
        connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READWRITE)
        try:
            ours = connection.execute("SELECT count(*) FROM sqlite_schema WHERE name IN ('migrations', 'sources')").get
            problems = [row[0] for row in connection.execute("PRAGMA quick_check(3)") if row[0] != "ok"]
        finally:
            connection.close()
    except apsw.Error as error:
        raise StoreCorrupt(f"{file} is not a sound SQLite database: {error}.") from None
    if problems or ours != 2:
        what = f"it is damaged: {problems[0]}" if problems else "it is not one of Kept's"
        raise StoreCorrupt(f"{file} cannot be used: {what}. Name another backup.")
