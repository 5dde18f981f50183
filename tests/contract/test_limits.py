"""Limits on the number of documents: the pages they keep out, and those they do not."""

import asyncio
from typing import Any

import pytest

from kept.crawl import entry_leases, pipeline, settle
from kept.crawl.decide import VisitResult
from kept.crawl.engine import CrawlRun
from kept.crawl.lifecycle import LifecycleRules
from kept.errors import StoreUnreachable
from kept.jobs import queue
from kept.jobs.worker import claim_and_run
from kept.model.job import CrawlJob, JobStatus, Lease
from kept.model.source import Limits, Source, SourceSettings
from kept.service import generations
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import ROOT, Page, Site, crawl, make_source, read_scripted, shown

A, B = f"{ROOT}a", f"{ROOT}b"


@pytest.mark.parametrize(("beyond", "kills", "partial"), [(ROOT, 1, None), (B, 2, "limit")], ids=["back", "on"])
@on_both_databases
async def test_a_crawl_killed_after_any_batch_knows_whether_a_limit_of_depth_kept_something_out(
    db: Database, monkeypatch: pytest.MonkeyPatch, beyond: str, kills: int, partial: str | None
) -> None:
    site = Site({ROOT: Page("root", (A,)), A: Page("a", (beyond,)), B: Page("b")})
    source = await make_source(db, settings=SourceSettings(limits=Limits(max_depth=1)))
    settled = settle.commit_batch

    async def killed(*args: object, **kwargs: object) -> CrawlJob:
        job = await settled(*args, **kwargs)  # type: ignore[arg-type]
        if any(isinstance(one, VisitResult) for part in args if isinstance(part, list) for one in part):
            raise StoreUnreachable("killed")
        return job

    def make_run(lease: Lease, source: Source) -> CrawlRun:
        return CrawlRun(db, lease, source, site, read=read_scripted, signature="1", rules=LifecycleRules())

    job = await queue.enqueue(db, source.id)
    monkeypatch.setattr(settle, "commit_batch", killed)
    for _ in range(kills):
        with pytest.raises(StoreUnreachable):
            await claim_and_run(db, job.id, make_run)
    monkeypatch.setattr(settle, "commit_batch", settled)
    done = await claim_and_run(db, job.id, make_run)
    assert done
    assert done.status is JobStatus.COMPLETED
    assert site.visits == [ROOT, A]
    _, [generation] = await generations.list_generations(db, "docs")
    assert generation.partial == partial


@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
@on_both_databases
async def test_a_limit_keeps_no_document_out_that_moves_while_other_pages_name_its_new_url(db: Database) -> None:
    old, new = ([f"{ROOT}{name}{number}" for number in range(10)] for name in ("old", "new"))
    settings = SourceSettings(limits=Limits(max_pages=12))
    source = await make_source(db, settings=settings)
    texts = {url: Page(f"This is page {number} of ten, which moves.") for number, url in enumerate(old)}
    site = Site({ROOT: Page("root", (A, *old)), A: Page("a"), **texts}, concurrency=20)
    await crawl(db, source, site)
    before = await shown(db, source)
    moved = dict(zip(new, texts.values(), strict=True))
    gone = {url: Page(redirect=to) for url, to in zip(old, new, strict=True)}
    await crawl(
        db, source, Site({ROOT: Page("root", (A, *old)), A: Page("a", tuple(new)), **gone, **moved}, concurrency=20)
    )
    after = await shown(db, source)
    assert [after[url][0] for url in new] == [before[url][0] for url in old]


@on_both_databases
async def test_a_site_that_is_faster_than_the_database_waits_for_it(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline, "BATCH_PAGES", 20)
    monkeypatch.setattr(entry_leases, "LEASE_BATCH_SIZE", 20)
    pages = {f"{ROOT}{at}": Page(f"Page {at}.") for at in range(500)}
    site = Site({ROOT: Page("root", tuple(pages)), **pages})
    settled, first, goes_on, sizes = settle.commit_batch, asyncio.Event(), asyncio.Event(), []

    async def slowly(*args: Any, **kwargs: Any) -> CrawlJob:
        visited = next((one for one in args if isinstance(one, list)), [])
        sizes.append(len(visited))
        if len(site.visits) > 1:
            first.set()
            await goes_on.wait()
        return await settled(*args, **kwargs)

    monkeypatch.setattr(settle, "commit_batch", slowly)
    crawling = asyncio.create_task(crawl(db, await make_source(db), site))
    await first.wait()
    before = 0
    while before != len(site.visits):
        before = len(site.visits)
        await asyncio.sleep(0.2)
    assert len(site.visits) <= 1 + 2 * 20 + 30 + site.concurrency
    goes_on.set()
    job = await crawling
    assert (job.status, job.progress.tally.new, max(sizes)) == (JobStatus.COMPLETED, 501, 20)
