"""The settings of a source, as a call gives them."""

from kept.model.source import SourceSettings
from kept.service.source_options import SourceOptions


def test_an_empty_text_clears_what_was_set_and_silence_leaves_it() -> None:
    before = SourceOptions(max_time="2h", include=["*.md"], user_agent="Mine/1").apply_to(SourceSettings())
    assert before.limits.max_seconds == 7200
    assert SourceOptions().apply_to(before) == before
    clearing = SourceOptions(max_time="", include=[""], user_agent="")
    assert bool(clearing)
    assert clearing.apply_to(before) == SourceSettings()
