"""A server that runs for long keeps its size. The long form: ``python -m tests.crash.soak``."""

from pathlib import Path

import pytest

from kept.maintenance.gc import Retention
from tests.crash import soak


def test_rows_files_and_threads_level_off(database_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "DAYS_A_ROUND", 30)
    found = soak.soak(database_url, tmp_path, rounds=12, sources=1, pages=6, retention=Retention(generations=3, jobs=4))
    assert found.refreshes == 12
    assert not found.grown(), found.report()
    assert max(found.rows["crawl_jobs"]) <= 6
    assert max(found.rows["generations"]) <= 6
