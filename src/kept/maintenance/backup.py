"""A copy of a whole SQLite database, made while it is used, and put back. PostgreSQL has its own: decision 14."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from kept.errors import InvalidInput, NotFound, StoreCorrupt
from kept.store.sqlite import translate_error

PAGES_PER_STEP = 4096  # pages at once: writers come in between


def back_up(url: str, file: Path) -> int:
    """Writes a copy of the database as it is at one moment; the size of it. The file appears when it is whole."""
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
    """Puts a copy back in one step, beside whoever reads. Where what was there is now; None: nothing was."""
    database = _sqlite_path(url, "pg_restore puts back what pg_dump wrote, and 'kept import' an export")
    if not file.is_file():
        raise NotFound(f"There is no file {file}.")
    _verify_database(file)
    before = database.with_name(f"{database.name}.before-restore") if database.exists() else None
    if before:
        try:
            _copy(database, before)
        except apsw.Error:  # it is damaged: perhaps that is why
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
    """StoreDamaged unless it is a sound database of Kept."""
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
