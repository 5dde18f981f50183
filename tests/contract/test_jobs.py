"""What jobs, their workers and the reaper must do, whichever the database is."""

import asyncio
import os
import random
import tempfile
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from kept.crawl.engine import Walk
from kept.crawl.sweep import Rules
from kept.errors import LeaseLost, NeedsDecision, NoSuchThing, WrongCall
from kept.model.ids import new_id
from kept.model.job import JOB_MOVES, CrawlJob, JobStatus
from kept.model.source import Source
from kept.service import crawls, sources
from kept.store import jobs
from kept.store.database import Database, open_database
from kept.store.jobs import Place
from kept.upkeep.reaper import Reaper
from kept.work import queue
from kept.work.worker import CALLS, process_started, this_host, work_on
from tests.contract.stories import raw, story
from tests.crash import many_jobs
from tests.given import ROOT, Page, Site, a_database, a_source, read_scripted

LIVE = (JobStatus.PENDING, JobStatus.PROCESSING, JobStatus.PAUSED)


async def a_place(db: Database, *, host: str = "elsewhere/1", pid: int = 1) -> Place:
    """A job that a worker of another machine has claimed."""
    async with db.transaction() as tx:
        job = await jobs.claim(tx, worker=new_id())
        assert job is not None
        place = Place(
            id=new_id(), job_id=job.id, name="w", host=host, pid=pid, process_started="1", attempt=job.attempt
        )
        await jobs.enter(tx, place)
    return place


async def job_of(db: Database, place: Place) -> CrawlJob:
    return await crawls.get_job(db, place.job_id)


# The reaper ----------------------------------------------------------------------------------------------------


class Hand:
    """A monotonic clock that is set by hand."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def grow_silent(db: Database, place: Place, hand: Hand) -> None:
    """Three minutes pass without a heartbeat, on whichever clock counts."""
    hand.seconds += 180
    if db.one_clock:
        async with db.transaction() as tx:
            await raw(tx, f"UPDATE job_workers SET last_heartbeat = ago(180) WHERE id = '{place.id}'")


@story
async def test_a_silent_worker_loses_its_job_and_one_that_is_heard_of_keeps_it(db: Database) -> None:
    hand = Hand()
    reaper = Reaper(clock=hand)
    await queue.request(db, (await a_source(db)).id)
    place = await a_place(db)
    assert (await reaper.reap(db)).workers == 0
    await grow_silent(db, place, hand)
    async with db.transaction() as tx:
        assert await jobs.beat(tx, place)
    assert (await reaper.reap(db)).workers == 0
    await grow_silent(db, place, hand)
    reaped = await reaper.reap(db)
    assert (reaped.workers, reaped.jobs) == (1, 1)
    job = await job_of(db, place)
    assert (job.status, job.retry_count) == (JobStatus.PENDING, 1)
    async with db.transaction() as tx:
        with pytest.raises(LeaseLost):
            await jobs.hold(tx, place)


@story
async def test_a_job_that_makes_no_progress_fails_when_its_retries_are_spent(db: Database) -> None:
    hand = Hand()
    reaper = Reaper(clock=hand)
    await queue.request(db, (await a_source(db)).id)
    for _ in range(4):
        place = await a_place(db)
        await reaper.reap(db)
        await grow_silent(db, place, hand)
        assert (await reaper.reap(db)).jobs == 1
    job = await job_of(db, place)
    assert (job.status, job.error, job.retry_count) == (JobStatus.FAILED, "worker timed out", 3)


@story
async def test_a_worker_heard_of_after_it_was_judged_is_not_buried(db: Database) -> None:
    await queue.request(db, (await a_source(db)).id)
    place = await a_place(db)
    async with db.transaction() as tx:
        await jobs.beat(tx, place)
    async with db.transaction() as tx:
        assert not await jobs.bury(tx, place), "it was judged by what it said before"


@story
async def test_a_dead_process_of_this_machine_is_reaped_at_once_and_a_living_one_never_for_that(db: Database) -> None:
    for name in ("dead", "living"):
        await queue.request(db, (await a_source(db, name, root=f"{ROOT}{name}/")).id)
    dead = await a_place(db, host=this_host(), pid=2**22 + 1)
    async with db.transaction() as tx:
        job = await jobs.claim(tx, worker=new_id())
        assert job is not None
        living = Place(
            id=new_id(),
            job_id=job.id,
            name="w",
            host=this_host(),
            pid=os.getpid(),
            process_started=process_started(os.getpid()) or "",
            attempt=job.attempt,
        )
        await jobs.enter(tx, living)
    assert (await Reaper().reap(db)).workers == 1
    assert (await job_of(db, dead)).status is JobStatus.PENDING
    assert (await job_of(db, living)).status is JobStatus.PROCESSING


def test_any_number_of_reapers_count_one_failure_once(database_url: str) -> None:
    async def tell() -> None:
        async with a_database(database_url) as db, a_database(database_url) as other:
            await queue.request(db, (await a_source(db)).id)
            place = await a_place(db)
            hand = Hand()
            reapers = [(one, Reaper(clock=hand)) for one in (db, other) for _ in range(3)]
            await asyncio.gather(*(reaper.reap(one) for one, reaper in reapers))
            await grow_silent(db, place, hand)
            reaped = await asyncio.gather(*(reaper.reap(one) for one, reaper in reapers))
            assert sum(one.workers for one in reaped) == 1
            assert (await job_of(db, place)).retry_count == 1

    asyncio.run(tell())


@story
async def test_more_silent_workers_than_a_page_holds_are_all_reaped_in_one_pass(db: Database) -> None:
    hand = Hand()
    reaper = Reaper(clock=hand)
    for number in range(120):
        await queue.request(db, (await a_source(db, f"s{number}", root=f"{ROOT}{number}/")).id)
        await a_place(db)
    await reaper.reap(db)
    hand.seconds += 180
    if db.one_clock:
        async with db.transaction() as tx:
            await raw(tx, "UPDATE job_workers SET last_heartbeat = ago(180)")
    assert (await reaper.reap(db)).workers == 120


@story
async def test_a_job_that_nobody_walks_though_it_says_so_is_given_back(db: Database) -> None:
    await queue.request(db, (await a_source(db)).id)
    place = await a_place(db)
    async with db.transaction() as tx:
        await jobs.leave(tx, place.id)
    assert (await Reaper().reap(db)).jobs == 1
    assert (await job_of(db, place)).status is JobStatus.PENDING


def test_two_workers_that_leave_at_once_leave_nothing_behind(database_url: str) -> None:
    async def tell() -> None:
        from kept.work.worker import _leave

        async with a_database(database_url) as db, a_database(database_url) as other:
            await queue.request(db, (await a_source(db)).id)
            for _ in range(10):
                first = await a_place(db)
                second = Place(**{**_fields(first), "id": new_id()})
                async with db.transaction() as tx:
                    await jobs.enter(tx, second)
                await asyncio.gather(_leave(db, first), _leave(other, second))
                assert (await job_of(db, first)).status is JobStatus.PENDING

    asyncio.run(tell())


def _fields(place: Place) -> dict[str, Any]:
    return {name: getattr(place, name) for name in Place.__slots__}


# Waking --------------------------------------------------------------------------------------------------------


def test_a_new_job_wakes_whoever_waits_and_a_wait_without_one_ends(database_url: str) -> None:
    async def tell() -> None:
        async with a_database(database_url) as db, a_database(database_url) as other:
            assert not await other.wait(CALLS, 0.05)
            source = await a_source(db)
            waiting = asyncio.create_task(other.wait(CALLS, 5.0 if db.one_clock else 0.1))
            await asyncio.sleep(0)
            began = time.monotonic()
            await queue.request(db, source.id)
            assert await waiting is db.one_clock
            assert time.monotonic() - began < 2

    asyncio.run(tell())


def test_a_call_between_two_waits_is_not_missed(database_url: str) -> None:
    async def tell() -> None:
        async with a_database(database_url) as db, a_database(database_url) as other:
            assert not await other.wait(CALLS, 0.01)
            await queue.request(db, (await a_source(db)).id)
            assert await other.wait(CALLS, 2.0 if db.one_clock else 0.01) is db.one_clock

    asyncio.run(tell())


# What people call jobs -----------------------------------------------------------------------------------------


@story
async def test_a_job_may_be_named_by_the_beginning_of_its_id(db: Database) -> None:
    job = await queue.request(db, (await a_source(db)).id)
    assert (await crawls.show_job(db, job.id[:20])).job == job
    assert (await crawls.show_job(db, job.id.upper())).source == "docs"
    other = await queue.request(db, (await a_source(db, "other", root=f"{ROOT}other/")).id)
    with pytest.raises(WrongCall, match="Say more of the id"):
        await crawls.show_job(db, job.id[:6])
    for nonsense in ("", "%", "f" * 36, "no such thing", "'"):
        with pytest.raises(NoSuchThing):
            await crawls.show_job(db, nonsense)
    assert [view.job.id for view in await crawls.list_jobs(db)] == [other.id, job.id]
    await crawls.pause_job(db, job.id)
    assert [view.job.id for view in await crawls.list_jobs(db, status="paused")] == [job.id]


# Many of them --------------------------------------------------------------------------------------------------


def test_many_small_jobs_are_each_run_once_in_the_order_of_priority(database_url: str, tmp_path: Path) -> None:
    is_sqlite = database_url.startswith("sqlite")
    chance = random.Random(os.environ["KEPT_TEST_SEED"])
    many_jobs.run(database_url, tmp_path, jobs=100 if is_sqlite else 300, workers=3 if is_sqlite else 4, chance=chance)


# Any commands, in any order ------------------------------------------------------------------------------------


class Commands(RuleBasedStateMachine):
    """Two sources and everything that can happen to their jobs; a model says what each command may do."""

    names = st.sampled_from(["a", "b"])

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.TemporaryDirectory()
        self.db: Database = self.do(open_database(f"sqlite:///{self.folder.name}/kept.db"))
        self.kept: dict[str, Source] = {}
        self.status: dict[str, JobStatus] = {}  # of every job that ever was
        self.live: dict[str, str] = {}  # source -> its live job
        self.again: set[str] = set()
        self.ghosts: dict[str, Place] = {}  # jobs whose worker is dead, and nobody knows

    def do(self, coroutine: Any) -> Any:
        return self.loop.run_until_complete(coroutine)

    def teardown(self) -> None:
        self.do(self.db.close())
        self.loop.close()
        self.folder.cleanup()

    @rule(name=names)
    def ask(self, name: str) -> None:
        if name not in self.kept:
            self.kept[name] = self.do(a_source(self.db, name, root=f"{ROOT}{name}/"))
        job = self.live.get(name)
        if job and self.status[job] is JobStatus.PAUSED:
            with pytest.raises(NeedsDecision):
                self.do(crawls.request_crawl(self.db, name))
            return
        asked = self.do(crawls.request_crawl(self.db, name))
        assert job in (None, asked.id)
        if job and self.status[job] is JobStatus.PROCESSING:
            self.again.add(job)
        self.live[name] = asked.id
        self.status.setdefault(asked.id, JobStatus.PENDING)

    @rule(name=names, command=st.sampled_from(["pause", "resume", "cancel"]))
    def steer(self, name: str, command: str) -> None:
        job = self.live.get(name)
        if job is None:
            return
        to = {"pause": JobStatus.PAUSED, "resume": JobStatus.PENDING, "cancel": JobStatus.CANCELLED}[command]
        frm = {"pause": LIVE[:2], "resume": LIVE[2:], "cancel": LIVE}[command]
        verb = {"pause": crawls.pause_job, "resume": crawls.resume_job, "cancel": crawls.cancel_job}[command]
        if self.status[job] not in frm:
            with pytest.raises(NeedsDecision):
                self.do(verb(self.db, job))
            return
        assert to in JOB_MOVES[self.status[job]]
        assert self.do(verb(self.db, job)).job.status is to
        self.status[job] = to
        if to is JobStatus.CANCELLED:
            del self.live[name]

    @rule()
    def work(self) -> None:
        """Somebody claims the first job that is due, and walks it to its end."""
        site = Site({f"{ROOT}{name}/": Page(name * 30) for name in "ab"})

        def make_walk(place: Place, source: Source) -> Walk:
            site.root = source.root
            return Walk(self.db, place, source, site, read=read_scripted, signature="1", rules=Rules())

        done: CrawlJob | None = self.do(work_on(self.db, None, make_walk))
        waiting = [job for job in self.live.values() if self.status[job] is JobStatus.PENDING]
        assert (done is None) == (not waiting)
        if done is None:
            return
        assert done.id in waiting
        name = next(name for name, job in self.live.items() if job == done.id)
        assert done.status is JobStatus.COMPLETED, done.error
        self.status[done.id] = done.status
        del self.live[name]
        self.follow(name, done.id)

    @rule()
    def die(self) -> None:
        """Somebody claims a job, and dies."""
        waiting = [job for job in self.live.values() if self.status[job] is JobStatus.PENDING]
        if waiting:
            place = self.do(a_place(self.db, host=this_host(), pid=2**22 + 1))
            assert place.job_id in waiting
            self.status[place.job_id] = JobStatus.PROCESSING
            self.ghosts[place.id] = place

    @rule()
    def reap(self) -> None:
        reaped = self.do(Reaper().reap(self.db))
        assert reaped.workers == len(self.ghosts)
        for job in {place.job_id for place in self.ghosts.values()}:
            if self.status[job] is JobStatus.PROCESSING:
                now = self.do(crawls.get_job(self.db, job))
                assert now.status in (JobStatus.PENDING, JobStatus.FAILED)
                self.status[job] = now.status
                if now.status is JobStatus.FAILED:
                    name = next(name for name, live in self.live.items() if live == job)
                    del self.live[name]
                    self.follow(name, job)
        self.ghosts.clear()

    @rule(name=names)
    def remove(self, name: str) -> None:
        if name in self.kept:
            self.do(sources.remove_source(self.db, name))
            del self.kept[name]
            if job := self.live.pop(name, None):
                self.status[job] = JobStatus.CANCELLED

    def follow(self, name: str, job: str) -> None:
        """What was asked for meanwhile is not lost."""
        if job in self.again:
            follower = self.do(sources.show_source(self.db, name)).last_job
            assert follower is not None
            assert follower.id not in self.status
            self.live[name], self.status[follower.id] = follower.id, follower.status

    @invariant()
    def every_job_is_where_the_commands_have_brought_it(self) -> None:
        async def look() -> list[tuple[Any, ...]]:
            async with self.db.snapshot() as snapshot:
                return await raw(snapshot, "SELECT id, status FROM crawl_jobs")

        assert dict(self.do(look())) == self.status


def test_any_commands_in_any_order_keep_jobs_in_legal_states() -> None:
    run_state_machine_as_test(Commands, settings=settings(max_examples=15, stateful_step_count=30, deadline=None))
