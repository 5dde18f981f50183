"""Maintenance on the command line: all commands in one scenario."""

import json
import random
import time
from pathlib import Path

import pytest

from tests.e2e.server import serving
from tests.e2e.test_cli import INSTALL, NOTES, POOL, Kept

pytestmark = pytest.mark.usefixtures("checked_databases")


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


def test_a_server_notices_a_deleted_database_within_seconds_and_serves_a_restored_one(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    database = tmp_path / "kept.db"
    kept = Kept(tmp_path, f"sqlite:///{database}")
    kept.docs.mkdir()
    (kept.docs / "pool.md").write_text(POOL)
    assert kept("add", "docs").code == 0
    assert kept("backup", "copy.db").code == 0
    with serving(f"sqlite:///{database}", tmp_path) as server, server.client() as client:
        assert client.get("/readyz").status_code == 200
        database.unlink()
        assert client.get("/readyz").status_code == 503
        assert client.get("/api/v1/search", params={"q": "pool"}).status_code == 503
        assert client.post("/api/v1/sources/docs/crawls").status_code == 503
        assert not database.exists(), "nothing is accepted into nowhere"
        deadline = time.monotonic() + 5
        while "database file lost" not in caplog.text:
            assert time.monotonic() < deadline, "it is logged"
            time.sleep(0.05)
        assert kept("restore", "copy.db").code == 0
        assert client.get("/readyz").status_code == 200
        assert client.get("/api/v1/search", params={"q": "pool"}).json()["hits"]
        assert client.post("/api/v1/sources/docs/crawls").status_code == 202


def test_a_former_id_is_read_by_the_command_line_and_the_api_and_trust_is_asked_for(tmp_path: Path) -> None:
    (tmp_path / "old" / "documents" / "doc-1").mkdir(parents=True)
    (tmp_path / "old" / "documents" / "doc-1" / "content.md").write_text("# Zebras\n\nThey have stripes.\n")
    manifest = {"files": {str(tmp_path / "zebras.md"): {"doc_id": "doc-1", "versions": [], "retry_count": None}}}
    (tmp_path / "old" / "manifest.json").write_text(json.dumps(manifest))
    kept = Kept(tmp_path, f"sqlite:///{tmp_path}/kept.db")
    imported = kept("import", "old", "--json")
    assert imported.code == 0
    assert "reading file://" in str(json.loads(imported.out)["left_out"])
    assert "--trust" in imported.err
    assert "stripes" in kept("read", "doc-1").out
    assert kept("history", "doc-1").code == 0
    with serving(f"sqlite:///{tmp_path}/kept.db", tmp_path) as server, server.client() as client:
        assert "stripes" in client.get("/api/v1/documents/doc-1").json()["markdown"]
        assert client.get("/api/v1/documents/doc-1/history").status_code == 200
        assert client.get("/api/v1/documents/doc-2").status_code == 404
    other = Kept(tmp_path, f"sqlite:///{tmp_path}/other.db")
    trusted = other("import", "old", "--trust", "--json")
    assert (trusted.code, json.loads(trusted.out)["left_out"]) == (0, {})
