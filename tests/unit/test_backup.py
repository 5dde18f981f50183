"""A backup of a file that is not a database."""

from pathlib import Path

import pytest

from kept.errors import StoreCorrupt
from kept.maintenance.backup import back_up


def test_what_is_no_database_is_said_to_be_none_and_nothing_is_left_behind(tmp_path: Path) -> None:
    database = tmp_path / "kept.db"
    database.write_bytes(b"no database, but long enough to be looked at. " * 100)
    with pytest.raises(StoreCorrupt, match="not a sound database"):
        back_up(f"sqlite:///{database}", tmp_path / "backup.db")
    assert list(tmp_path.iterdir()) == [database]
