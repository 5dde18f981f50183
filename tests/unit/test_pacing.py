"""How hard a host is asked, and when it is left alone."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.origins.web.pacing import AT_ONCE, Host, Pacing, Tempo, wait_asked

NOW = datetime(2026, 11, 15, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("0", timedelta()),
        ("120", timedelta(minutes=2)),
        (" 7 ", timedelta(seconds=7)),
        ("Sun, 15 Nov 2026 12:01:00 GMT", timedelta(minutes=1)),
        ("Sun, 15 Nov 2026 11:00:00 GMT", timedelta()),
        ("Sunday, 15-Nov-26 12:01:00 GMT", timedelta(minutes=1)),
        ("Sun Nov 15 12:01:00 2026", timedelta(minutes=1)),
        ("soon", None),
        ("-5", None),
        ("", None),
        ("9" * 30, None),
        ("1.5", None),
    ],
)
def test_retry_after_in_seconds_and_dates(text: str, wait: timedelta | None) -> None:
    assert wait_asked({"Retry-After": text}, NOW) == wait


# ── Tempo ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def learn(tempo: Tempo, now: float, *, status: int | None = 200, took: float = 0.05, wait: float | None = None) -> None:
    tempo.learn(began=now - took, now=now, took=took, status=status, wait=wait)


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_host_is_asked_half_as_hard_down_to_one_then_harder_again(status: int) -> None:
    tempo, seen = Tempo(), []
    for second in range(1, 7):
        learn(tempo, second * 10.0, status=status)
        seen.append(int(tempo.at_once))
    assert seen == [4, 2, 1, 1, 1, 1]
    for answer in range(200):
        learn(tempo, 100 + answer / 10)
    assert tempo.at_once == AT_ONCE


def test_answers_that_were_under_way_do_not_cut_twice() -> None:
    tempo = Tempo()
    for _ in range(8):
        learn(tempo, 10.0, status=503, took=1)
    assert int(tempo.at_once) == 4


def test_a_burst_of_refusals_is_one_strike() -> None:
    tempo = Tempo()
    for _ in range(8):
        tempo.learn(began=1.0, now=2.0, took=1.0, status=503, wait=None)
    assert (int(tempo.at_once), tempo.not_before) == (4, 3.0)


def test_one_page_that_is_out_of_order_for_a_day_does_not_stop_the_rest() -> None:
    tempo = Tempo()
    learn(tempo, 10, status=503, wait=86400)
    assert tempo.not_before == 0
    learn(tempo, 20, status=503, wait=86400)
    assert tempo.not_before == 86420, "but the second in a row does"


def test_it_waits_as_long_as_it_is_told_or_longer_each_time() -> None:
    tempo = Tempo()
    learn(tempo, 10, status=429, wait=30)
    assert tempo.not_before == 40
    told_nothing = Tempo()
    pauses = []
    for second in (10, 20, 40, 80):
        learn(told_nothing, second, status=503)
        pauses.append(told_nothing.not_before - second)
    assert pauses == [1, 2, 4, 8]


def test_rising_latency_slows_it_down_and_a_host_that_is_always_slow_does_not() -> None:
    tempo = Tempo()
    for answer in range(50):
        learn(tempo, answer / 10, took=0.1)
    assert tempo.at_once == AT_ONCE
    lowest = tempo.at_once
    for answer in range(30):
        learn(tempo, 10 + 3.0 * answer, took=2.0)
        lowest = min(lowest, tempo.at_once)
    assert int(lowest) == 1
    slow = Tempo()
    for answer in range(100):
        learn(slow, answer, took=2.0)
    assert slow.at_once == AT_ONCE


STATUSES = st.sampled_from([200, 304, 404, 429, 500, 503, None])


@given(st.lists(st.tuples(STATUSES, st.floats(0, 100), st.none() | st.floats(0, 1000))))
def test_whatever_happens_one_request_is_possible_and_no_more_than_allowed(
    story: list[tuple[int | None, float, float | None]],
) -> None:
    tempo, now = Tempo(), 0.0
    for status, took, wait in story:
        now += took
        learn(tempo, now, status=status, took=took, wait=wait)
        assert 1 <= tempo.at_once <= tempo.most


# ── Turns ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def request(host: Host, *, seconds: float = 0.01, peak: list[int], under_way: list[int]) -> None:
    assert await host.turn() is None
    under_way[0] += 1
    peak.append(under_way[0])
    began = time.monotonic()
    await asyncio.sleep(seconds)
    under_way[0] -= 1
    host.done(began=began, took=0.01, status=200)


def test_no_more_than_allowed_are_under_way_and_two_crawls_share() -> None:
    async def story() -> None:
        pacing = Pacing()
        assert pacing.host("docs.test", 443) is pacing.host("docs.test", 443)
        assert pacing.host("docs.test", 443) is not pacing.host("docs.test", 80)
        host = pacing.host("docs.test", 443)
        peak: list[int] = []
        under_way = [0]
        with host.crawled(at_once=8, delay=0):
            await asyncio.gather(*[request(host, peak=peak, under_way=under_way) for _ in range(50)])
            assert max(peak) == 8
            peak.clear()
            with host.crawled(at_once=3, delay=0):
                await asyncio.gather(*[request(host, peak=peak, under_way=under_way) for _ in range(30)])
                assert max(peak) == 3, "the gentler one counts"
            peak.clear()
            await asyncio.gather(*[request(host, peak=peak, under_way=under_way) for _ in range(50)])
            assert max(peak) == 8

    asyncio.run(story())


def test_a_delay_is_kept_between_starts() -> None:
    async def story() -> None:
        host = Host()
        with host.crawled(at_once=8, delay=0.05):
            began = time.monotonic()
            await asyncio.gather(*[request(host, seconds=0, peak=[], under_way=[0]) for _ in range(5)])
            assert 0.19 < time.monotonic() - began < 1

    asyncio.run(story())


def test_a_pause_holds_everybody_and_ends() -> None:
    async def story() -> None:
        host = Host()
        await host.turn()
        host.done(began=time.monotonic(), took=0.01, status=429, wait=timedelta(seconds=0.2))
        began = time.monotonic()
        await asyncio.gather(*[request(host, seconds=0, peak=[], under_way=[0]) for _ in range(5)])
        assert 0.18 < time.monotonic() - began < 1
        await host.turn()
        host.done(began=time.monotonic(), took=0.01, status=429, wait=timedelta(hours=1))
        pause = await host.turn()
        assert pause is not None
        assert pause > timedelta(minutes=59)

    asyncio.run(story())


def test_turns_that_are_given_up_are_not_lost() -> None:
    async def story() -> None:
        host = Host()
        with host.crawled(at_once=2, delay=0):
            for _ in range(2):
                await host.turn()
            waiting = [asyncio.create_task(host.turn()) for _ in range(10)]
            await asyncio.sleep(0)
            for task in waiting[:5]:
                task.cancel()
            host.dropped()  # one goes on …
            waiting[5].cancel()  # … and is given up before it noticed
            host.dropped()
            for task in waiting[6:]:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait_for(task, 1)
                    host.dropped()
            assert host._under_way == 0

    asyncio.run(story())
