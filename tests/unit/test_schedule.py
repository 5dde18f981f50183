"""Schedules, and the adaptive interval of 'auto'."""

import random
from datetime import UTC, datetime, timedelta

import pytest

from kept.crawl.change_rate import (
    ChangeSample,
    RefreshBounds,
    change_samples,
    estimate_change_interval,
    is_due,
    is_modified_since,
    is_validator_wrong,
    suggest_refresh_interval,
)
from kept.errors import InvalidInput
from kept.model.document import Validators
from kept.model.duration import format_short_duration, parse_duration
from kept.model.frontier import ListedUrl
from kept.model.generation import Generation, GenerationState, Tally
from kept.model.schedule import AdaptiveSchedule, CronSchedule, IntervalSchedule, parse_schedule
from kept.model.source import SourceSettings

HOUR, DAY = timedelta(hours=1), timedelta(days=1)
NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
WIDE = RefreshBounds()


# What is typed -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("6h", IntervalSchedule(6 * HOUR)),
        ("1d12h", IntervalSchedule(36 * HOUR)),
        ("30m", IntervalSchedule(HOUR / 2)),
        ("0  3 * * 1-5", CronSchedule("0 3 * * 1-5")),
        ("auto", AdaptiveSchedule()),
        ("off", None),
        ("", None),
    ],
)
def test_a_schedule_is_an_interval_or_five_fields_or_a_word(text: str, meant: object) -> None:
    assert parse_schedule(text) == meant


@pytest.mark.parametrize("text", ["often", "0 3 * *", "61 3 * * *", "5s", "9999d", "0 0 31 2 *", "1e9d", "-1h"])
def test_what_is_no_schedule_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"--schedule should be like 30m|from every minute|The five fields are minute"
    ):
        parse_schedule(text)


def test_cron_counts_in_utc() -> None:
    elsewhere = datetime.fromisoformat("2026-03-01T12:00:00+05:00")
    assert CronSchedule("0 9 * * *").next_after(elsewhere) == datetime(2026, 3, 1, 9, tzinfo=UTC)


@pytest.mark.parametrize("text", ["1m", "30m", "1h", "6h", "1d", "30d", "45s"])
def test_a_length_of_time_is_spelled_as_it_would_be_typed(text: str) -> None:
    assert format_short_duration(parse_duration(text)) == text


# What is learned ---------------------------------------------------------------------------------------------------


def test_without_a_history_a_source_is_taken_to_change_every_week() -> None:
    assert 6.5 * DAY < estimate_change_interval([]) < 7.5 * DAY


@pytest.mark.parametrize("period", [6 * HOUR, DAY, 3 * DAY, 10 * DAY])
def test_the_interval_of_a_site_that_changes_at_random_is_found(period: timedelta) -> None:
    chance = random.Random(7)
    seen = [ChangeSample(period / 3, chance.random() < 1 - 2.718281828 ** (-1 / 3)) for _ in range(300)]
    assert period / 1.4 < estimate_change_interval(seen) < period * 1.4


def test_more_looks_that_see_nothing_make_it_longer_and_changes_make_it_shorter() -> None:
    quiet = [ChangeSample(DAY, False)] * 5
    assert estimate_change_interval([]) < estimate_change_interval(quiet) < estimate_change_interval(quiet * 2)
    assert estimate_change_interval([ChangeSample(DAY, True)] * 5) > estimate_change_interval(
        [ChangeSample(DAY, True)] * 10
    )
    assert estimate_change_interval([ChangeSample(timedelta(), True)]) < estimate_change_interval([])


@pytest.mark.parametrize("period", [5 * HOUR, DAY, 3 * DAY, 14 * DAY])
def test_the_adaptive_interval_converges_on_a_site_that_changes_regularly(period: timedelta) -> None:
    """A scripted site is refreshed at the learned interval, which converges to about a third of its period."""
    now, changes, seen, used = NOON, NOON, [], []
    for _ in range(80):
        interval = suggest_refresh_interval(seen[-30:], WIDE)
        used.append(interval)
        now += interval
        changed = now >= changes + period
        while now >= changes + period:
            changes += period
        seen.append(ChangeSample(interval, changed))
    for interval in used[-10:]:
        assert period / 8 <= interval <= period, [str(one) for one in used]


def test_bounds_hold_whatever_was_learned() -> None:
    bounds = RefreshBounds(shortest=5 * HOUR, longest=2 * DAY)
    assert suggest_refresh_interval([ChangeSample(HOUR, True)] * 30, bounds) == 5 * HOUR
    assert suggest_refresh_interval([ChangeSample(30 * DAY, False)] * 30, bounds) == 2 * DAY
    assert suggest_refresh_interval([ChangeSample(30 * DAY, False)] * 30, WIDE) == 30 * DAY


def make_generation(number: int, mode: str | None, tally: Tally, *, active: bool = True) -> Generation:
    at = NOON + number * DAY
    return Generation(
        source_id="s",
        number=number,
        base=None,
        state=GenerationState.RETIRED,
        job_id=None,
        settings=SourceSettings(),
        mode=mode,
        created_at=at,
        activated_at=at if active else None,
        tally=tally,
    )


def test_repairs_rollbacks_and_what_was_given_up_teach_nothing() -> None:
    history = [
        make_generation(1, "refresh", Tally(new=9)),
        make_generation(2, "quick", Tally(unchanged=9)),
        make_generation(3, "failed", Tally(changed=1)),
        make_generation(4, "full", Tally(changed=1)),
        make_generation(5, "refresh", Tally(changed=1), active=False),
        make_generation(6, None, Tally(changed=1)),
        make_generation(7, "refresh", Tally(changed=1)),
        make_generation(8, "refresh", Tally(unchanged=8, failed=1)),
    ]
    assert change_samples(history) == [ChangeSample(DAY, False), ChangeSample(2 * DAY, True), ChangeSample(DAY, False)]


# Pages -------------------------------------------------------------------------------------------------------------


def test_a_page_is_due_when_it_is_as_likely_as_not_to_have_changed() -> None:
    def due(changes: int, days: float) -> bool:
        return is_due(changes=changes, known_since=NOON - 30 * DAY, visited_at=NOON, now=NOON + days * DAY)

    assert [due(10, days) for days in (1, 3)] == [False, True]
    assert [due(1, days) for days in (3, 10, 20)] == [False, False, True]


def test_a_page_is_newer_when_its_origin_says_so() -> None:
    def newer(modified: datetime | None) -> bool:
        return is_modified_since(ListedUrl(url="https://docs.test/", modified_at=modified), NOON)

    assert newer(NOON + HOUR)
    assert newer(NOON.replace(hour=0)), "a day: perhaps at one o'clock"
    assert not newer(NOON - HOUR)
    assert not newer(NOON.replace(hour=0) - DAY)
    assert not newer(None)


def test_validators_are_wrong_when_they_outlive_a_change() -> None:
    one, other = Validators(etag='"1"'), Validators(etag='"2"')
    assert is_validator_wrong(one, one)
    assert not is_validator_wrong(one, other)
    assert not is_validator_wrong(Validators(), Validators()), "none are not wrong"
