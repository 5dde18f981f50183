"""Invalid settings in a file."""

from pathlib import Path

import pytest

from kept.errors import InvalidInput
from kept.settings import load


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("[crawl]\ngrace_crawls = inf", "crawl.grace_crawls should be a whole number and not negative; it is inf."),
        ("[crawl]\ngrace_crawls = 1.5", "crawl.grace_crawls should be a whole number and not negative; it is 1.5."),
        (f"[crawl]\ngrace_days = 1{'0' * 400}", "crawl.grace_days should be a number and not negative"),
        ("[crawl]\ngrace_days = true", "crawl.grace_days should be a number and not negative; it is True."),
        ("[embed]\nkey = 31337", "embed.key should be a text."),
    ],
)
def test_a_value_of_another_kind_is_named_unless_it_is_a_secret(tmp_path: Path, text: str, sentence: str) -> None:
    (tmp_path / "mine.toml").write_text(text)
    with pytest.raises(InvalidInput) as wrong:
        load(environment={}, folder=tmp_path, config_file=str(tmp_path / "mine.toml"))
    assert sentence in str(wrong.value)
    assert "31337" not in str(wrong.value)


def test_a_whole_number_may_be_written_with_a_point(tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text("[crawl]\ngrace_crawls = 3.0")
    assert load(environment={}, folder=tmp_path, config_file=str(tmp_path / "mine.toml")).crawl.grace_crawls == 3
