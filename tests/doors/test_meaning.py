"""Search by meaning, as a person meets it."""

from pathlib import Path

import pytest

from tests.doors.test_cli import INSTALL, NOTES, POOL, Kept, write


@pytest.fixture
def kept(tmp_path: Path, database_url: str) -> Kept:
    write(tmp_path / "docs", pool=POOL, install=INSTALL, notes=NOTES)
    return Kept(tmp_path, database_url)


def test_what_is_said_in_other_words_is_found_and_an_embedder_that_is_away_takes_nothing_away(kept: Kept) -> None:
    kept.environment["KEPT_SEARCH__MODE"] = "meaning"
    kept.json("add", "docs", "--name", "docs")
    found = kept.json("search", "compile the software")
    assert found["vectors_missing"] == 0
    assert found["hits"][0]["title"] == "Install", "it says none of these words"

    kept.environment |= {
        "KEPT_SEARCH__MODE": "fused",
        "KEPT_EMBED__PROVIDER": "openai",
        "KEPT_EMBED__URL": "http://127.0.0.1:1/v1",
        "KEPT_EMBED__MODEL": "of-nobody",
        "KEPT_EMBED__KEY": "hidden-key",
    }
    write(kept.docs, fresh="# Fresh\n\nA page about quinces.\n")
    refreshed = kept("refresh", "docs")
    assert refreshed.code == 0
    assert "embedder away" in refreshed.err
    assert "without a vector so far: 1." in refreshed.err
    assert kept.json("search", "quinces")["hits"][0]["title"] == "Fresh"
    found = kept.json("search", "compile the software")
    assert found["hits"][0]["title"] == "Install", "the model before answers until another is complete"
    assert found["vectors_missing"] == 1
    assert "hidden-key" not in refreshed.out + refreshed.err + kept("config").out + kept("config", "--json").out

    kept.environment["KEPT_EMBED__URL"] = ""
    assert "embed.url" in kept("refresh", "docs").sentence
