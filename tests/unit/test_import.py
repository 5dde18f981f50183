"""Import of a version that was edited in the export."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kept.maintenance.import_ import _SourceImporter
from kept.model.document import Content

FACTS = {
    "title": "Page", "content_hash": "h", "sections": [], "links": [], "born": 1, "died": None, "url": "https://d.test/",
    "content_type": "text/html", "etag": None, "last_modified": None, "raw_hash": "", "signature": "s", "depth": 0,
    "canonical": None, "fetched_at": "2026-11-01T00:00:00+00:00", "read_again": False,
}  # fmt: skip


async def unread(text: str, url: str) -> Content | None:
    return None


def importing(folder: Path) -> _SourceImporter:
    return _SourceImporter(folder, {}, read=unread, hash_of=lambda *_: "h", now=datetime(2026, 11, 1, tzinfo=UTC))


@pytest.mark.parametrize("missing", FACTS)
def test_a_version_that_does_not_say_all_that_is_needed_cannot_be_read(tmp_path: Path, missing: str) -> None:
    (tmp_path / "content.md").write_text("# Page\n")
    (tmp_path / "version.json").write_text(json.dumps(FACTS))
    assert importing(tmp_path)._read_version(tmp_path) is not None
    (tmp_path / "version.json").write_text(json.dumps({name: FACTS[name] for name in FACTS if name != missing}))
    assert importing(tmp_path)._read_version(tmp_path) is None
    (tmp_path / "version.json").write_text("[]")
    assert importing(tmp_path)._read_version(tmp_path) is None
