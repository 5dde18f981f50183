"""The batch and the pipeline of a crawl, with steps that the test lets go one by one."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from kept.crawl import pipeline as pipeline_module
from kept.crawl.decide import NotKept, VisitResult
from kept.crawl.pipeline import BATCH_PAGES, BATCH_SECONDS, TRIAL_PAGES, Batch, Pipeline
from kept.model.frontier import FrontierEntry, Outcome


def entry(url: str) -> FrontierEntry:
    return FrontierEntry(url=url, depth=0, attempts=0, reached=True, base_version=None)


def result(url: str) -> VisitResult:
    return VisitResult(entry=entry(url), decision=NotKept(outcome=Outcome.GONE, reason="404"))


def results(count: int) -> list[VisitResult]:
    return [result(str(number)) for number in range(count)]


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


# The batch


def test_the_first_batches_are_due_early_so_that_a_short_life_commits_something() -> None:
    clock = Clock()
    batch = Batch(clock)
    clock.now += 10  # what the start of the crawl took
    batch.start()
    due_after = []
    for _ in range(5):
        batch.add(results(1))
        due_after.append(batch.seconds_left)
        batch.take()
    assert due_after == [0.25, 0.5, 1.0, BATCH_SECONDS, BATCH_SECONDS]


def test_a_batch_is_due_after_its_seconds_however_small_it_is() -> None:
    clock = Clock()
    batch = Batch(clock)
    for _ in range(3):
        batch.take()
    batch.add(results(1))
    assert batch.seconds_left == BATCH_SECONDS
    clock.now += BATCH_SECONDS - 0.5
    assert batch.seconds_left == 0.5
    clock.now += 10
    assert batch.seconds_left == 0.0


def test_a_batch_gives_its_oldest_results_and_no_more_than_fit_into_one_commit() -> None:
    batch = Batch(Clock())
    batch.add(results(BATCH_PAGES - 1))
    assert not batch.is_full
    batch.add(results(2))
    assert batch.is_full
    taken = batch.take()
    assert len(taken) == BATCH_PAGES
    assert taken[0].entry.url == "0"
    assert (len(batch), batch.is_full) == (1, False)


def test_taking_a_batch_measures_its_speed_and_starts_the_next_one() -> None:
    clock = Clock()
    batch = Batch(clock)
    assert batch.visits_per_second is None
    batch.add(results(10))
    clock.now += 4.0
    batch.take()
    assert batch.visits_per_second == 2.5
    assert batch.seconds_left == 0.5  # the first batches are shorter


# The pipeline


class Steps:
    """The steps of a pipeline: each waits until the test lets it end."""

    def __init__(self) -> None:
        self.leases: list[asyncio.Future[list[FrontierEntry]]] = []
        self.visits: dict[str, asyncio.Future[VisitResult]] = {}
        self.commits: list[tuple[list[str], asyncio.Future[None]]] = []
        self.clock = Clock()
        self.pipeline = Pipeline(lease=self.lease, visit=self.visit, commit=self.commit, clock=self.clock)

    async def lease(self) -> list[FrontierEntry]:
        self.leases.append(asyncio.get_running_loop().create_future())
        return await self.leases[-1]

    async def visit(self, entry: FrontierEntry) -> VisitResult:
        self.visits[entry.url] = asyncio.get_running_loop().create_future()
        return await self.visits[entry.url]

    async def commit(self, results: list[VisitResult]) -> None:
        done = asyncio.get_running_loop().create_future()
        self.commits.append((sorted(one.entry.url for one in results), done))
        await done

    @property
    def committed(self) -> list[list[str]]:
        return [urls for urls, _ in self.commits]

    @property
    def under_way(self) -> set[str]:
        return {url for url, visit in self.visits.items() if not visit.done()}

    async def go_on(self, *, concurrency: int = 2, lease_size: int = 4, is_stopping: bool = False) -> bool:
        """Start what can run, and collect what has ended."""
        self.pipeline.start(concurrency=concurrency, lease_size=lease_size, is_stopping=is_stopping)
        return await self.collect()

    async def lease_gives(self, *urls: str) -> bool:
        self.leases[-1].set_result([entry(url) for url in urls])
        return await self.collect()

    async def visited(self, *urls: str) -> None:
        for url in urls:
            self.visits[url].set_result(result(url))
        await self.collect()

    async def collect(self) -> bool:
        for _ in range(5):  # for every task to begin or end
            await asyncio.sleep(0)
        self.pipeline.wake()
        return await self.pipeline.wait(0.0)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(scenario, 10))


def test_no_more_visits_are_under_way_than_the_origin_allows() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a", "b", "c", "d")
            await steps.go_on(concurrency=2)
            assert steps.under_way == {"a", "b"}
            await steps.visited("a")
            await steps.go_on(concurrency=2)
            assert steps.under_way == {"b", "c"}
            await steps.go_on(concurrency=3)
            assert steps.under_way == {"b", "c", "d"}

    run(scenario())


def test_entries_are_leased_before_the_last_ones_are_visited() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on(lease_size=4)
            await steps.lease_gives("a", "b", "c", "d", "e")
            await steps.go_on(concurrency=2, lease_size=4)
            assert len(steps.leases) == 1  # three entries are left: more than half of a lease
            await steps.visited("a")
            await steps.go_on(concurrency=2, lease_size=4)
            assert len(steps.leases) == 2
            assert steps.under_way == {"b", "c"}

    run(scenario())


def test_nothing_is_leased_where_nothing_may_be_visited() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on(concurrency=0)
            assert steps.leases == []

    run(scenario())


def test_few_pages_are_visited_after_an_interruption_until_a_commit_has_succeeded() -> None:
    urls = [f"{number:02}" for number in range(40)]

    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            steps.pipeline.is_on_trial = True
            await steps.go_on()
            await steps.lease_gives(*urls)
            await steps.go_on(concurrency=16)
            assert steps.under_way == set(urls[:TRIAL_PAGES])
            await steps.visited(*urls[: TRIAL_PAGES - 2])
            await steps.go_on(concurrency=16)
            assert steps.under_way == set(urls[TRIAL_PAGES - 2 : TRIAL_PAGES])
            await steps.visited(*urls[TRIAL_PAGES - 2 : TRIAL_PAGES])
            steps.clock.now += BATCH_SECONDS
            await steps.go_on(concurrency=16)
            assert steps.committed == [urls[:TRIAL_PAGES]]
            assert not steps.under_way
            steps.commits[0][1].set_result(None)
            await steps.collect()
            await steps.go_on(concurrency=16)
            assert len(steps.under_way) == 16

    run(scenario())


def test_visits_and_leases_go_on_while_a_batch_is_committed() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a", "b", "c", "d")
            await steps.go_on()
            await steps.visited("a", "b")
            steps.clock.now += BATCH_SECONDS
            await steps.go_on()
            assert steps.committed == [["a", "b"]]
            assert steps.under_way == {"c", "d"}
            assert len(steps.leases) == 2
            await steps.visited("c", "d")
            steps.clock.now += BATCH_SECONDS
            await steps.go_on()
            assert steps.committed == [["a", "b"]], "one commit at a time"
            steps.commits[0][1].set_result(None)
            await steps.collect()
            await steps.go_on()
            assert steps.committed == [["a", "b"], ["c", "d"]]

    run(scenario())


def test_a_site_that_is_faster_than_the_database_waits_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pipeline_module, "BATCH_PAGES", 2)

    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            steps.pipeline._has_committed = True
            await steps.go_on()
            await steps.lease_gives("a", "b", "c", "d")
            await steps.go_on(concurrency=4)
            await steps.lease_gives(*"efgh")
            await steps.visited("a", "b")
            await steps.go_on(concurrency=2)
            assert steps.committed == [["a", "b"]], "a full batch is committed at once"
            await steps.visited("c", "d")
            leases = len(steps.leases)
            await steps.go_on(concurrency=4)
            await steps.visited(*"efgh")
            await steps.go_on(concurrency=4)
            assert len(steps.leases) == leases, "the batch is full, and the one before is not committed yet"

    run(scenario())


def test_when_the_frontier_has_no_more_entries_what_was_visited_is_committed_early() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a", "b", "c")  # fewer than were asked for: there are no more
            await steps.go_on(concurrency=2)
            await steps.visited("a")
            await steps.go_on(concurrency=2)
            assert steps.committed == [], "two are left, and may be visited at once"
            await steps.visited("b")
            await steps.go_on(concurrency=2)
            assert steps.committed == [["a", "b"]], "though the batch is neither full nor old"

    run(scenario())


def test_a_frontier_that_gave_too_few_is_asked_again_only_after_a_commit() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a")
            await steps.go_on()
            assert len(steps.leases) == 1
            await steps.visited("a")
            await steps.go_on()
            assert len(steps.leases) == 1, "the batch may bring new URLs: it comes first"
            steps.commits[0][1].set_result(None)
            await steps.collect()
            await steps.go_on()
            assert len(steps.leases) == 2

    run(scenario())


def test_after_a_commit_entries_are_leased_again_while_others_are_still_visited() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a", "b")
            await steps.go_on()
            await steps.visited("a")
            await steps.go_on()
            assert len(steps.leases) == 1
            steps.commits[0][1].set_result(None)
            await steps.collect()
            await steps.go_on()
            assert (len(steps.leases), steps.under_way) == (2, {"b"})

    run(scenario())


def test_waiting_tells_when_a_lease_brought_nothing_and_nothing_is_under_way() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            assert not await steps.go_on()
            assert not await steps.lease_gives("a")
            assert not await steps.go_on()
            await steps.visited("a")
            await steps.go_on()
            steps.commits[0][1].set_result(None)
            assert not await steps.collect(), "the commit may have brought entries"
            await steps.go_on()
            assert await steps.lease_gives()
            assert steps.pipeline.is_idle

    run(scenario())


def test_when_stopping_what_was_visited_is_committed_and_nothing_else_is_started() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a", "b", "c", "d")
            await steps.go_on()
            await steps.visited("a")
            assert steps.pipeline.has_uncommitted
            leases = len(steps.leases)
            await steps.go_on(is_stopping=True)
            assert steps.committed == [["a"]]
            assert (steps.under_way, len(steps.leases)) == ({"b"}, leases)
            steps.commits[0][1].set_result(None)
            await steps.collect()
            assert not steps.pipeline.has_uncommitted

    run(scenario())


def test_dropped_entries_are_not_visited_and_their_visits_are_cancelled() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            assert not await steps.pipeline.drop_entries()
            await steps.go_on()
            await steps.lease_gives("a", "b", "c", "d")
            await steps.go_on(concurrency=1)
            assert await steps.pipeline.drop_entries()
            assert steps.visits["a"].cancelled()
            assert steps.pipeline.is_idle
            await steps.go_on(concurrency=4)
            assert steps.under_way == set()

    run(scenario())


@pytest.mark.parametrize("step", ["lease", "visit", "commit"])
def test_what_a_step_raises_is_raised_by_waiting_and_leaving_cancels_the_rest(step: str) -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            await steps.go_on()
            await steps.lease_gives("a", "b", "c", "d")
            await steps.go_on(concurrency=4)
            await steps.visited("a")
            steps.clock.now += BATCH_SECONDS
            await steps.go_on(concurrency=4)
            under_way: dict[str, asyncio.Future[Any]] = {
                "lease": steps.leases[-1],
                "visit": steps.visits["b"],
                "commit": steps.commits[0][1],
            }
            under_way[step].set_exception(RuntimeError(step))
            with pytest.raises(RuntimeError, match=step):
                await steps.collect()
        left: list[asyncio.Future[Any]] = [
            steps.leases[-1],
            *steps.visits.values(),
            *(done for _, done in steps.commits),
        ]
        assert all(future.done() for future in left)

    run(scenario())


def test_waking_ends_a_wait() -> None:
    async def scenario() -> None:
        async with (steps := Steps()).pipeline:
            asyncio.get_running_loop().call_later(0.01, steps.pipeline.wake)
            assert not await steps.pipeline.wait(3600.0)

    run(scenario())
