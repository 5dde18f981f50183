"""Rate limits of a host: how they adapt, and how requests wait for slots."""

import asyncio
import time
from contextlib import suppress
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kept.origins.web.rate_limiter import (
    INITIAL_CONCURRENCY,
    AdaptiveRate,
    HostRateLimiter,
    RateLimiters,
    parse_retry_after,
)

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
    assert parse_retry_after({"Retry-After": text}, NOW) == wait


# ── Tempo ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def learn(
    tempo: AdaptiveRate, now: float, *, status: int | None = 200, took: float = 0.05, wait: float | None = None
) -> None:
    tempo.record_response(started_at=now - took, now=now, elapsed=took, status=status, retry_after=wait)


@pytest.mark.parametrize("status", [429, 503])
def test_an_overloaded_host_halves_the_concurrency_down_to_one_and_then_it_grows_again(status: int) -> None:
    tempo, seen = AdaptiveRate(), []
    for second in range(1, 7):
        learn(tempo, second * 10.0, status=status)
        seen.append(int(tempo.concurrency))
    assert seen == [4, 2, 1, 1, 1, 1]
    for answer in range(200):
        learn(tempo, 100 + answer / 10)
    assert tempo.concurrency == INITIAL_CONCURRENCY


def test_responses_to_earlier_requests_do_not_reduce_the_rate_twice() -> None:
    tempo = AdaptiveRate()
    for _ in range(8):
        learn(tempo, 10.0, status=503, took=1)
    assert int(tempo.concurrency) == 4


def test_a_burst_of_overload_responses_reduces_the_rate_once() -> None:
    tempo = AdaptiveRate()
    for _ in range(8):
        tempo.record_response(started_at=1.0, now=2.0, elapsed=1.0, status=503, retry_after=None)
    assert (int(tempo.concurrency), tempo.not_before) == (4, 3.0)


def test_one_page_that_is_unavailable_for_a_day_does_not_stop_the_others() -> None:
    tempo = AdaptiveRate()
    learn(tempo, 10, status=503, wait=86400)
    assert tempo.not_before == 0
    learn(tempo, 20, status=503, wait=86400)
    assert tempo.not_before == 86420, "but the second in a row does"


def test_the_pause_is_that_of_retry_after_or_doubles_each_time() -> None:
    tempo = AdaptiveRate()
    learn(tempo, 10, status=429, wait=30)
    assert tempo.not_before == 40
    told_nothing = AdaptiveRate()
    pauses = []
    for second in (10, 20, 40, 80):
        learn(told_nothing, second, status=503)
        pauses.append(told_nothing.not_before - second)
    assert pauses == [1, 2, 4, 8]


def test_rising_latency_reduces_the_rate_and_constant_latency_does_not() -> None:
    tempo = AdaptiveRate()
    for answer in range(50):
        learn(tempo, answer / 10, took=0.1)
    assert tempo.concurrency == INITIAL_CONCURRENCY
    lowest = tempo.concurrency
    for answer in range(30):
        learn(tempo, 10 + 3.0 * answer, took=2.0)
        lowest = min(lowest, tempo.concurrency)
    assert int(lowest) == 1
    slow = AdaptiveRate()
    for answer in range(100):
        learn(slow, answer, took=2.0)
    assert slow.concurrency == INITIAL_CONCURRENCY


STATUSES = st.sampled_from([200, 304, 404, 429, 500, 503, None])


@given(st.lists(st.tuples(STATUSES, st.floats(0, 100), st.none() | st.floats(0, 1000))))
def test_the_concurrency_is_always_between_one_and_the_maximum(
    responses: list[tuple[int | None, float, float | None]],
) -> None:
    tempo, now = AdaptiveRate(), 0.0
    for status, took, wait in responses:
        now += took
        learn(tempo, now, status=status, took=took, wait=wait)
        assert 1 <= tempo.concurrency <= tempo.max_concurrency


# ── Turns ────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def request(host: HostRateLimiter, *, seconds: float = 0.01, peak: list[int], under_way: list[int]) -> None:
    assert await host.acquire() is None
    under_way[0] += 1
    peak.append(under_way[0])
    began = time.monotonic()
    await asyncio.sleep(seconds)
    under_way[0] -= 1
    host.release(started_at=began, elapsed=0.01, status=200)


def test_no_more_requests_than_allowed_are_in_flight_and_two_crawls_share_them() -> None:
    async def scenario() -> None:
        pacing = RateLimiters()
        assert pacing.for_host("docs.test", 443) is pacing.for_host("docs.test", 443)
        assert pacing.for_host("docs.test", 443) is not pacing.for_host("docs.test", 80)
        host = pacing.for_host("docs.test", 443)
        peak: list[int] = []
        under_way = [0]
        with host.join(max_concurrency=8, delay=0):
            await asyncio.gather(*[request(host, peak=peak, under_way=under_way) for _ in range(50)])
            assert max(peak) == 8
            peak.clear()
            with host.join(max_concurrency=3, delay=0):
                await asyncio.gather(*[request(host, peak=peak, under_way=under_way) for _ in range(30)])
                assert max(peak) == 3, "the gentler one counts"
            peak.clear()
            await asyncio.gather(*[request(host, peak=peak, under_way=under_way) for _ in range(50)])
            assert max(peak) == 8

    asyncio.run(scenario())


def test_a_delay_is_kept_between_starts() -> None:
    async def scenario() -> None:
        host = HostRateLimiter()
        with host.join(max_concurrency=8, delay=0.05):
            began = time.monotonic()
            await asyncio.gather(*[request(host, seconds=0, peak=[], under_way=[0]) for _ in range(5)])
            assert 0.19 < time.monotonic() - began < 1

    asyncio.run(scenario())


def test_a_pause_holds_all_requests_and_ends() -> None:
    async def scenario() -> None:
        host = HostRateLimiter()
        await host.acquire()
        host.release(started_at=time.monotonic(), elapsed=0.01, status=429, retry_after=timedelta(seconds=0.2))
        began = time.monotonic()
        await asyncio.gather(*[request(host, seconds=0, peak=[], under_way=[0]) for _ in range(5)])
        assert 0.18 < time.monotonic() - began < 1
        await host.acquire()
        host.release(started_at=time.monotonic(), elapsed=0.01, status=429, retry_after=timedelta(hours=1))
        pause = await host.acquire()
        assert pause is not None
        assert pause > timedelta(minutes=59)

    asyncio.run(scenario())


def test_slots_of_cancelled_waiters_are_not_lost() -> None:
    async def scenario() -> None:
        host = HostRateLimiter()
        with host.join(max_concurrency=2, delay=0):
            for _ in range(2):
                await host.acquire()
            waiting = [asyncio.create_task(host.acquire()) for _ in range(10)]
            await asyncio.sleep(0)
            for task in waiting[:5]:
                task.cancel()
            host.release_unused()  # one goes on …
            waiting[5].cancel()  # … and is given up before it noticed
            host.release_unused()
            for task in waiting[6:]:
                with suppress(asyncio.CancelledError):
                    await asyncio.wait_for(task, 1)
                    host.release_unused()
            assert host._in_flight == 0

    asyncio.run(scenario())
