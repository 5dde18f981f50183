"""The settings of a source, as a call gives them."""

from kept.model.source import SourceSettings
from kept.service.given import Given


def test_an_empty_text_clears_what_was_set_and_silence_leaves_it() -> None:
    before = Given(max_time="2h", include=["*.md"], user_agent="Mine/1").over(SourceSettings())
    assert before.limits.max_seconds == 7200
    assert Given().over(before) == before
    clearing = Given(max_time="", include=[""], user_agent="")
    assert bool(clearing)
    assert clearing.over(before) == SourceSettings()
