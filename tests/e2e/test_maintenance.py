"""Maintenance on the command line: all commands in one scenario."""

import json
import random
from pathlib import Path

from tests.e2e.test_cli import INSTALL, NOTES, POOL, Kept


def test_a_database_is_checked_backed_up_damaged_and_restored(tmp_path: Path) -> None:
    database = tmp_path / "kept.db"
    kept = Kept(tmp_path, f"sqlite:///{database}")
    kept.docs.mkdir()
    for name, text in {"pool": POOL, "install": INSTALL, "notes": NOTES}.items():
        (kept.docs / f"{name}.md").write_text(text)
    assert kept("add", "docs").code == 0
    assert kept("check").out == "All is well.\n"
    assert json.loads(kept("gc", "--dry-run", "--json").out) == {"would_go": []}
    assert kept("backup", "copy.db").code == 0

    assert kept("export", "mirror").code == 0
    assert kept("--database", f"sqlite:///{tmp_path}/other.db", "import", "mirror").code == 0
    assert "pools" in kept("--database", f"sqlite:///{tmp_path}/other.db", "search", "pool").out.lower()

    chance, bytes_ = random.Random(1), bytearray(database.read_bytes())
    for _ in range(400):
        bytes_[chance.randrange(8192, len(bytes_))] ^= 0xFF
    database.write_bytes(bytes_)
    checked = kept("check", "--json")
    assert (checked.code, json.loads(checked.out)["sound"]) == (1, False)
    assert "not a sound SQLite database" in kept("restore", "docs/pool.md").sentence
    assert kept("restore", "copy.db").code == 0
    assert kept("check").out == "All is well.\n"
    assert "pool" in kept("search", "pool").out
    assert (tmp_path / "kept.db.before-restore").exists()
    pointed = kept("--database", "postgresql://nobody@127.0.0.1:1/none", "backup", "x.db")
    assert (pointed.code, "pg_dump" in pointed.err) == (2, True)
