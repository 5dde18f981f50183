"""Damage of a database file is found by ``kept doctor`` and ``kept check``, and a backup can be restored over it."""

import asyncio
import random
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import apsw
import pytest

from kept.cli.doctor import CheckState, _database
from kept.errors import StoreUnreachable
from kept.maintenance import backup
from kept.settings import Settings, load
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source

PAGE = 4096
SECRET = "quagga"


def overwrite(file: Path, at: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(at)
        opened.write(data)


def truncate(file: Path, size: int) -> None:
    with file.open("r+b") as opened:
        opened.truncate(size)


def root_page(file: Path, name: str) -> int:
    connection = apsw.Connection(str(file))
    try:
        return int(connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (name,)).get)
    finally:
        connection.close()


def leaf_page(file: Path, name: str) -> int:
    connection = apsw.Connection(str(file))
    try:
        return int(connection.execute("SELECT max(pageno) FROM dbstat WHERE name = ?", (name,)).get)
    finally:
        connection.close()


def flip(file: Path, page: int, *, count: int = 40) -> None:
    chance, content = random.Random(page), bytearray(file.read_bytes())
    for _ in range(count):
        content[(page - 1) * PAGE + chance.randrange(PAGE)] ^= 0xFF
    file.write_bytes(content)


def flip_stored_text(file: Path) -> None:
    connection = apsw.Connection(str(file))
    try:
        connection.execute("UPDATE sections SET text = replace(text, 'quagga', 'zebras') WHERE text LIKE '%quagga%'")
    finally:
        connection.close()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "truncated to half": lambda file: truncate(file, file.stat().st_size // 2),
    "truncated to half a page more": lambda file: truncate(file, file.stat().st_size // PAGE // 2 * PAGE + 100),
    "truncated to its header": lambda file: truncate(file, 100),
    "truncated to nothing": lambda file: truncate(file, 0),
    "the last page missing": lambda file: truncate(file, file.stat().st_size - PAGE),
    "magic overwritten": lambda file: overwrite(file, 0, b"something else!!"),
    "page size changed": lambda file: overwrite(file, 16, struct.pack(">H", 512)),
    "the schema zeroed": lambda file: overwrite(file, 100, bytes(PAGE - 100)),
    "a table zeroed": lambda file: overwrite(file, (root_page(file, "versions") - 1) * PAGE, bytes(PAGE)),
    "an index flipped": lambda file: flip(file, root_page(file, "versions_by_url")),
    "contents flipped": lambda file: flip(file, leaf_page(file, "contents"), count=400),
    "sections flipped": lambda file: flip(file, leaf_page(file, "sections"), count=400),
    "full text zeroed": lambda file: overwrite(file, (leaf_page(file, "section_words_data") - 1) * PAGE, bytes(PAGE)),
    "full text flipped": lambda file: flip(file, leaf_page(file, "section_words_data"), count=400),
    "a word replaced": flip_stored_text,
    "a log of garbage": lambda file: Path(f"{file}-wal").write_bytes(random.Random(1).randbytes(50_000)),
}


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make a small database with enough in it that each table has a page."""
    file: Path = tmp_path_factory.mktemp("sound") / "kept.db"

    async def fill() -> None:
        async with database_at(f"sqlite:///{file}") as db:
            source = await make_source(db)
            words = random.Random(1)
            pages = {
                f"{ROOT}{number}": Page(" ".join(str(words.randrange(10**9)) for _ in range(200)) + f" {SECRET}")
                for number in range(40)
            }
            await crawl(db, source, Site({ROOT: Page("root", links=tuple(pages)), **pages}))

    asyncio.run(fill())
    return file


def settings_for(file: Path) -> Settings:
    return load(environment={"KEPT_DATABASE": f"sqlite:///{file}"}, folder=file.parent)


def examine(file: Path) -> list[CheckState]:
    async def run() -> list[CheckState]:
        return [check.state async for check in _database(settings_for(file))]

    return asyncio.run(run())


def test_doctor_says_that_a_sound_database_is_sound(sound: Path) -> None:
    assert examine(sound) == [CheckState.OK]


@pytest.mark.parametrize("damage", DAMAGE)
def test_doctor_notices_every_kind_of_damage_and_restore_puts_a_backup_back(
    sound: Path, tmp_path: Path, damage: str
) -> None:
    file = tmp_path / "kept.db"
    shutil.copy(sound, file)
    backup.back_up(f"sqlite:///{file}", tmp_path / "backup.db")
    DAMAGE[damage](file)
    damaged = file.read_bytes()
    assert CheckState.BROKEN in examine(file)

    before = backup.restore(f"sqlite:///{file}", tmp_path / "backup.db")
    assert before is not None
    assert before.exists()
    if damage.startswith("truncated"):
        assert before.read_bytes() == damaged
    assert examine(file) == [CheckState.OK]


def test_only_damage_lets_a_restore_replace_the_file(
    sound: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept.db"
    shutil.copy(sound, file)
    backup.back_up(f"sqlite:///{file}", tmp_path / "backup.db")
    monkeypatch.setattr(backup, "BUSY_MILLISECONDS", 100)
    other = apsw.Connection(str(file))
    try:
        for sql in (
            "PRAGMA journal_mode = DELETE",
            "PRAGMA locking_mode = EXCLUSIVE",
            "BEGIN EXCLUSIVE",
            "UPDATE sources SET name = 'other'",
        ):
            other.execute(sql).fetchall()
        with pytest.raises(StoreUnreachable, match="locked"):
            backup.restore(f"sqlite:///{file}", tmp_path / "backup.db")
        other.execute("COMMIT")
    finally:
        other.close()
    assert not (tmp_path / "kept.db.before-restore").exists()
    connection = apsw.Connection(str(file))
    assert connection.execute("SELECT name FROM sources").get == "other"
    connection.close()
