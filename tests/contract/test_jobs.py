"""Jobs, their workers and the reaper, on both databases."""

import asyncio
import json
import os
import random
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from kept.crawl import activate, settle, start
from kept.crawl.decide import NotKept, VisitResult
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import InvalidInput, LeaseLost, NotFound, SourceUnavailable
from kept.jobs import queue
from kept.jobs.worker import JOBS_CHANNEL, Worker, claim_and_run, process_start_time, this_host
from kept.maintenance.gc import Retention, collect, find_garbage
from kept.maintenance.reaper import Reaper
from kept.model.frontier import DiscoveredUrl, FrontierEntry, Outcome, Visit
from kept.model.generation import GenerationState
from kept.model.ids import new_id
from kept.model.job import CrawlJob, JobStatus, Lease
from kept.model.source import Limits, Source, SourceSettings
from kept.runtime.runtime import open_runtime
from kept.service import generations as service_generations
from kept.service import jobs as jobs_service
from kept.service import sources
from kept.settings import load
from kept.store import frontier, jobs
from kept.store.database import Database
from tests.contract.databases import on_both_databases, run_sql
from tests.crash import many_jobs, random_commands
from tests.factories import ROOT, Page, Site, crawl, database_at, make_lease, make_source, read_scripted


async def job_of(db: Database, lease: Lease) -> CrawlJob:
    return await jobs_service.get_job(db, lease.job_id)


# The reaper ----------------------------------------------------------------------------------------------------


class Hand:
    """A monotonic clock set by the test."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


async def grow_silent(db: Database, lease: Lease, hand: Hand) -> None:
    """Let three minutes pass without a heartbeat, on the clock of the database or of the process."""
    hand.seconds += 180
    if db.has_shared_clock:
        async with db.transaction() as tx:
            await run_sql(tx, f"UPDATE job_workers SET last_heartbeat = ago(180) WHERE id = '{lease.id}'")


@on_both_databases
async def test_a_silent_worker_loses_its_job_and_one_with_heartbeats_keeps_it(db: Database) -> None:
    hand = Hand()
    reaper = Reaper(clock=hand)
    await queue.enqueue(db, (await make_source(db)).id)
    lease = await make_lease(db)
    assert (await reaper.reap(db)).workers == 0
    await grow_silent(db, lease, hand)
    async with db.transaction() as tx:
        assert await jobs.heartbeat(tx, lease)
    assert (await reaper.reap(db)).workers == 0
    await grow_silent(db, lease, hand)
    reaped = await reaper.reap(db)
    assert (reaped.workers, reaped.jobs) == (1, 1)
    job = await job_of(db, lease)
    assert (job.status, job.retry_count) == (JobStatus.PENDING, 1)
    async with db.transaction() as tx:
        with pytest.raises(LeaseLost):
            await jobs.lock_lease(tx, lease)


@on_both_databases
async def test_a_job_that_makes_no_progress_fails_when_its_retries_are_used_up(db: Database) -> None:
    hand = Hand()
    reaper = Reaper(clock=hand)
    await queue.enqueue(db, (await make_source(db)).id)
    for _ in range(4):
        lease = await make_lease(db)
        await reaper.reap(db)
        await grow_silent(db, lease, hand)
        assert (await reaper.reap(db)).jobs == 1
    job = await job_of(db, lease)
    assert (job.status, job.error, job.retry_count) == (JobStatus.FAILED, "worker timed out", 3)


@on_both_databases
async def test_a_worker_with_a_heartbeat_since_it_was_found_stale_keeps_its_lease(db: Database) -> None:
    await queue.enqueue(db, (await make_source(db)).id)
    lease = await make_lease(db)
    async with db.transaction() as tx:
        await jobs.heartbeat(tx, lease)
    async with db.transaction() as tx:
        assert not await jobs.revoke_lease(tx, lease), "the decision was based on an older heartbeat"


@on_both_databases
async def test_a_dead_process_of_this_machine_is_reaped_at_once_and_a_living_one_never_for_that(db: Database) -> None:
    for name in ("dead", "living"):
        await queue.enqueue(db, (await make_source(db, name, root=f"{ROOT}{name}/")).id)
    dead = await make_lease(db, host=this_host(), pid=2**22 + 1)
    async with db.transaction() as tx:
        job = await jobs.claim(tx, worker=new_id())
        assert job is not None
        living = Lease(
            id=new_id(),
            job_id=job.id,
            worker_name="w",
            host=this_host(),
            pid=os.getpid(),
            process_started=process_start_time(os.getpid()) or "",
            attempt=job.attempt,
        )
        await jobs.acquire_lease(tx, living)
    assert (await Reaper().reap(db)).workers == 1
    assert (await job_of(db, dead)).status is JobStatus.PENDING
    assert (await job_of(db, living)).status is JobStatus.PROCESSING


def test_any_number_of_reapers_count_one_failure_once(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            await queue.enqueue(db, (await make_source(db)).id)
            lease = await make_lease(db)
            hand = Hand()
            reapers = [(one, Reaper(clock=hand)) for one in (db, other) for _ in range(3)]
            await asyncio.gather(*(reaper.reap(one) for one, reaper in reapers))
            await grow_silent(db, lease, hand)
            reaped = await asyncio.gather(*(reaper.reap(one) for one, reaper in reapers))
            assert sum(one.workers for one in reaped) == 1
            assert (await job_of(db, lease)).retry_count == 1

    asyncio.run(scenario())


@on_both_databases
async def test_more_silent_workers_than_a_page_holds_are_all_reaped_in_one_pass(db: Database) -> None:
    hand = Hand()
    reaper = Reaper(clock=hand)
    for number in range(120):
        await queue.enqueue(db, (await make_source(db, f"s{number}", root=f"{ROOT}{number}/")).id)
        await make_lease(db)
    await reaper.reap(db)
    hand.seconds += 180
    if db.has_shared_clock:
        async with db.transaction() as tx:
            await run_sql(tx, "UPDATE job_workers SET last_heartbeat = ago(180)")
    assert (await reaper.reap(db)).workers == 120


@on_both_databases
async def test_a_processing_job_without_workers_is_requeued(db: Database) -> None:
    await queue.enqueue(db, (await make_source(db)).id)
    lease = await make_lease(db)
    async with db.transaction() as tx:
        await jobs.release_lease(tx, lease.id)
    assert (await Reaper().reap(db)).jobs == 1
    assert (await job_of(db, lease)).status is JobStatus.PENDING


def test_two_workers_that_release_a_job_at_once_leave_it_pending(database_url: str) -> None:
    async def scenario() -> None:
        from kept.jobs.worker import _release_lease

        async with database_at(database_url) as db, database_at(database_url) as other:
            await queue.enqueue(db, (await make_source(db)).id)
            for _ in range(10):
                first = await make_lease(db)
                second = Lease(**{**_fields(first), "id": new_id()})
                async with db.transaction() as tx:
                    await jobs.acquire_lease(tx, second)
                await asyncio.gather(_release_lease(db, first), _release_lease(other, second))
                assert (await job_of(db, first)).status is JobStatus.PENDING

    asyncio.run(scenario())


def _fields(lease: Lease) -> dict[str, Any]:
    return {name: getattr(lease, name) for name in Lease.__slots__}


# Waking --------------------------------------------------------------------------------------------------------


def test_a_new_job_wakes_waiting_workers_and_a_wait_without_one_ends(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            assert not await other.wait_for_notification(JOBS_CHANNEL, 0.05)
            source = await make_source(db)
            waiting = asyncio.create_task(
                other.wait_for_notification(JOBS_CHANNEL, 5.0 if db.has_shared_clock else 0.1)
            )
            await asyncio.sleep(0)
            began = time.monotonic()
            await queue.enqueue(db, source.id)
            assert await waiting is db.has_shared_clock
            assert time.monotonic() - began < 2

    asyncio.run(scenario())


def test_a_notification_between_two_waits_is_not_missed(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            assert not await other.wait_for_notification(JOBS_CHANNEL, 0.01)
            await queue.enqueue(db, (await make_source(db)).id)
            assert (
                await other.wait_for_notification(JOBS_CHANNEL, 2.0 if db.has_shared_clock else 0.01)
                is db.has_shared_clock
            )

    asyncio.run(scenario())


# What people call jobs -----------------------------------------------------------------------------------------


@on_both_databases
async def test_a_job_may_be_named_by_a_prefix_of_its_id(db: Database) -> None:
    job = await queue.enqueue(db, (await make_source(db)).id)
    assert (await jobs_service.show_job(db, job.id[:20])).job == job
    assert (await jobs_service.show_job(db, job.id.upper())).source == "docs"
    other = await queue.enqueue(db, (await make_source(db, "other", root=f"{ROOT}other/")).id)
    with pytest.raises(InvalidInput, match=r"Say more; .kept jobs. lists them"):
        await jobs_service.show_job(db, job.id[:6])
    for nonsense in ("", "%", "f" * 36, "no such thing", "'"):
        with pytest.raises(NotFound):
            await jobs_service.show_job(db, nonsense)
    assert [view.job.id for view in await jobs_service.list_jobs(db)] == [other.id, job.id]
    assert [view.job.id for view in await jobs_service.list_jobs(db, before=other.id)] == [job.id]
    await jobs_service.pause_job(db, job.id)
    assert [view.job.id for view in await jobs_service.list_jobs(db, status="paused")] == [job.id]


# Many of them --------------------------------------------------------------------------------------------------


def test_many_small_jobs_are_each_run_once_in_the_order_of_priority(database_url: str, tmp_path: Path) -> None:
    is_sqlite = database_url.startswith("sqlite")
    chance = random.Random(os.environ["KEPT_TEST_SEED"])
    many_jobs.run(database_url, tmp_path, jobs=100 if is_sqlite else 200, workers=3 if is_sqlite else 4, chance=chance)


# The fields of a job say what they are named for ----------------------------------------------------------------


async def job_row(db: Database, id: str) -> tuple[Any, ...]:
    async with db.snapshot() as snapshot:
        [row] = await run_sql(
            snapshot,
            f"SELECT payload, progress_percentage, worker_id, priority, user_id FROM crawl_jobs WHERE id = '{id}'",
        )
    payload = json.loads(row[0]) if isinstance(row[0], str) else row[0]
    return (payload, *row[1:])


@on_both_databases
async def test_a_job_has_its_payload_and_its_progress_and_no_worker_once_that_is_reaped(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "PROGRESS_SECONDS", 0.0)
    limits = Limits(max_pages=50, max_depth=3)
    source = await make_source(db, settings=SourceSettings(limits=limits, tags=("ours",)))
    id = (await queue.enqueue(db, source.id)).id
    asked = {"url": ROOT, "max_depth": 3, "max_pages": 50, "tags": ["ours"]}
    assert await job_row(db, id) == (asked, 0, None, 0, None)
    lease = await make_lease(db, host=this_host(), pid=2**22 + 1)
    assert (await job_row(db, id))[2] is not None
    assert (await Reaper().reap(db)).workers == 1
    assert (await job_of(db, lease)).status is JobStatus.PENDING
    assert (await job_row(db, id))[2] is None

    progress = []

    class Watched(Site):
        async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
            progress.append((await job_row(db, id))[1])
            return await super().visit(entry, conditional=conditional)

    pages = [f"{ROOT}{number}" for number in range(3)]
    chain = {url: Page(url, (after,)) for url, after in zip([ROOT, *pages], [*pages, ROOT], strict=True)}
    await crawl(db, source, Watched(chain))
    assert progress == sorted(progress)
    assert 0 < progress[-1] < 100
    assert (await job_row(db, id))[1] == 100


@on_both_databases
async def test_a_job_that_follows_has_the_priority_and_the_owner_that_it_was_requested_with(db: Database) -> None:
    source = await make_source(db)
    first = await queue.enqueue(db, source.id, priority=1)
    await make_lease(db)
    for priority, owner in ((4, "ci"), (9, "other"), (2, None)):
        await jobs_service.request_crawl(db, "docs", priority=priority, owner=owner)
    async with db.transaction() as tx:
        await activate.fail_job(tx, await jobs_service.get_job(db, first.id), "so that the other one follows")
    [follower, _] = await jobs_service.list_jobs(db)
    payload, _, _, priority, owner = await job_row(db, follower.job.id)
    assert (payload["url"], priority, owner) == (ROOT, 9, "ci")


@on_both_databases
async def test_ended_jobs_beyond_the_retention_are_collected_and_the_ledger_stays(db: Database) -> None:
    source, other = await make_source(db), await make_source(db, "other", root="https://other.test/")
    ledger = await crawl(db, source, Site({ROOT: Page("root")}))
    await crawl(db, other, Site({other.root: Page("other")}, root=other.root))
    for _ in range(6):
        await queue.cancel(db, (await queue.enqueue(db, source.id)).id)
    live = await queue.enqueue(db, source.id)
    found = [one.count for one in await find_garbage(db, Retention(jobs=3)) if one.what == "jobs"]
    assert (found, (await collect(db, Retention(jobs=3))).jobs) == ([4], 4)
    left = {one.job.id for one in await jobs_service.list_jobs(db) if one.source == "docs"}
    assert {ledger.id, live.id} < left
    assert len(left) == 4, "three, and the one whose frontier is the ledger"
    assert (await collect(db, Retention(jobs=3))).jobs == 0


# Requests are not lost, and a crawl that makes progress does not fail -------------------------------------------


@on_both_databases
async def test_a_request_during_a_running_job_is_not_lost(db: Database) -> None:
    source = await make_source(db)
    first = await queue.enqueue(db, source.id)
    requested: list[CrawlJob] = []

    class Asking(Site):
        async def visit(self, entry: FrontierEntry, *, conditional: bool) -> Visit:
            requested.append(await jobs_service.request_crawl(db, "docs"))
            return await super().visit(entry, conditional=conditional)

    site = Asking({ROOT: Page("hello")})

    def make_run(lease: Lease, source: Source) -> CrawlRun:
        return CrawlRun(db, lease, source, site, read=read_scripted, signature="1", rules=LifecycleRules())

    done = await claim_and_run(db, None, make_run)
    assert done
    assert (done.id, done.status) == (first.id, JobStatus.COMPLETED)
    assert [job.id for job in requested] == [first.id]
    [follower, _] = await jobs_service.list_jobs(db)
    assert follower.job.status is JobStatus.PENDING
    done = await claim_and_run(db, None, make_run)
    assert done
    assert (done.id, done.status) == (follower.job.id, JobStatus.COMPLETED)


@on_both_databases
async def test_a_crawl_that_is_killed_thirty_times_while_it_makes_progress_does_not_fail(db: Database) -> None:
    job = await queue.enqueue(db, (await make_source(db)).id)
    for number in range(30):
        dead = await make_lease(db, host=this_host(), pid=2**22 + 1)
        async with db.transaction() as tx:
            await jobs.lock_lease(tx, dead)
            assert (await jobs.advance_batch(tx, job.id)).batch == number + 1
        assert (await Reaper().reap(db)).jobs == 1
        assert (await job_of(db, dead)).retry_count == 1, "the batch after it sets this back"
    assert (await jobs_service.get_job(db, job.id)).status is JobStatus.PENDING


@on_both_databases
async def test_progress_is_counted_at_most_once_in_a_while_and_is_right_after_a_kill(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(settle, "PROGRESS_SECONDS", 3600.0)
    await queue.enqueue(db, (await make_source(db)).id)
    dead = await make_lease(db, host=this_host(), pid=2**22 + 1)
    job = await start.start_generation(db, dead, lists_everything=False)
    found = [DiscoveredUrl(url=f"{ROOT}{number}", depth=3) for number in range(4)]
    job = await settle.commit_batch(db, dead, job, [], found, signature="")
    async with db.transaction() as tx:
        entries = await frontier.lease(tx, job.id, lease_id=dead.id, limit=3)
    for entry in entries:
        nothing = VisitResult(entry=entry, decision=NotKept(outcome=Outcome.SKIPPED, reason="no page"), bytes=7)
        job = await settle.commit_batch(db, dead, job, [nothing], [], signature="")
    shown = (await job_of(db, dead)).progress
    assert (shown.discovered, shown.bytes, shown.done, job.batch) == (4, 21, 0, 4), "counted a moment ago"
    assert (await Reaper().reap(db)).jobs == 1
    shown = (await job_of(db, dead)).progress
    assert (shown.tally.skipped, shown.done, shown.percent, shown.current_depth) == (3, 3, 75, 3)
    monkeypatch.setattr(settle, "PROGRESS_SECONDS", 0.0)
    heir = await make_lease(db)
    async with db.transaction() as tx:
        entries = await frontier.lease(tx, job.id, lease_id=heir.id, limit=3)
    last = [VisitResult(entry=one, decision=NotKept(outcome=Outcome.GONE, reason="404")) for one in entries]
    job = await settle.commit_batch(db, heir, job, last, [], signature="")
    assert (job.progress.tally.skipped, job.progress.tally.gone) == (3, 1), "nothing twice"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_databases
async def test_a_job_that_was_paused_when_its_source_failed_continues_when_it_is_resumed(db: Database) -> None:
    source = await make_source(db)
    await crawl(db, source, Site({ROOT: Page("before")}))
    job = await queue.enqueue(db, source.id)
    lease = await make_lease(db)
    await start.start_generation(db, lease, lists_everything=False)
    await queue.pause(db, job.id)
    await activate.fail_leased_job(db, lease, "the host is down.")
    assert (await job_of(db, lease)).status is JobStatus.PAUSED
    async with db.transaction() as tx:
        await jobs.release_lease(tx, lease.id)
    await queue.resume(db, job.id)
    assert (await crawl(db, source, Site({ROOT: Page("after")}))).status is JobStatus.COMPLETED
    _, made = await service_generations.list_generations(db, "docs")
    assert [one.state for one in made] == [GenerationState.RETIRED, GenerationState.ACTIVE]


class Unlucky(Site):
    """A site that fails after something was done to its crawl."""

    def __init__(self, meanwhile: Callable[[], Awaitable[object]]) -> None:
        super().__init__({})
        self._meanwhile = meanwhile

    async def open(self) -> None:
        await self._meanwhile()
        raise SourceUnavailable("It is gone.")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_databases
async def test_a_job_that_was_cancelled_when_its_source_failed_is_left_as_it_is(db: Database) -> None:
    source = await make_source(db)
    job = await queue.enqueue(db, source.id)
    site = Unlucky(lambda: queue.cancel(db, job.id))
    assert (await crawl(db, source, site)).status is JobStatus.CANCELLED
    async with db.snapshot() as snapshot:
        assert await jobs.leases_of_job(snapshot, job.id) == []


@on_both_databases
async def test_a_job_does_not_wait_for_the_time_it_was_asked_for_to_come_again(db: Database) -> None:
    job = await queue.enqueue(db, (await make_source(db)).id)
    async with db.transaction() as tx:  # the clock was set back by an hour
        await run_sql(tx, "UPDATE crawl_jobs SET created_at = ago(-3600)")
        assert (claimed := await jobs.claim(tx, worker=new_id()))
        assert claimed.id == job.id


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@on_both_databases
async def test_the_error_of_a_job_that_a_bug_ended_names_the_bug(db: Database) -> None:
    job = await queue.enqueue(db, (await make_source(db)).id)
    stop, runs = asyncio.Event(), 0

    def make_run(lease: Lease, source: Source) -> CrawlRun:
        nonlocal runs
        runs += 1
        if runs == 4:
            stop.set()
        raise KeyError("no such thing")

    await Worker(db, make_run).run(stop)
    ended = await jobs_service.get_job(db, job.id)
    assert (ended.status, ended.error) == (JobStatus.FAILED, "a bug in Kept: KeyError: 'no such thing'")


def test_following_a_job_ends_when_it_is_removed_with_its_source(tmp_path: Path) -> None:
    async def scenario() -> None:
        made = load(environment={}, folder=tmp_path, database=f"sqlite:///{tmp_path}/kept.db")
        async with open_runtime(made) as runtime, asyncio.timeout(5):
            source = await make_source(runtime.db)
            job = await queue.enqueue(runtime.db, source.id)
            await sources.remove_source(runtime.db, "docs")
            await collect(runtime.db, Retention())
            with pytest.raises(NotFound, match="removed"):
                await runtime.worker_host.run_job(job)

    asyncio.run(scenario())


def test_processes_of_two_containers_are_not_taken_for_those_of_one_machine() -> None:
    assert this_host().endswith(os.readlink("/proc/self/ns/pid")), "numbers of processes count within one of these"


# Any commands, in any order ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("store", "commands"), [("sqlite", 450), ("postgres", 90)])
def test_any_commands_in_any_order_keep_jobs_in_legal_states(
    request: pytest.FixtureRequest, tmp_path: Path, store: str, commands: int
) -> None:
    server = request.getfixturevalue("postgres_server") if store == "postgres" else None
    random_commands.run(server, tmp_path, commands=commands)
