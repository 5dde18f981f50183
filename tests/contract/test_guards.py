"""Guards: traps and limits keep out the same pages each time, say so, and can be lifted or lowered."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace

import pytest

from kept.crawl import settle, store_retry
from kept.crawl.decide import VisitResult
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import StoreUnreachable
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.model.frontier import LedgerEntry
from kept.model.generation import Generation, Tally
from kept.model.job import CrawlJob, CrawlMode, JobStatus, Lease
from kept.model.source import Limits, Source, SourceSettings
from kept.origins.web import traps
from kept.service import generations, ledger
from kept.store import sources
from kept.store.database import Database
from tests.contract.databases import on_both_databases, run_sql
from tests.factories import ROOT, Page, Site, crawl, make_source, read_scripted, shown

A, B = f"{ROOT}a", f"{ROOT}b"


class Calendar(dict[str, Page]):
    """The pages of a site with a calendar that never ends: each month links to the next one and the one before."""

    def get(self, url: str, default: Page | None = None) -> Page | None:  # type: ignore[override]
        if url in self or not url.startswith(f"{ROOT}calendar/"):
            return super().get(url, default)
        year, month = map(int, url.removeprefix(f"{ROOT}calendar/").split("/"))
        months = [12 * year + month - 1 + step for step in (-1, 1)]
        return Page(f"Nothing happens in {year}-{month}.", tuple(_month_url(at) for at in months))


def _month_url(months: int) -> str:
    return f"{ROOT}calendar/{months // 12}/{months % 12 + 1:02}"


def numbered_site(count: int) -> dict[str, Page]:
    """Return a site of numbered pages, all linked from indexes of a hundred each."""
    pages = [f"{ROOT}{number}.html" for number in range(1, count + 1)]
    parts = [pages[start : start + 100] for start in range(0, count, 100)]
    indexes = {f"{ROOT}index{at}": Page(f"Part {at}.", tuple(part)) for at, part in enumerate(parts)}
    return {ROOT: Page("root", tuple(indexes)), **indexes, **{url: Page(f"Page {url}.", tag="1") for url in pages}}


async def active_generation(db: Database) -> Generation:
    source, found = await generations.list_generations(db, "docs")
    return next(one for one in found if one.number == source.active_generation)


async def set_limits(db: Database, source: Source, limits: Limits) -> None:
    async with db.transaction() as tx:
        await sources.set_settings(tx, source.id, replace(source.settings, limits=limits))


async def explain(db: Database, url: str) -> LedgerEntry:
    [entry] = await ledger.explain_url(db, url, lambda source, url: None)
    return entry


async def crawl_killed(
    db: Database, source: Source, site: Site, monkeypatch: pytest.MonkeyPatch, *, kill_at: Iterator[int]
) -> CrawlJob:
    """Crawl with a worker that dies after every so many batches, until the job is completed."""
    job, settled = await queue.enqueue(db, source.id), settle.commit_batch
    left = next(kill_at, None)

    async def dying(*args: object, **kwargs: object) -> CrawlJob:
        nonlocal left
        committed = await settled(*args, **kwargs)  # type: ignore[arg-type]
        if left is not None and any(
            isinstance(one, VisitResult) for part in args if isinstance(part, list) for one in part
        ):
            left -= 1
            if left <= 0:
                left = next(kill_at, None)
                raise StoreUnreachable("killed")
        return committed

    def make_run(lease: Lease, claimed: Source) -> CrawlRun:
        return CrawlRun(db, lease, claimed, site, read=read_scripted, signature="1", rules=LifecycleRules())

    monkeypatch.setattr(settle, "commit_batch", dying)
    while True:
        try:
            done = await claim_and_run(db, job.id, make_run)
        except StoreUnreachable:
            continue
        monkeypatch.setattr(settle, "commit_batch", settled)
        assert done is not None
        return done


# ── Traps ────────────────────────────────────────────────────────────────────────────────────────────────────────────


@on_both_databases
async def test_numbered_pages_are_no_trap(db: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    pages = {url.replace(ROOT, ROOT): page for url, page in numbered_site(2300).items()}
    source = await make_source(db)
    job = await crawl_killed(db, source, Site(pages, concurrency=20), monkeypatch, kill_at=iter((1, 2, 1)))
    assert job.status is JobStatus.COMPLETED
    assert (await shown(db, source)).keys() == pages.keys()
    assert (await active_generation(db)).partial is None
    again = await crawl(db, source, Site(pages, concurrency=20))
    assert again.progress.tally == Tally(unchanged=len(pages))


@on_both_databases
async def test_dated_and_versioned_pages_are_no_trap(db: Database) -> None:
    days = [f"{ROOT}{2015 + at // 336}/{at // 28 % 12 + 1:02}/{at % 28 + 1:02}/" for at in range(400)]
    dated = [f"{ROOT}notes/2019-{at // 28 + 1:02}-{at % 28 + 1:02}.html" for at in range(300)]
    versions = [f"{ROOT}docs/{at // 12 + 2000}.{at % 12 + 1}/index.html" for at in range(200)]
    events = [f"{ROOT}events.html", f"{ROOT}calendar.html"]
    # Days link only to the next one; what an index names is all named there.
    chain = {day: Page(f"Day {day}.", (after,)) for day, after in zip(days, [*days[1:], ROOT], strict=True)}
    others = {url: Page(f"Page {url}.") for url in (*dated, *versions, *events)}
    source = await make_source(db)
    await crawl(db, source, Site({ROOT: Page("root", (days[0], *others)), **chain, **others}))
    assert (await shown(db, source)).keys() == {ROOT, *chain, *others}
    assert (await active_generation(db)).partial is None


@on_both_databases
async def test_an_endless_calendar_gives_the_same_pages_however_it_is_crawled(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traps, "MAX_CALENDAR_ROUNDS", 6)
    site = Calendar({ROOT: Page("root", (f"{ROOT}calendar/2026/11", A)), A: Page("a", (f"{ROOT}calendar/2027/02",))})
    expected = {ROOT, A, *(_month_url(12 * 2026 + 10 + step) for step in range(-5, 9))}
    source = await make_source(db)
    job = await crawl_killed(db, source, Site(site), monkeypatch, kill_at=iter((1, 1, 1, 1)))
    assert (await shown(db, source)).keys() == expected
    assert job.progress.tally == Tally(new=len(expected), skipped=2)
    assert (await active_generation(db)).partial == "trap"
    for step in (-6, 9):
        entry = await explain(db, _month_url(12 * 2026 + 10 + step))
        assert entry.outcome == "skipped"
        assert (entry.reason or "").startswith("trap: a calendar")
    for mode in (CrawlMode.REFRESH, CrawlMode.QUICK, CrawlMode.FULL):
        await crawl(db, source, Site(site), mode=mode)
        assert (await shown(db, source)).keys() == expected, f"a {mode} crawl of the same site finds nothing new"
        assert (await active_generation(db)).partial == "trap"


@on_both_databases
async def test_combinations_of_parameters_are_limited_to_the_same_pages_each_time(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traps, "MAX_COMBINATIONS", 10)
    facets = [f"{ROOT}list?by={by}&page={page}&sort={sort}" for by in "ab" for page in range(1, 13) for sort in "xy"]
    pages = {url: Page(f"Page {url}.", tuple(facets[at : at + 7])) for at, url in enumerate(facets)}
    results = []
    for name, starts in (("docs", facets[:5]), ("other", [*reversed(facets[:5])])):
        source = await make_source(db, name, root=ROOT if name == "docs" else "https://docs.test/other")
        root = {source.root: Page("root", tuple(starts))}
        job = await crawl(db, source, Site(root | pages, root=source.root, concurrency=1 if name == "docs" else 9))
        results.append((await shown(db, source)).keys() - {source.root})
        assert job.progress.tally.new == 11
    assert results[0] == results[1]


@on_both_databases
async def test_lifting_traps_keeps_what_they_refused_and_setting_them_again_removes_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(traps, "MAX_CALENDAR_ROUNDS", 2)
    months = [_month_url(12 * 2026 + step) for step in range(20)]
    pages = {url: Page(f"Month {url}.", (after,)) for url, after in zip(months, [*months[1:], ROOT], strict=True)}
    site = Site({ROOT: Page("root", (months[0],)), **pages})
    source = await make_source(db)
    await crawl(db, source, site)
    assert (await shown(db, source)).keys() == {ROOT, *months[:2]}
    await set_limits(db, source, Limits(no_traps=True))
    monkeypatch.setattr(Site, "find_family", lambda self, url: None)  # as WebScope does with this setting
    await crawl(db, source, site)
    assert (await shown(db, source)).keys() == {ROOT, *months}
    assert (await active_generation(db)).partial is None
    monkeypatch.undo()
    monkeypatch.setattr(traps, "MAX_CALENDAR_ROUNDS", 2)
    await set_limits(db, source, Limits())
    job = await crawl(db, source, site)
    assert not job.held, "what the source's own settings exclude is removed without the brake"
    assert (await shown(db, source)).keys() & set(months[:3]) == set(months[:2])


# ── Limits ───────────────────────────────────────────────────────────────────────────────────────────────────────────


def tree() -> dict[str, Page]:
    """Return a site of thirteen pages: a root, three pages below it, three below each of those."""
    pages: dict[str, Page] = {}
    for one in "abc":
        below = [f"{ROOT}{one}/{two}" for two in "xyz"]
        pages |= {f"{ROOT}{one}": Page(f"Page {one}.", tuple(below))} | {url: Page(f"Page {url}.") for url in below}
    return {ROOT: Page("root", tuple(f"{ROOT}{one}" for one in "abc")), **pages}


@pytest.mark.parametrize(("max_depth", "left"), [(1, 4), (0, 1)])
@on_both_databases
async def test_a_lowered_limit_of_depth_removes_deeper_pages_at_the_next_refresh(
    db: Database, max_depth: int, left: int
) -> None:
    source = await make_source(db)
    await crawl(db, source, Site(tree()))
    assert len(await shown(db, source)) == 13
    await set_limits(db, source, Limits(max_depth=max_depth))
    job = await crawl(db, source, Site(tree()))
    assert (job.status, job.held) == (JobStatus.COMPLETED, False)
    kept = await shown(db, source)
    assert len(kept) == left
    assert (await active_generation(db)).partial == "limit"
    entry = await explain(db, f"{ROOT}a/x")
    assert (entry.outcome, entry.reason) == (
        "skipped",
        f"a limit was reached: more than {max_depth} links from the root",
    )
    again = await crawl(db, source, Site(tree()))
    assert await shown(db, source) == kept
    assert again.progress.tally.new == 0
    await set_limits(db, source, Limits())
    await crawl(db, source, Site(tree()))
    assert len(await shown(db, source)) == 13


@pytest.mark.parametrize("lists_everything", [False, True], ids=["site", "folder"])
@on_both_databases
async def test_a_lowered_number_of_pages_removes_the_others_at_the_next_refresh(
    db: Database, lists_everything: bool
) -> None:
    site = Site({url: replace(page, tag="1") for url, page in tree().items()}, lists_everything=lists_everything)
    source = await make_source(db)
    await crawl(db, source, site)
    await set_limits(db, source, Limits(max_pages=5))
    job = await crawl(db, source, site)
    assert not job.held
    kept = await shown(db, source)
    assert len(kept) == 5
    assert ROOT in kept
    assert (await active_generation(db)).partial == "limit"
    assert (await explain(db, f"{ROOT}c/z")).reason == "a limit was reached"
    again = await crawl(db, source, site)
    assert (again.progress.tally.new, await shown(db, source)) == (0, kept)


@on_both_databases
async def test_limits_keep_the_same_pages_whatever_the_order_of_answers(db: Database) -> None:
    pages, kept = tree(), []

    class Unhurried(Site):
        async def visit(self, entry, *, conditional):  # type: ignore[no-untyped-def]
            first, last = (f"{ROOT}a", f"{ROOT}c") if self.concurrency == 4 else (f"{ROOT}c", f"{ROOT}a")
            await asyncio.sleep({first: 0.05, last: 0.0}.get(entry.url, 0.02))
            return await super().visit(entry, conditional=conditional)

    for name, concurrency in (("docs", 4), ("other", 5)):
        source = await make_source(
            db, name, version=name, settings=SourceSettings(limits=Limits(max_pages=7, max_depth=2))
        )
        await crawl(db, source, Unhurried(pages, concurrency=concurrency))
        kept.append((await shown(db, source)).keys())
    assert kept[0] == kept[1]
    assert len(kept[0]) == 7


# ── A lost frontier ──────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("lost", ["1 = 1", "outcome IS NULL"], ids=["all", "the open entries"])
@on_both_databases
async def test_a_crawl_whose_frontier_was_lost_starts_at_the_root_again(
    db: Database, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    source = await make_source(db)
    job, settled, committed = await queue.enqueue(db, source.id), settle.commit_batch, 0

    async def dying(*args: object, **kwargs: object) -> CrawlJob:
        nonlocal committed
        done = await settled(*args, **kwargs)  # type: ignore[arg-type]
        committed += 1
        if committed >= 2:
            raise StoreUnreachable("killed")
        return done

    def make_run(lease: Lease, claimed: Source) -> CrawlRun:
        return CrawlRun(db, lease, claimed, Site(tree()), read=read_scripted, signature="1", rules=LifecycleRules())

    monkeypatch.setattr(store_retry, "MAX_RETRIES", 0)
    monkeypatch.setattr(settle, "commit_batch", dying)
    with pytest.raises(StoreUnreachable):
        await claim_and_run(db, job.id, make_run)
    monkeypatch.setattr(settle, "commit_batch", settled)
    async with db.transaction() as tx:
        await run_sql(tx, f"DELETE FROM frontier WHERE {lost}")
    done = await claim_and_run(db, job.id, make_run)
    assert done
    assert (done.status, done.progress.tally) == (JobStatus.COMPLETED, Tally(new=13))
    assert (await shown(db, source)).keys() == tree().keys()
