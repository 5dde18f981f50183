"""Schedules enqueue crawls when they are due, once, however many processes check."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from kept.crawl import rollback
from kept.crawl.change_rate import RefreshBounds
from kept.jobs import queue
from kept.maintenance import scheduler
from kept.maintenance.next_run import SchedulePolicy
from kept.maintenance.scheduler import ScheduleReport, enqueue_due_crawls
from kept.model.job import CrawlJob, CrawlMode, JobStatus
from kept.model.source import Source, SourceKind, SourceSettings
from kept.service import sources as service
from kept.store import jobs, sources
from kept.store.database import Database
from tests.contract.databases import on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, database_at

DAY, HOUR = timedelta(days=1), timedelta(hours=1)
NONE, ONE = ScheduleReport(), ScheduleReport(requested=1)


async def kept(db: Database, said: str, name: str = "docs") -> Source:
    """Create a source with a schedule and crawl it once."""
    source = await only_added(db, said, name)
    await crawl(db, source, Site({source.root: Page("the root")}, root=source.root))
    return await now_is(db, source)


async def only_added(db: Database, said: str, name: str = "docs") -> Source:
    root = ROOT if name == "docs" else f"https://{name}.test/"
    made, _ = await service.get_or_create_source(
        db, root=root, kind=SourceKind.WEB, name=name, settings=SourceSettings(schedule=said)
    )
    return made


async def now_is(db: Database, source: Source) -> Source:
    async with db.snapshot() as snapshot:
        found = await sources.get(snapshot, source.id)
    assert found is not None
    return found


async def set_to(db: Database, said: str) -> Source:
    return await service.update_settings(db, "docs", lambda settings: replace(settings, schedule=said))


async def last_job(db: Database, source: Source) -> CrawlJob:
    async with db.snapshot() as snapshot:
        found = await jobs.last(snapshot, source.id)
    assert found is not None
    return found


def due(source: Source) -> datetime:
    assert source.next_run_at is not None
    return source.next_run_at


async def run(db: Database, at: datetime, *, full_every: int = 10, chance: float = 0.0) -> ScheduleReport:
    return await enqueue_due_crawls(db, SchedulePolicy(full_every=full_every), now=at, chance=lambda: chance)


@on_both_databases
async def test_a_source_is_crawled_when_its_interval_is_over_and_not_before(db: Database) -> None:
    source = await kept(db, "6h")
    at = due(source)
    assert 6 * HOUR <= at - source.created_at < 6.7 * HOUR
    assert await run(db, at - timedelta(seconds=1)) == NONE
    assert await run(db, at) == ONE
    job = await last_job(db, source)
    assert (job.status, job.mode) == (JobStatus.PENDING, CrawlMode.REFRESH)
    assert due(await now_is(db, source)) == at + 6 * HOUR
    assert await run(db, at) == NONE, "a second pass finds nothing"


@on_both_databases
async def test_runs_that_were_missed_are_one_run(db: Database) -> None:
    source = await kept(db, "1h")
    late = due(source) + 40 * HOUR
    assert await run(db, late) == ONE
    assert due(await now_is(db, source)) == late + HOUR
    hourly = await set_to(db, "0 * * * *")
    late = due(hourly) + 40 * HOUR
    await run(db, late)
    following = due(await now_is(db, source))
    assert late < following <= late + HOUR
    assert (following.minute, following.second) == (0, 0)


@on_both_databases
async def test_jitter_is_a_tenth_of_the_interval_and_at_most_ten_minutes(db: Database) -> None:
    source = await kept(db, "1m")
    for said, later in (("30m", timedelta(minutes=33)), ("7d", timedelta(days=7, minutes=10))):
        at = due(await set_to(db, said))
        await run(db, at, chance=1.0)
        assert due(await now_is(db, source)) == at + later


@on_both_databases
async def test_a_cron_time_gets_only_a_small_jitter(db: Database) -> None:
    source = await kept(db, "0 3 * * *")
    at = due(source)
    assert (at.astimezone(UTC).hour, at.astimezone(UTC).minute) == (3, 0)
    await run(db, at, chance=1.0)
    following = due(await now_is(db, source)).astimezone(UTC)
    assert (following.hour, following.minute, following.second) == (3, 0, 30)
    assert following.date() == at.astimezone(UTC).date() + DAY


def test_two_processes_that_look_at_once_ask_once(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db, database_at(database_url) as other:
            await look_at_once(db, other)

    asyncio.run(scenario())


async def look_at_once(db: Database, other: Database) -> None:
    names = [f"s{number}" for number in range(12)]
    for name in names:
        await only_added(db, "1h", name)
    late = datetime.now(UTC) + 3 * HOUR
    passes = await asyncio.gather(*(run(one, late) for one in (db, other, db, other)))
    assert sum(one.requested for one in passes) == len(names)
    assert sum(one.waiting for one in passes) == 0
    async with db.snapshot() as snapshot:
        assert len(await jobs.list_recent(snapshot)) == len(names)
        assert {one.runs for one in await sources.all(snapshot)} == {1}


@on_both_databases
async def test_a_pass_goes_through_everything_that_is_due_page_by_page(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "BATCH_SIZE", 3)
    for number in range(8):
        await only_added(db, "1h", f"s{number}")
    async with db.transaction() as tx:  # an unreadable one must not delay the others
        broken = (await sources.all(tx))[0]
        await sources.set_settings(tx, broken.id, replace(broken.settings, schedule="every full moon"))
        await run_sql(tx, "UPDATE sources SET next_run_at = created_at WHERE name = 's0'")
    assert await run(db, datetime.now(UTC) + 3 * HOUR) == ScheduleReport(requested=7)
    assert (await now_is(db, broken)).next_run_at is None


@on_both_databases
async def test_a_schedule_that_is_off_asks_for_nothing(db: Database) -> None:
    source = await kept(db, "1h")
    late = due(source) + DAY
    off = await set_to(db, "")
    assert off.next_run_at is None
    assert await run(db, late) == NONE


@on_both_databases
async def test_a_new_schedule_counts_from_the_last_crawl_that_saw_everything(db: Database) -> None:
    source = await kept(db, "")
    assert source.next_run_at is None
    async with db.transaction() as tx:
        await run_sql(tx, "UPDATE generations SET created_at = '2026-01-01T00:00:00.000000+00:00'")
    overdue = due(await set_to(db, "1d"))
    assert overdue - datetime.now(UTC) < timedelta(minutes=11), "due at once, but for the jitter"


@on_both_databases
async def test_a_rollback_pauses_the_schedule_until_somebody_asks_for_a_refresh(db: Database) -> None:
    source = await kept(db, "1h")
    await crawl(db, source, Site({ROOT: Page("changed")}))
    await rollback.roll_back(db, source.id, 1)
    late = due(source) + DAY
    assert await run(db, late) == NONE
    await crawl(db, source, Site({ROOT: Page("changed")}))
    assert await run(db, late) == ONE


@on_both_databases
async def test_a_crawl_that_runs_or_is_paused_is_enough(db: Database) -> None:
    source = await kept(db, "1h")
    job = await queue.enqueue(db, source.id)
    await queue.pause(db, job.id)
    late = due(source) + DAY
    assert await run(db, late) == ScheduleReport(waiting=1)
    assert due(await now_is(db, source)) > late
    await queue.resume(db, job.id)
    async with db.transaction() as tx:
        await jobs.claim(tx, worker=job.id)
    assert await run(db, late + DAY) == ScheduleReport(waiting=1)
    assert (await last_job(db, source)).again is None, "there is no second request"


@on_both_databases
async def test_a_run_that_meets_a_waiting_job_widens_it(db: Database) -> None:
    source = await kept(db, "1h")
    queued = await queue.enqueue(db, source.id, mode=CrawlMode.QUICK, priority=5)
    assert await run(db, due(source)) == ONE
    job = await last_job(db, source)
    assert (job.id, job.mode, job.priority) == (queued.id, CrawlMode.REFRESH, 5)


@on_both_databases
async def test_every_so_many_runs_are_full(db: Database) -> None:
    source = await kept(db, "1h")
    modes = []
    for _ in range(6):
        source = await now_is(db, source)
        await run(db, due(source), full_every=3)
        modes.append((await last_job(db, source)).mode)
        await crawl(db, source, Site({ROOT: Page("the root")}))
    assert modes == [CrawlMode.REFRESH, CrawlMode.REFRESH, CrawlMode.FULL] * 2


@on_both_databases
async def test_an_adaptive_schedule_is_quick_but_for_the_full_ones(db: Database) -> None:
    source = await kept(db, "auto")
    await run(db, due(source))
    assert (await last_job(db, source)).mode is CrawlMode.QUICK
    await crawl(db, source, Site({ROOT: Page("the root")}))
    source = await now_is(db, source)
    await run(db, due(source), full_every=2)
    assert (await last_job(db, source)).mode is CrawlMode.FULL


@on_both_databases
async def test_where_validators_are_wrong_every_run_is_full(db: Database) -> None:
    source = await kept(db, "auto")
    async with db.transaction() as tx:
        await sources.set_validators_wrong(tx, source.id, wrong=True)
    await run(db, due(source))
    assert (await last_job(db, source)).mode is CrawlMode.FULL
    assert (await service.show_source(db, "docs")).validators == "wrong"


@on_both_databases
async def test_an_adaptive_schedule_follows_what_its_crawls_saw_within_bounds(db: Database) -> None:
    source = await kept(db, "auto")
    for words in ("a", "b", "c", "d"):
        await crawl(db, source, Site({ROOT: Page(words)}))
    async with db.transaction() as tx:  # a crawl a day, each of which saw a change
        for number in range(1, 6):
            at = f"2026-01-0{number}T00:00:00.000000+00:00"
            await run_sql(tx, f"UPDATE generations SET created_at = '{at}' WHERE number = {number}")
    source = await now_is(db, source)
    at = due(source)
    await run(db, at)
    learned = due(await now_is(db, source)) - at
    assert HOUR <= learned <= 12 * HOUR
    view = await service.show_source(db, "docs")
    assert view.suggested_interval == learned
    assert view.changes_every is not None
    assert learned < view.changes_every < 2 * DAY
    bounded = SchedulePolicy(bounds=RefreshBounds(shortest=3 * DAY))
    await enqueue_due_crawls(db, bounded, now=at + learned, chance=lambda: 0.0)
    assert due(await now_is(db, source)) == at + learned + 3 * DAY


@on_both_databases
async def test_a_site_without_validators_is_said_to_have_none(db: Database) -> None:
    source = await kept(db, "")
    assert (await service.show_source(db, "docs")).validators == "none"
    await crawl(db, source, Site({ROOT: Page("the root", tag="1")}), mode=CrawlMode.FULL)
    assert (await service.show_source(db, "docs")).validators is None
