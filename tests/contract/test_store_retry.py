"""A database in trouble: what was fetched is kept, and commits become smaller until they succeed."""

from typing import Any

import pytest

from kept.crawl import pipeline, settle, store_retry
from kept.errors import StoreUnreachable
from kept.model.generation import Tally
from kept.model.job import CrawlJob
from kept.store.database import Database
from tests.contract.databases import on_both_databases
from tests.factories import ROOT, Page, Site, crawl, make_source


@on_both_databases
async def test_a_batch_that_is_too_much_for_a_database_in_trouble_is_committed_in_parts(
    db: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = await make_source(db)
    pages = {f"{ROOT}p{number}": Page(f"page {number}") for number in range(100)}
    site = Site({ROOT: Page("root", links=tuple(pages)), **pages}, concurrency=200)
    settled, refused = settle.commit_batch, 0

    async def overloaded(*args: Any, **kwargs: Any) -> CrawlJob:
        nonlocal refused
        done = await settled(*args, **kwargs) if refused % 2 else None  # some are committed although an error is raised
        if len(args[3]) > 2 * 12:
            refused += 1
            raise StoreUnreachable("too slow")
        return done or await settled(*args, **kwargs)

    monkeypatch.setattr(settle, "commit_batch", overloaded)
    monkeypatch.setattr(store_retry, "FIRST_DELAY_SECONDS", 0.0)
    monkeypatch.setattr(pipeline, "FIRST_BATCH_SECONDS", 60.0)
    monkeypatch.setattr(pipeline, "BATCH_SECONDS", 60.0)
    done = await crawl(db, source, site)
    assert refused
    assert done.progress.tally == Tally(new=101)
    assert sorted(site.visits) == sorted([ROOT, *pages]), "nothing is requested again"
