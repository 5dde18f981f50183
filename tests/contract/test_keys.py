"""Keys, their quotas, and idempotent requests, on both databases."""

import asyncio

import pytest

from kept.errors import InvalidInput, NotFound, QuotaExceeded
from kept.service import jobs as jobs_service
from kept.service import keys
from kept.service.access import Principal, Quota, check_quota
from kept.service.jobs import IdempotencyKey
from kept.store import keys as store
from tests.factories import ROOT, Page, Site, crawl, database_at, make_source


def test_a_key_is_known_by_what_its_holder_says_and_by_nothing_else(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            key, secret = await keys.add_key(db, "laptop", "write")
            assert await keys.find_key(db, secret) == key
            for wrong in ("", secret[:-1], secret.upper(), f"{secret} ", "laptop", "\x00", "\ud800"):
                assert await keys.find_key(db, wrong) is None
            with pytest.raises(InvalidInput):
                await keys.add_key(db, "laptop", "read")
            await keys.remove_key(db, "laptop")
            assert await keys.find_key(db, secret) is None
            with pytest.raises(NotFound):
                await keys.remove_key(db, "laptop")

    asyncio.run(scenario())


def test_a_quota_counts_live_crawls_sources_and_pages(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            source = await make_source(db)
            await crawl(db, source, Site({ROOT: Page("root", links=(f"{ROOT}a",)), f"{ROOT}a": Page("a")}))
            async with db.transaction() as tx:
                await store.assign_source_owner(tx, source.id, "ci")
                await store.assign_source_owner(tx, source.id, "another")  # it stays the first one's
            await jobs_service.request_crawl(db, "docs", owner="ci")
            for quota in (Quota(live_jobs=1), Quota(pages=2)):
                with pytest.raises(QuotaExceeded):
                    await check_quota(db, Principal(name="ci", quota=quota))
                await check_quota(db, Principal(name="another", quota=quota))
            with pytest.raises(QuotaExceeded):
                await check_quota(db, Principal(name="ci", quota=Quota(sources=1)), adds_source=True)
            await check_quota(db, Principal(name="ci", quota=Quota(live_jobs=2, pages=3, sources=1)))

    asyncio.run(scenario())


def test_the_same_request_many_times_at_once_is_one_job(database_url: str) -> None:
    async def scenario() -> None:
        async with database_at(database_url) as db:
            await make_source(db)
            once = IdempotencyKey(key="monday", request_hash="crawl docs")
            requests = [jobs_service.request_crawl(db, "docs", owner="ci", idempotency_key=once) for _ in range(8)]
            jobs = {job.id: job for job in await asyncio.gather(*requests)}
            assert [job.owner for job in jobs.values()] == ["ci"]
            [first] = jobs
            await jobs_service.cancel_job(db, first)
            again = await jobs_service.request_crawl(db, "docs", owner="ci", idempotency_key=once)
            others = await jobs_service.request_crawl(db, "docs", owner="another", idempotency_key=once)
            assert again.id == first
            assert others.id != first

    asyncio.run(scenario())
