"""Backup and restore of a SQLite database while it is in use. PostgreSQL has its own programs (decision 14)."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw

from kept.errors import InvalidInput, NotFound, StoreCorrupt
from kept.private_files import create_private_file, make_private_folder
from kept.store.sqlite import translate_error

PAGES_PER_STEP = 4096  # writers can run between two steps
BUSY_MILLISECONDS = 60_000
DAMAGE = (apsw.CorruptError, apsw.NotADBError, apsw.FormatError)  # not a full disk, a lock, or missing permissions


def back_up(url: str, file: Path) -> int:
    """Write a consistent copy of the database to a file, which appears when it is complete. Returns its size."""
    database = _sqlite_path(
        url, "pg_dump makes a backup of it, and 'kept export' one that either kind of database takes back"
    )
    if not database.exists():
        raise NotFound(f"There is no database at {database} yet.")
    draft = file.with_name(f".{file.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        create_private_file(draft)
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
    make_private_folder(database.parent)
    before = database.with_name(f"{database.name}.before-restore") if database.exists() else None
    if before is None or not _copy_if_sound(database, before):
        _replace_file(file, database, before)
    else:
        with _translate_errors():
            _copy(file, database)
    return before


def _copy_if_sound(database: Path, before: Path) -> bool:
    """Copy a database aside. Returns False if it is damaged, which may be the reason for restoring.

    Raises StoreError for everything else, such as a full disk or a lock: it is no damage.
    """
    draft = before.with_name(f".{before.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        create_private_file(draft)
        _copy(database, draft)
        _verify_database(draft)
        os.replace(draft, before)
    except StoreCorrupt:
        return False
    except apsw.Error as error:
        if isinstance(error, DAMAGE):
            return False
        raise translate_error(error) or error from error
    finally:
        draft.unlink(missing_ok=True)
    return True


def _replace_file(file: Path, database: Path, before: Path | None) -> None:
    """Put a copy of a backup in the place of a database that is damaged or missing. The damaged one is kept aside.

    It is another file, not written into the damaged one: processes that have that open notice, and open the new one.
    """
    draft = database.with_name(f".{database.name}.draft")
    draft.unlink(missing_ok=True)
    try:
        create_private_file(draft)
        with _translate_errors():
            _copy(file, draft)
        with open(draft, "rb") as copied:
            os.fsync(copied.fileno())
        if before:
            before.unlink(missing_ok=True)
            os.link(database, before)
        # Before the new file is there: SQLite would take the log of the old one for its own.
        for suffix in ("-wal", "-shm"):
            log = Path(f"{database}{suffix}")
            if before and suffix == "-wal" and log.exists():
                os.replace(log, f"{before}{suffix}")
            log.unlink(missing_ok=True)
        os.replace(draft, database)
    finally:
        draft.unlink(missing_ok=True)


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
        source.set_busy_timeout(BUSY_MILLISECONDS)
        target.set_busy_timeout(BUSY_MILLISECONDS)
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
