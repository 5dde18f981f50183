"""The states of a generation."""

from kept.model.generation import GENERATION_TRANSITIONS, GenerationState


def test_a_generation_is_readable_if_it_is_or_was_active() -> None:
    assert {state for state in GenerationState if state.is_readable} == {"active", "retired"}


def test_a_readable_generation_never_becomes_unreadable() -> None:
    for state in GenerationState:
        if state.is_readable:
            assert all(following.is_readable for following in GENERATION_TRANSITIONS[state])


def test_a_generation_ends_retired_or_abandoned() -> None:
    ends = {state for state, moves in GENERATION_TRANSITIONS.items() if not moves}
    assert ends == {GenerationState.RETIRED, GenerationState.ABANDONED}
